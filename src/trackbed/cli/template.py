"""`trackbed template add|list|show|diff`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from trackbed.cli import output
from trackbed.cli.context import client, say
from trackbed.cli.options import Space, group

app = group()
Ref = Annotated[str, typer.Argument(metavar="NAME[@VERSION]", help=say("cli.opt.template_ref"), show_default=False)]


@app.command("add", help=say("cli.about.template.add"))
def add(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=say("cli.opt.template_file"), show_default=False)],
    space: Space = "default",
    expected: Annotated[
        int | None,
        typer.Option("--expected", metavar="VERSION", help=say("cli.opt.template_expected"), show_default=False),
    ] = None,
) -> None:
    with client() as api:
        made = api.templates.add(file, space=space, expected=expected)
    if not output.emit_json(made):
        words = "cli.template_unchanged" if made.unchanged else "cli.template_added"
        output.line(say(words, ref=f"{made.name}@{made.version}", digest=made.digest[:15]))


@app.command("list", help=say("cli.about.template.list"))
def list_templates() -> None:
    with client() as api:
        found = api.templates.all()
    if output.emit_json(found):
        return
    head = [say(f"cli.word.{name}") for name in ("template", "space", "description", "created", "person")]
    rows = [
        [f"{one.name}@{one.latest}", one.space, new.description, output.when(new.created_us), new.created_by]
        for one in found
        for new in one.versions
    ]
    output.table(head, rows, empty=say("cli.no_templates"))


@app.command("show", help=say("cli.about.template.show"))
def show(ref: Ref) -> None:
    with client() as api:
        found = api.templates.resolve(ref)
    if output.emit_json(found):
        return
    output.facts([
        (say("cli.word.template"), f"{found.name}@{found.version}"),
        (say("cli.word.description"), found.description),
        (say("cli.word.created"), f"{output.when(found.created_us)}  {found.created_by}"),
        (say("cli.word.required"), ", ".join(found.required)),
        (say("cli.word.locked"), ", ".join(found.locked)),
    ])  # fmt: skip
    output.line()
    output.line(found.text.rstrip())


@app.command("diff", help=say("cli.about.template.diff"))
def diff(before: Ref, after: Ref) -> int:
    from trackbed.workflow.template import differences, read_template

    with client() as api:
        one, other = api.templates.resolve(before), api.templates.resolve(after)
    found = differences(read_template(one.text)[0], read_template(other.text)[0])
    if output.emit_json([{"field": each.field, "before": each.before, "after": each.after} for each in found]):
        return 0
    head = [say("cli.word.field"), f"{one.name}@{one.version}", f"{other.name}@{other.version}"]
    rows = [[each.field, _text(each.before), _text(each.after)] for each in found]
    output.table(head, rows, empty=say("cli.template_same"))
    return 0


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
