"""Which server, and as whom: `TRACKBED_URL` and `TRACKBED_TOKEN`, else `<home>/client/credentials.json`.

`{"url": URL, "token": "tbp_…", "servers": {URL: {"token": …}}}`, mode 0600; url and token are those of the default server.
`up` and `login` write it, `logout` forgets. Light: the SDK reads it too.
"""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from trackbed.base.errors import Unauthenticated
from trackbed.base.home import home


class Login(NamedTuple):
    """A server and the token for it; the token may be empty (then only what is public answers)."""

    url: str
    token: str


def credentials_path() -> Path:
    return home() / "client" / "credentials.json"


def find(url: str = "", *, path: Path | None = None) -> Login | None:
    """Return the login for `url`, or for the default server; None if none is known.

    The environment wins: inside a job it is the relay of the attempt.
    """
    servers, default = _stored(path)
    named = clean(os.environ.get("TRACKBED_URL", ""))
    token = os.environ.get("TRACKBED_TOKEN", "")
    wanted = clean(url) or named or default
    if not wanted:
        return None
    return Login(wanted, token if token and wanted == (named or wanted) else servers.get(wanted, ""))


def need(url: str = "", *, path: Path | None = None) -> Login:
    """Return the login.

    Raises:
        Unauthenticated: `login_missing`: no server is known.
    """
    login = find(url, path=path)
    if login is None:
        raise Unauthenticated("login_missing")
    return login


def remember(login: Login, *, default: bool = True, path: Path | None = None) -> None:
    """Keep a token for a server; readable by this account only, replaced in one step."""
    servers, first = _stored(path)
    servers[clean(login.url)] = login.token
    _write(servers, clean(login.url) if default or not first else first, path)


def forget(url: str, *, path: Path | None = None) -> bool:
    """Drop the token for a server; whether there was one."""
    servers, default = _stored(path)
    if servers.pop(clean(url), None) is None:
        return False
    _write(servers, "" if default == clean(url) else default, path)
    return True


def clean(url: str) -> str:
    """`localhost:8470/` → `http://localhost:8470`."""
    bare = url.strip().rstrip("/")
    return bare if "://" in bare or not bare else f"http://{bare}"


def _stored(path: Path | None) -> tuple[dict[str, str], str]:
    """Return token by server, and the default server."""
    try:
        value: Any = json.loads((path or credentials_path()).read_text(encoding="utf-8"))
        servers = {str(url): str(kept["token"]) for url, kept in value.get("servers", {}).items()}
        default = str(value.get("url", ""))
        return (servers | {default: str(value.get("token", ""))} if default else servers), default
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}, ""


def _write(servers: dict[str, str], default: str, path: Path | None) -> None:
    target = path or credentials_path()
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    stored = {
        "url": default,
        "token": servers.get(default, ""),
        "servers": {url: {"token": servers[url]} for url in servers},
    }
    part = target.with_name(f".{target.name}.{os.getpid()}")
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump(stored, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    part.replace(target)
