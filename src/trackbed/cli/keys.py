"""`trackbed keys export|rotate|proof`: on the machine and in the account of the server."""

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trackbed.base.errors import Conflict, Damaged
from trackbed.base.home import home
from trackbed.cli import output
from trackbed.cli.context import say
from trackbed.cli.options import group
from trackbed.cli.store import Place, here, open_here, write_private

if TYPE_CHECKING:
    from trackbed.storage.key_file import KeyFile

app = group()


@app.command("export", help=say("cli.about.keys.export"))
def export(
    to: Annotated[
        Path | None, typer.Option("--to", "-o", metavar="FILE", help=say("cli.opt.keys_to"), show_default=False)
    ] = None,
    store: Place = "",
) -> None:
    from trackbed.storage.open import open_backend

    keys, backend = _keys(), open_backend(store or here())
    kit = keys.kit(backend)
    if to is None:
        typer.echo(kit, nl=False)
    else:
        try:
            write_private(to, kit)
        except FileExistsError as fault:
            raise Conflict("key_kit_there", path=str(to)) from fault
    keys.note_export(backend)
    if to is not None and not output.emit_json({"path": str(to)}):
        output.line(say("cli.keys_exported", path=to))


@app.command("rotate", help=say("cli.about.keys.rotate"))
def rotate(store: Place = "") -> None:
    from trackbed.storage.domains import further_places
    from trackbed.storage.open import open_backend

    place = store or here()
    old, new = _keys().rotate(open_backend(place), further_places(place))
    if not output.emit_json({"old": old, "new": new}):
        output.line(say("cli.keys_rotated", old=old, new=new))


@app.command("proof", help=say("cli.about.keys.proof"))
def proof(store: Place = "") -> None:
    """Plant a marker, look for it in every object as it lies there, and read it back with the key."""
    from trackbed.storage.ring import planted

    marker = f"trackbed-proof-{secrets.token_hex(24)}".encode()
    opened = open_here(store)
    digest, size = opened.put_blob(marker * 4)
    found = list(planted(opened.backend, [marker]))
    back = opened.open_range(digest).read()
    objects = sum(1 for _ in opened.backend.list(""))
    opened.close()
    if found or back != marker * 4:
        raise Damaged("key_proof_failed", name=found[0][0] if found else digest, bytes=size)
    if not output.emit_json({"objects": objects, "found": 0, "read_back": True}):
        output.line(say("cli.keys_proved", objects=objects))


def _keys() -> "KeyFile":
    from trackbed.storage.key_file import KeyFile

    return KeyFile(home() / "keys")
