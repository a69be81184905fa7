"""`trackbed login`, `logout`, `whoami`."""

import sys
from getpass import getpass
from typing import Annotated

import typer

from trackbed.base.errors import BadInput
from trackbed.cli import context, output
from trackbed.cli.context import client, say
from trackbed.client import config


def login(
    url: Annotated[str, typer.Argument(metavar="URL", help=say("cli.opt.url"), show_default=False)] = "",
    token: Annotated[str, typer.Option("--token", metavar="TOKEN", help=say("cli.opt.token"), show_default=False)] = "",
) -> None:
    known = config.find(url or context.current().server)
    address = config.clean(url or context.current().server) or (known.url if known else "")
    if not address:
        raise BadInput("cli_login_url")
    secret = token or (getpass(say("cli.ask_token", url=address)) if sys.stdin.isatty() else sys.stdin.readline())
    if not secret.strip():
        raise BadInput("cli_login_token", url=address)
    from trackbed.client.api import Client

    with Client(address, secret.strip()) as api:
        me = api.me()
    config.remember(config.Login(address, secret.strip()))
    if not output.emit_json(me):
        output.line(say("cli.logged_in", name=me.name, url=address))


def logout(
    url: Annotated[str, typer.Argument(metavar="URL", help=say("cli.opt.url"), show_default=False)] = "",
) -> None:
    known = config.find(url or context.current().server)
    if known is None or not config.forget(known.url):
        raise BadInput("cli_not_logged_in", url=known.url if known else url or "-")
    output.line(say("cli.logged_out", url=known.url))


def whoami() -> None:
    with client() as api:
        me = api.me()
    if output.emit_json(me):
        return
    roles = ", ".join(f"{space}: {context.word(f'role.{role}', role)}" for space, role in me.roles.items())
    output.facts([
        (say("cli.word.person"), me.name),
        (say("cli.word.server"), api.url),
        (say("cli.word.role"), context.word("role.admin", "admin") if me.admin else roles),
        (say("cli.word.spaces"), roles if me.admin else ""),
    ])  # fmt: skip
