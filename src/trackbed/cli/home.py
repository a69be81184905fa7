"""The server of this machine's home folder: is it up, where, since when. `up` leaves `server.json`, and takes it away."""

import json
from dataclasses import dataclass
from pathlib import Path

from trackbed.base.home import home


@dataclass(frozen=True)
class Marker:
    """What a running server says of itself in `<home>/server.json`."""

    pid: int
    url: str
    started_us: int = 0


def marker(folder: Path | None = None) -> Marker | None:
    """Return the marker of a server whose process is there; None else."""
    import psutil

    try:
        told = json.loads(((folder or home()) / "server.json").read_text(encoding="utf-8"))
        found = Marker(int(told["pid"]), str(told["url"]), int(told.get("started_us", 0)))
        process = psutil.Process(found.pid)
        gone = process.status() == psutil.STATUS_ZOMBIE or process.create_time() * 1e6 > found.started_us + 60e6
        return None if gone else found
    except (OSError, ValueError, TypeError, KeyError, psutil.Error):
        return None


def answers(url: str) -> bool:
    """Whether a Trackbed server answers there."""
    import httpx

    try:
        return httpx.get(f"{url}/healthz", timeout=2.0, trust_env=False).json().get("ok") is True
    except (httpx.HTTPError, ValueError, AttributeError):
        return False
