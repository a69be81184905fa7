"""`trackbed space list|add|member`."""

from typing import Annotated

import typer

from trackbed.cli import output
from trackbed.cli.context import client, say, word
from trackbed.cli.options import group

app = group()
Name = Annotated[str, typer.Argument(metavar="SPACE", help=say("cli.opt.space"), show_default=False)]


@app.command("list", help=say("cli.about.space.list"))
def list_spaces() -> None:
    with client() as api:
        found = api.people.spaces()
    if output.emit_json(found):
        return
    head = [say(f"cli.word.{name}") for name in ("space", "role", "members")]
    output.table(
        head,
        [
            [
                one.name,
                word(f"role.{one.role}", one.role),
                ", ".join(f"{who}: {word(f'role.{role}', role)}" for who, role in one.members.items()),
            ]
            for one in found
        ],
    )


@app.command("add", help=say("cli.about.space.add"))
def add(
    name: Name,
    accept: Annotated[bool, typer.Option("--accept-one-trust-domain", help=say("cli.opt.accept_trust"))] = False,
) -> None:
    with client() as api:
        made = api.people.add_space(name, accept_one_trust_domain=accept)
    if not output.emit_json(made):
        output.line(say("cli.space_added", name=made.name))


@app.command("member", help=say("cli.about.space.member"))
def member(
    name: Name,
    person: Annotated[str, typer.Argument(metavar="PERSON", help=say("cli.opt.person"), show_default=False)],
    role: Annotated[str, typer.Argument(metavar="ROLE", help=say("cli.opt.role"), show_default=False)],
) -> None:
    with client() as api:
        made = api.people.set_role(name, person, "" if role == "none" else role)
    if not output.emit_json(made):
        output.line(", ".join(f"{who}: {word(f'role.{found}', found)}" for who, found in made.members.items()))
