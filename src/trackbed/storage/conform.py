"""Does a place keep what a store needs of it? Tried with objects of our own below `probe/`, which are removed again."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from trackbed.base.errors import TrackbedError
from trackbed.storage.backends.port import Backend

_MANY = 30
_LARGE = 20 * 1024 * 1024  # three parts


@dataclass(frozen=True)
class Trial:
    name: str  # the sentence is `conform.<name>` of the catalogue
    needed: bool  # without it no store can live there
    holds: bool
    why: str = ""


def conform(backend: Backend) -> list[Trial]:
    """Try everything, in an order that tells the most about a place that is misconfigured."""
    below = f"probe/{secrets.token_hex(6)}"
    trials: list[Trial] = []

    def trial(name: str, needed: bool, act: Callable[[], bool]) -> None:
        try:
            trials.append(Trial(name, needed, act()))
        except TrackbedError as fault:
            trials.append(Trial(name, needed, False, fault.text()))

    large = secrets.token_bytes(1024) * (_LARGE // 1024)
    trial("put_and_get", True, lambda: _put(backend, f"{below}/small", b"small") == b"small")
    trial("multipart", True, lambda: _put(backend, f"{below}/large", large) == large)
    trial("range", True, lambda: backend.get(f"{below}/large", 9_000_000, 1000) == large[9_000_000:9_001_000])
    trial("replace", True, lambda: _put(backend, f"{below}/small", b"other") == b"other")
    trial("list", True, lambda: _list(backend, below))
    trial("delete", True, lambda: backend.delete(f"{below}/small") and backend.stat(f"{below}/small") is None)
    trial("conditions", False, lambda: _conditions(backend, f"{below}/c"))
    for info in list(backend.list(f"{below}/")):
        backend.delete(info.name)
    return trials


def _put(backend: Backend, name: str, data: bytes) -> bytes:
    backend.put(name, data)
    return backend.get(name)


def _list(backend: Backend, below: str) -> bool:
    names = [f"{below}/n/{number:03d}" for number in range(_MANY)]
    for name in names:
        backend.put(name, b"")
    return [info.name for info in backend.list(f"{below}/n/")] == names


def _conditions(backend: Backend, name: str) -> bool:
    first = backend.put_if(name, b"1", version=None) and not backend.put_if(name, b"2", version=None)
    now = backend.read(name)
    return bool(
        first and now and backend.put_if(name, b"3", version=now[1]) and not backend.put_if(name, b"4", version=now[1])
    )
