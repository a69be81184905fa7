"""`trackbed export` and `trackbed import`: runs out into one checked file, and in again."""

import re
from pathlib import Path
from typing import Annotated

import typer

from trackbed.base.units import format_size
from trackbed.cli import output
from trackbed.cli.context import client, say

_FILTER = re.compile(r"[<>=\s]|^$")  # what a reference of a run never holds


def export(
    what: Annotated[str, typer.Argument(metavar="RUN|FILTER", help=say("cli.opt.export_what"), show_default=False)] = "",
    to: Annotated[Path | None, typer.Option("--to", "-o", metavar="FILE", help=say("cli.opt.export_to"), show_default=False)] = None,
    artifacts: Annotated[bool, typer.Option("--artifacts/--no-artifacts", help=say("cli.opt.export_artifacts"))] = True,
    csv: Annotated[bool, typer.Option("--csv", help=say("cli.opt.export_csv"))] = False,
    parquet: Annotated[bool, typer.Option("--parquet", help=say("cli.opt.export_parquet"))] = False,
) -> None:  # fmt: skip
    with client() as api:
        if csv or parquet:
            format = "parquet" if parquet else "csv"
            place = api.portable.metrics(what, to or Path(f"{_word(what)}.{format}"), format=format)
            if not output.emit_json({"path": str(place)}):
                output.line(str(place))
            return
        one_run = not _FILTER.search(what)
        place = to or Path(f"{_word(what) if one_run else 'runs'}.tbx")
        done = api.portable.export(
            place, filter="" if one_run else what, run=what if one_run else "", artifacts=artifacts
        )  # fmt: skip
    if not output.emit_json(
        {"path": str(done.path), "digest": done.digest, "runs": done.runs, "size_bytes": done.size_bytes}
    ):
        output.line(say("cli.exported", path=done.path, count=done.runs, size=format_size(done.size_bytes), digest=done.digest))  # fmt: skip


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=say("cli.opt.import_file"), show_default=False)],
    project: Annotated[str, typer.Option("--project", metavar="PROJECT", help=say("cli.opt.import_project"))] = "",
    space: Annotated[str, typer.Option("--space", metavar="SPACE", help=say("cli.opt.space"))] = "",
) -> None:
    with client() as api:
        done = api.portable.take(file, project=project, space=space)
    if output.emit_json(done):
        return
    head = [say(f"cli.word.{name}") for name in ("run", "original", "points", "files", "news")]
    output.table(
        head,
        [
            [
                one.ref,
                one.original_ref,
                one.points,
                one.files,
                say("cli.import_known" if one.known else "cli.import_new"),
            ]
            for one in done.runs
        ],
    )
    output.note(say("cli.imported", installation=done.installation, digest=done.bundle))


def _word(ref: str) -> str:
    return re.sub(r"[^\w.\-]+", "-", ref).strip("-.") or "runs"
