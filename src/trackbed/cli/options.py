"""Arguments and options that several commands share. Texts are looked up when a command is loaded, in the chosen language."""

from pathlib import Path
from typing import Annotated

import typer

from trackbed.cli.context import say

Run = Annotated[str, typer.Argument(metavar="RUN", help=say("cli.opt.run"), show_default=False)]
Space = Annotated[str, typer.Option("--space", metavar="SPACE", help=say("cli.opt.space"))]
Message = Annotated[
    str, typer.Option("--message", "-m", metavar="TEXT", help=say("cli.opt.message"), show_default=False)
]
Target = Annotated[Path | None, typer.Option("--to", "-o", metavar="PATH", help=say("cli.opt.to"), show_default=False)]


def group() -> typer.Typer:
    """Return an empty group of commands."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)
