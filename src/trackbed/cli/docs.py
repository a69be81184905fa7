"""`trackbed docs check|list|show`."""

from pathlib import Path
from typing import Annotated

import typer

from trackbed.base.units import format_duration, format_size
from trackbed.cli import output
from trackbed.cli.context import client, say
from trackbed.cli.options import Run, group

app = group()


@app.command("check", help=say("cli.about.docs.check"))
def check(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help=say("cli.opt.docs_folder"))] = Path(),
    list_only: Annotated[bool, typer.Option("--list", help=say("cli.opt.docs_list"))] = False,
) -> int:
    from trackbed.sources import docs_check

    if list_only:
        found = docs_check.marked(folder)
        rows = [[path, one.line, one.text.strip()] for path, blocks in found.items() for one in blocks]
        if not output.emit_json([{"document": row[0], "line": row[1], "text": row[2]} for row in rows]):
            output.table(
                [say("cli.word.document"), say("cli.word.line"), say("cli.word.command")],
                rows,
                empty=say("cli.docs_none"),
            )
        return 0
    ran = list(
        docs_check.check(
            folder, on_begin=lambda path, one: output.note(say("cli.docs_running", document=path, line=one.line))
        )
    )
    bad = [one for one in ran if not one.good]
    told = [{"document": one.document, "line": one.line, "status": one.status, "seconds": round(one.seconds, 3),
             "said": "" if one.good else one.said} for one in ran]  # fmt: skip
    if output.emit_json(told):
        return 1 if bad else 0
    for one in bad:
        words = "cli.docs_late" if one.status is None else "cli.docs_failed"
        output.line(
            say(
                words, document=one.document, line=one.line, status=one.status or 0, lasted=format_duration(one.seconds)
            )
        )
        for line in one.said.strip().splitlines()[-15:]:
            output.line(f"  {output.clean(line)}")
    output.line(say("cli.docs_checked", good=len(ran) - len(bad), count=len(ran)) if ran else say("cli.docs_none"))
    return 1 if bad else 0


@app.command("list", help=say("cli.about.docs.list"))
def list_documents(run: Run) -> None:
    with client() as api:
        found = api.docs.all(run)
    if not output.emit_json(found):
        output.table([say("cli.word.document"), say("cli.word.size")], [[one.path, format_size(one.size_bytes)] for one in found],
                     empty=say("cli.docs_no_documents"))  # fmt: skip


@app.command("show", help=say("cli.about.docs.show"))
def show(
    run: Run,
    path: Annotated[str, typer.Argument(metavar="PATH", help=say("cli.opt.docs_path"), show_default=False)] = "",
) -> None:
    with client() as api:
        found = api.docs.show(run, path)
    if not output.emit_json(found):
        for line in found.text.splitlines():
            output.line(output.clean(line))
