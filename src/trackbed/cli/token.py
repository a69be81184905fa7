"""`trackbed token list|create|revoke`."""

from typing import Annotated

import typer

from trackbed.base.errors import BadInput
from trackbed.base.units import parse_duration
from trackbed.cli import output
from trackbed.cli.context import client, say
from trackbed.cli.options import group

app = group()


@app.command("list", help=say("cli.about.token.list"))
def list_tokens() -> None:
    with client() as api:
        found = api.people.tokens()
    if output.emit_json(found):
        return
    head = [
        say(f"cli.word.{name}") for name in ("token", "label", "person", "created", "last_used", "expires", "revoked")
    ]
    rows = [
        [
            one.id,
            one.label,
            one.person,
            output.when(one.created_us),
            output.when(one.last_used_us),
            output.when(one.expires_us),
            say("cli.word.yes") if one.revoked else "",
        ]
        for one in found
    ]
    output.table(head, rows)


@app.command("create", help=say("cli.about.token.create"))
def create(
    label: Annotated[
        str, typer.Option("--label", "-l", metavar="TEXT", help=say("cli.opt.label"), show_default=False)
    ] = "",
    expires: Annotated[
        str, typer.Option("--expires", metavar="TIME", help=say("cli.opt.expires"), show_default=False)
    ] = "",
    person: Annotated[
        str, typer.Option("--person", metavar="NAME", help=say("cli.opt.for_person"), show_default=False)
    ] = "",
) -> None:
    try:
        expires_s = parse_duration(expires) if expires else None
    except ValueError:
        raise BadInput("cli_bad_duration", value=expires, option="--expires") from None
    with client() as api:
        made = api.people.create_token(label, expires_s=expires_s, person=person)
    if not output.emit_json(made):
        output.note(say("cli.token_once", id=made.id))
        output.line(made.secret)


@app.command("revoke", help=say("cli.about.token.revoke"))
def revoke(
    token: Annotated[str, typer.Argument(metavar="TOKEN_ID", help=say("cli.opt.token_id"), show_default=False)],
) -> None:
    with client() as api:
        api.people.revoke_token(token)
    output.line(say("cli.token_revoked", id=token))
