"""Pointers as objects of a bucket or folder, moved by conditional put; or wherever callbacks of the server keep them."""

import secrets
from collections.abc import Callable
from typing import Protocol

import msgspec

from trackbed.base.errors import Conflict, Unavailable
from trackbed.storage.backends.port import Backend
from trackbed.storage.refs import check_name
from trackbed.storage.store import RefValue

REFS = "refs/"
_TRIES = 50  # lost races of one move; each means that somebody else's move went through


class Sealer(Protocol):
    """Names and contents that tell nothing to who holds no key. Contents are bound to the place where they lie."""

    def name(self, name: str) -> str:
        """The 64 hex digits under which a pointer lies."""
        ...

    def seal(self, place: str, data: bytes) -> bytes: ...
    def open(self, place: str, data: bytes) -> bytes:
        """Raises Damaged: it was not sealed for this place with this key."""
        ...


class _Stored(msgspec.Struct):
    name: str
    value: str
    epoch: int
    move: str  # tells one's own move from another's after a lost answer


class BackendRefs:
    """Adapter of `Refs` for a place that keeps conditions."""

    def __init__(self, backend: Backend, sealer: Sealer) -> None:
        self._backend = backend
        self._sealer = sealer

    def get(self, name: str) -> RefValue | None:
        stored, _ = self._read(name)
        return RefValue(stored.value, stored.epoch) if stored else None

    def compare_and_set(self, name: str, expected: str | None, new: str, *, epoch: int = 0) -> None:
        check_name(name)
        move = secrets.token_hex(8)
        place = self._sealer.name(name)
        data = self._sealer.seal(place, msgspec.json.encode(_Stored(name, new, epoch, move)))
        for _ in range(_TRIES):
            now, version = self._read(name)
            if now and now.move == move:
                return  # an earlier try went through and only its answer was lost
            if now and epoch < now.epoch:
                raise Conflict("epoch_superseded", name=name, epoch=epoch, current=now.epoch)
            if (now.value if now else None) != expected:
                raise Conflict("ref_moved", name=name, expected=expected or "-", actual=now.value if now else "-")
            try:
                if self._backend.put_if(REFS + place, data, version=version):
                    return
            except Unavailable:
                after, _ = self._read(name)
                if after is None or after.move != move:
                    raise
                return
        raise Unavailable("storage_ref_busy", name=name)

    def values(self) -> dict[str, RefValue]:
        """Every pointer, by name: what gc must keep."""
        found: dict[str, RefValue] = {}
        for info in self._backend.list(REFS):
            kept = self._backend.read(info.name)
            if kept is not None:
                stored = msgspec.json.decode(self._sealer.open(info.name[len(REFS) :], kept[0]), type=_Stored)
                found[stored.name] = RefValue(stored.value, stored.epoch)
        return found

    def _read(self, name: str) -> tuple[_Stored | None, str | None]:
        place = self._sealer.name(name)
        found = self._backend.read(REFS + place)
        if found is None:
            return None, None
        return msgspec.json.decode(self._sealer.open(place, found[0]), type=_Stored), found[1]


class CallbackRefs:
    """Adapter of `Refs` for pointers that live elsewhere: the server's database, where a bucket keeps no conditions."""

    def __init__(
        self, get: Callable[[str], RefValue | None], compare_and_set: Callable[[str, str | None, str, int], None]
    ) -> None:
        self._get = get
        self._compare_and_set = compare_and_set

    def get(self, name: str) -> RefValue | None:
        return self._get(name)

    def compare_and_set(self, name: str, expected: str | None, new: str, *, epoch: int = 0) -> None:
        check_name(name)
        self._compare_and_set(name, expected, new, epoch)
