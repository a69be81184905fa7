"""The first admin of an installation, the credentials of its own account's CLI, and files that only their owner reads."""

import contextlib
import getpass
import json
import os
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import select

from trackbed import access
from trackbed.access import tables
from trackbed.base.errors import TrackbedError
from trackbed.db import Tx
from trackbed.domain.scope import SYSTEM
from trackbed.server.app import App
from trackbed.server.settings import LOOPBACK


def prepare_installation(app: App) -> None:
    """Make the first admin, named after the account that runs the server, with the default space and project."""
    app.db.write(lambda tx: access.found(tx, admin=account()), actor=SYSTEM.actor)


def account() -> str:
    """Return the name of the operating system's account, as a person's name may look."""
    with contextlib.suppress(KeyError, OSError):
        name = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in getpass.getuser())
        return name.strip("._-") or "admin"
    return "admin"


def write_credentials(app: App) -> None:
    """Leave the admin's token in `client/credentials.json` (0600) for the CLI of the same account.

    A good token that is there for this server stays. Other servers stay too, and so does a default one elsewhere.
    The form of the file is that of `trackbed.client.config`.
    """
    path = app.home / "client" / "credentials.json"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    known = read_json(path)
    servers: dict[str, Any] = dict(known.get("servers") or {})
    default = str(known.get("url") or "")
    candidates = [str((servers.get(app.url) or {}).get("token", "")), str(known.get("token") or "")]

    def work(tx: Tx) -> str:
        for secret in candidates:
            with contextlib.suppress(TrackbedError):
                access.authenticate(tx, secret)
                return secret
        person = first_admin(tx)
        return access.issue_token(tx, SYSTEM, person_id=person, label=f"CLI of {socket.gethostname()}").secret

    token = app.db.write(work, actor=SYSTEM.actor)
    servers[app.url] = {"token": token}
    if not default or urlsplit(default).hostname in LOOPBACK:
        default = app.url
    kept = {"url": default, "token": servers.get(default, {}).get("token", ""), "servers": servers}
    if kept != known:
        write_private(path, kept)


def first_admin(tx: Tx) -> str:
    """Return the id of the admin who was here first."""
    table = tables.person
    stmt = select(table.c.id).where(table.c.admin == 1, table.c.disabled == 0).order_by(table.c.created_us)
    return str(tx.scalar(stmt))


def read_json(path: Path) -> dict[str, Any]:
    """Return the object that a JSON file holds; an empty one where there is none."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def write_private(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON file that only its owner reads, in one step."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
