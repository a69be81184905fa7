"""The server of this machine's home folder: is it up, where, since when. `up` leaves `server.json`, and takes it away."""

import json
from pathlib import Path

import httpx
import msgspec
import psutil

from trackbed.base.home import home


class Marker(msgspec.Struct, kw_only=True):
    """What a running server says of itself in `<home>/server.json`."""

    pid: int
    url: str
    started_us: int = 0


def marker(folder: Path | None = None) -> Marker | None:
    """Return the marker of a server whose process is there; None else."""
    try:
        found = msgspec.convert(json.loads(((folder or home()) / "server.json").read_text(encoding="utf-8")), Marker)
        process = psutil.Process(found.pid)
        gone = process.status() == psutil.STATUS_ZOMBIE or process.create_time() * 1e6 > found.started_us + 60e6
        return None if gone else found
    except (OSError, ValueError, msgspec.ValidationError, psutil.Error):
        return None


def answers(url: str) -> bool:
    """Whether a Trackbed server answers there."""
    try:
        return httpx.get(f"{url}/healthz", timeout=2.0, trust_env=False).json().get("ok") is True
    except (httpx.HTTPError, ValueError, AttributeError):
        return False
