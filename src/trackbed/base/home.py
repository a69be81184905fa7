"""Where Trackbed keeps its things on this machine."""

import json
import os
import secrets
from pathlib import Path


def home() -> Path:
    """Return `$TRACKBED_HOME`, or `~/.trackbed`. Never read inside a job."""
    return Path(os.environ.get("TRACKBED_HOME") or Path.home() / ".trackbed").expanduser().absolute()


def store_url(folder: Path) -> str:
    """The store of a home folder: the one that `up --store` named last, else the folder `store` in it."""
    try:
        return str(json.loads((folder / "store.json").read_text(encoding="utf-8"))["url"])
    except (OSError, ValueError, KeyError, TypeError):
        return (folder / "store").absolute().as_uri()


def remember_store(folder: Path, url: str) -> None:
    """Let every later start, and every command that opens the store itself, use this one. Keys never stand in a URL."""
    if url == store_url(folder):
        return
    aside = folder / f".store.{secrets.token_hex(4)}"
    aside.write_text(json.dumps({"url": url}) + "\n", encoding="utf-8")
    aside.chmod(0o600)
    aside.replace(folder / "store.json")
