"""`trackbed people list|add|link`."""

from typing import TYPE_CHECKING, Annotated

import typer

from trackbed.cli import output
from trackbed.cli.context import client, say
from trackbed.cli.options import group

if TYPE_CHECKING:
    from trackbed.wire.access import PersonView

app = group()
Name = Annotated[str, typer.Argument(metavar="NAME", help=say("cli.opt.person"), show_default=False)]


@app.command("list", help=say("cli.about.people.list"))
def list_people() -> None:
    with client() as api:
        found = api.people.people()
    if output.emit_json(found):
        return
    head = [say(f"cli.word.{name}") for name in ("person", "admin", "disabled")]
    output.table(
        head,
        [
            [one.name, say("cli.word.yes") if one.admin else "", say("cli.word.yes") if one.disabled else ""]
            for one in found
        ],
    )


@app.command("add", help=say("cli.about.people.add"))
def add(name: Name, admin: Annotated[bool, typer.Option("--admin", help=say("cli.opt.admin"))] = False) -> None:
    with client() as api:
        _say(api.people.add_person(name, admin=admin))


@app.command("link", help=say("cli.about.people.link"))
def link(name: Name) -> None:
    with client() as api:
        _say(api.people.login_link(name))


def _say(person: "PersonView") -> None:
    if not output.emit_json(person):
        output.note(say("cli.login_link", name=person.name))
        output.line(person.login_url)
