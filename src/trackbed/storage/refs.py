"""Pointers as files: one lock, compare, write aside, rename. Two servers and their supervisors may share the folder."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from trackbed.base.errors import BadInput, Conflict
from trackbed.formats.tree import file_digest
from trackbed.storage.files import disk, write_durably
from trackbed.storage.store import RefValue


class _Stored(msgspec.Struct):
    name: str
    value: str
    epoch: int


class LocalRefs:
    """Names are labels: the file is called by the digest of the name and holds the name."""

    def __init__(self, folder: Path, aside: Path) -> None:
        self._folder = folder
        self._aside = aside

    def get(self, name: str) -> RefValue | None:
        stored = self._read(name)
        return RefValue(stored.value, stored.epoch) if stored else None

    def compare_and_set(self, name: str, expected: str | None, new: str, *, epoch: int = 0) -> None:
        check_name(name)
        with self._lock():
            now = self._read(name)
            if now and epoch < now.epoch:
                raise Conflict("epoch_superseded", name=name, epoch=epoch, current=now.epoch)
            if (now.value if now else None) != expected:
                raise Conflict("ref_moved", name=name, expected=expected or "-", actual=now.value if now else "-")
            data = msgspec.json.encode(_Stored(name, new, epoch))
            with disk(self._folder):
                write_durably(self._path(name), data, aside=self._aside, step="ref")

    def values(self) -> dict[str, RefValue]:
        """Every pointer, by name: what gc must keep."""
        found: dict[str, RefValue] = {}
        for path in self._folder.glob("*.json"):
            stored = msgspec.json.decode(path.read_bytes(), type=_Stored)
            found[stored.name] = RefValue(stored.value, stored.epoch)
        return found

    def _path(self, name: str) -> Path:
        return self._folder / f"{file_digest(name.encode('utf-8', 'surrogatepass'))}.json"

    def _read(self, name: str) -> _Stored | None:
        try:
            return msgspec.json.decode(self._path(name).read_bytes(), type=_Stored)
        except FileNotFoundError:
            return None

    @contextmanager
    def _lock(self) -> Generator[None]:
        fd = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)  # gives the lock back


def check_name(name: str) -> None:
    """Raise BadInput (`ref_name_bad`) for what cannot be the name of a pointer."""
    if not 1 <= len(name) <= 500 or not name.isprintable():
        raise BadInput("ref_name_bad", name=name[:500])
