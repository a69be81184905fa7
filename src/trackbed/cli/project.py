"""`trackbed project list|set-naming`."""

from typing import Annotated

import typer

from trackbed.cli import output
from trackbed.cli.context import client, say
from trackbed.cli.options import Space, group

app = group()


@app.command("list", help=say("cli.about.project.list"))
def list_projects() -> None:
    with client() as api:
        found = api.people.projects()
    if output.emit_json(found):
        return
    head = [say(f"cli.word.{name}") for name in ("project", "space", "runs", "created", "naming")]
    rows = [
        [one.name, one.space, one.runs, output.when(one.created_us), "  ".join([one.naming.name, *one.naming.tags]).strip() if one.naming else ""]
        for one in found
    ]  # fmt: skip
    output.table(head, rows)


@app.command("set-naming", help=say("cli.about.project.set-naming"))
def set_naming(
    project: Annotated[str, typer.Argument(metavar="PROJECT", help=say("cli.opt.project"), show_default=False)],
    name: Annotated[
        str, typer.Option("--name", metavar="PATTERN", help=say("cli.opt.naming_name"), show_default=False)
    ] = "",
    tags: Annotated[
        list[str] | None, typer.Option("--tag", metavar="PATTERN", help=say("cli.opt.naming_tag"), show_default=False)
    ] = None,
    space: Space = "default",
) -> None:
    with client() as api:
        made = api.people.set_naming(project, name=name, tags=tags or [], space=space)
    if output.emit_json(made):
        return
    if not made.name and not made.tags:
        output.line(say("cli.naming_gone", project=project))
        return
    output.line(say("cli.naming_set", project=project))
    pairs = [(made.name, made.example), *zip(made.tags, made.tag_examples, strict=True)]
    output.table([say("cli.word.pattern"), say("cli.word.example")], [[*pair] for pair in pairs if pair[0]])
