"""`trackbed code checkout|diff`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trackbed.cli import output
from trackbed.cli.context import client, say
from trackbed.cli.options import Run, group

if TYPE_CHECKING:
    from trackbed.wire.code import CodeDiff, DiffLine, FileDiff

app = group()
Other = Annotated[str, typer.Argument(metavar="RUN", help=say("cli.opt.run"), show_default=False)]


@app.command("checkout", help=say("cli.about.code.checkout"))
def checkout(
    run: Run,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help=say("cli.opt.code_target"), show_default=False)],
) -> None:
    live = output.Live(every_s=2.0)
    with client() as api:
        facts = api.code.checkout(run, folder, on_progress=lambda done, total: output.sending(live, done, total))
        live.clear()
    if not output.emit_json(facts):
        output.line(say("cli.code_checked_out", files=facts.files, folder=str(folder), digest=facts.digest[:15]))


@app.command("diff", help=say("cli.about.code.diff"))
def diff(
    before: Run,
    after: Other,
    path: Annotated[str, typer.Argument(metavar="PATH", help=say("cli.opt.code_path"), show_default=False)] = "",
    names: Annotated[bool, typer.Option("--names", help=say("cli.opt.code_names"))] = False,
) -> None:
    with client() as api:
        found = api.code.diff(before, after, path=path)
    if output.emit_json(found):
        return
    tell(found, names=names)


def tell(found: "CodeDiff", *, names: bool = False) -> None:
    """Print a code diff: the files, then the lines of each with who brought them."""
    if found.same or not found.files:
        output.line(say("cli.code_same", before=found.before, after=found.after))
        return
    head = [say(f"cli.word.{name}") for name in ("file", "change", "lines")]
    output.table(head, [[_path(file), say(f"cli.change.{file.change}"), _count(file)] for file in found.files])
    for file in found.files if not names else ():
        if file.lines:
            output.line()
            output.line(f"--- {file.path_before or file.path}  {found.before}")
            output.line(f"+++ {file.path}  {found.after}")
            for line in lines_of(file):
                output.line(line)


def lines_of(file: "FileDiff") -> list[str]:
    """The lines of a file's diff, as they are printed."""
    return [_line(line) for line in file.lines]


def _path(file: "FileDiff") -> str:
    return f"{file.path_before} → {file.path}" if file.path_before else file.path


def _count(file: "FileDiff") -> str:
    return say(f"cli.unshown.{file.unshown}") if file.unshown else f"+{file.added} -{file.removed}"


def _line(line: "DiffLine") -> str:
    if line.op == "@":
        return "@@"
    who = f"{line.commit[:9] or line.run} {line.author}".strip() if line.op == "+" else ""
    return f"{line.op}{line.text}" + (f"    ‹{who}›" if who else "")
