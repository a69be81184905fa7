"""`trackbed diff RUN RUN`: everything that differs between two runs, by name; with `--code` line by line."""

import difflib
from typing import TYPE_CHECKING, Annotated

import typer

from trackbed.base.errors import NotFound
from trackbed.cli import output
from trackbed.cli.compare import print_comparison
from trackbed.cli.context import client, say

if TYPE_CHECKING:
    from trackbed.client.api import Client
    from trackbed.wire.compare import Comparison

_MOST_BYTES = 1 << 20  # of a file that is shown line by line


def diff(
    before: Annotated[str, typer.Argument(metavar="RUN", help=say("cli.opt.run"), show_default=False)],
    after: Annotated[str, typer.Argument(metavar="RUN", help=say("cli.opt.run"), show_default=False)],
    code: Annotated[bool, typer.Option("--code", help=say("cli.opt.diff_code"))] = False,
) -> None:
    with client() as api:
        found = api.compare([before, after])
        if output.emit_json(found):
            return
        found.metrics = [column for column in found.metrics if len({_shown(run) for run in column.runs}) > 1]
        print_comparison(found)
        if code:
            _code(api, found)


def _shown(run: object) -> str:
    return repr(run)


def _code(api: "Client", found: "Comparison") -> None:
    digests = [tree.digest if (tree := api.run(run.id).tree) is not None else "" for run in found.runs]
    for one in found.files:
        texts = [
            _read(api, digest, one.name) if value else [] for digest, value in zip(digests, one.values, strict=True)
        ]
        output.line()
        before, after = texts[0], texts[1]
        if before is None or after is None:
            output.line(say("cli.file_not_text", path=one.name))
            continue
        was, now = (f"{run.ref}/{one.name}" for run in found.runs)
        for line in difflib.unified_diff(before, after, was, now, lineterm=""):
            color = {"+": "32", "-": "31", "@": "36"}.get(line[:1], "")
            output.line(output.paint(output.clean(line), color))


def _read(api: "Client", digest: str, path: str) -> list[str] | None:
    """Return the lines of a file of a tree; None where it is no text, or a large one."""
    try:
        data = api.tree_file(digest, path, most=_MOST_BYTES)
    except NotFound:
        return []
    if data is None or b"\0" in data:
        return None
    return data.decode("utf-8", "replace").splitlines()
