"""`trackbed logs RUN`: what its ranks wrote."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from trackbed.cli import context, output
from trackbed.cli.context import LONG_S, client, say
from trackbed.cli.options import Run

if TYPE_CHECKING:
    from trackbed.wire.series import LogLine


def logs(
    run: Run,
    follow: Annotated[bool, typer.Option("--follow", "-f", help=say("cli.opt.follow"))] = False,
    rank: Annotated[
        int | None, typer.Option("--rank", min=0, metavar="N", help=say("cli.opt.rank"), show_default=False)
    ] = None,
    level: Annotated[str, typer.Option("--level", metavar="LEVEL", help=say("cli.opt.level"), show_default=False)] = "",
    grep: Annotated[str, typer.Option("--grep", metavar="TEXT", help=say("cli.opt.grep"), show_default=False)] = "",
    attempt: Annotated[
        int | None, typer.Option("--attempt", min=1, metavar="N", help=say("cli.opt.attempt"), show_default=False)
    ] = None,
    tail: Annotated[
        int | None, typer.Option("--tail", "-n", min=1, metavar="N", help=say("cli.opt.tail"), show_default=False)
    ] = None,
    first_error: Annotated[bool, typer.Option("--first-error", help=say("cli.opt.first_error"))] = False,
) -> None:
    if first_error:
        with client() as api:
            lines, first = api.first_error(run, rank=rank, attempt=attempt)
        if first is None:
            output.note(say("cli.no_error_line"))
        for line in lines:
            print_line(line)
        return
    with client(patience_s=LONG_S if follow else 2.0) as api:
        for line in api.logs(run, follow=follow, rank=rank, level=level, grep=grep, attempt=attempt, tail=tail):
            print_line(line)


def print_line(line: "LogLine") -> None:
    """Print a line with its rank; as JSON, one record a line."""
    if context.current().json:
        import msgspec

        print(msgspec.json.encode(line).decode(), flush=True)
        return
    color = {"error": "31", "warning": "33"}.get(line.level, "")
    who = f"[{line.rank}]" if line.stream != "trackbed" else "[trackbed]"
    text = "".join(char if char.isprintable() or char == "\t" else "�" for char in line.text)
    print(f"{output.dim(who)} {output.paint(text, color)}", flush=sys.stdout.isatty())
