"""What files were when they were last read: a digest is taken from here while size, times and inode have not changed.

A file that was written shortly before it was read is read again next time: a later write in the same tick of the file
system's clock would not show (git calls it "racily clean"). The table is a cache; without it everything is read.
"""

import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
from blake3 import blake3

from trackbed.base.ids import FileDigest

_TICK_NS = 2_000_000_000  # the coarsest clock of a file system that we believe in
_VERSION = 1
State = tuple[int, int, int, int]  # size, mtime ns, ctime ns, inode


class _Row(msgspec.Struct, array_like=True):
    state: State
    digest: bytes
    read_ns: int  # when its reading began


class _Table(msgspec.Struct):
    version: int
    root: bytes
    rows: dict[bytes, _Row]


@dataclass(frozen=True)
class Change:
    """What differs between a folder and what was read of it before."""

    added: list[bytes]
    changed: list[bytes]  # by its state; its bytes may still be the same
    removed: list[bytes]

    @property
    def none(self) -> bool:
        return not (self.added or self.changed or self.removed)


class Seen:
    """The table of one folder, in a file of a cache folder. Not shared between threads."""

    def __init__(self, cache: Path, root: Path, *, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self._root = os.path.realpath(os.fsencode(root))
        self._file = cache / f"{blake3(self._root).hexdigest()[:32]}.seen"
        self._clock_ns = clock_ns
        self._rows = self._load()
        self._fresh: dict[bytes, _Row] = {}
        self.hits = self.misses = 0

    def digest_of(self, path: bytes, state: State) -> FileDigest | None:
        """The digest of a file that has not changed since it was read; None: read it."""
        row = self._rows.get(path)
        if row is None or row.state != state or max(state[1], state[2]) + _TICK_NS > row.read_ns:
            self.misses += 1
            return None
        self.hits += 1
        self._fresh[path] = row
        return FileDigest(row.digest.hex())

    def remember(self, path: bytes, state: State, digest: FileDigest, read_ns: int) -> None:
        self._fresh[path] = _Row(state, bytes.fromhex(digest), read_ns)

    def now_ns(self) -> int:
        return self._clock_ns()

    def changes(self, states: dict[bytes, State]) -> Change:
        """Compare a folder's files with what was read before, by their states alone."""
        return Change(
            sorted(states.keys() - self._rows.keys()),
            sorted(path for path in states.keys() & self._rows.keys() if self._rows[path].state != states[path]),
            sorted(self._rows.keys() - states.keys()),
        )

    def keep(self) -> None:
        """Write what this scan saw; a cache that cannot be written is no fault."""
        if self._fresh == self._rows:
            return
        data = msgspec.msgpack.encode(_Table(_VERSION, self._root, self._fresh))
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            aside = self._file.with_suffix(f".{secrets.token_hex(4)}")
            aside.write_bytes(blake3(data).digest() + data)
            aside.replace(self._file)
        except OSError:
            return
        self._rows = self._fresh

    def _load(self) -> dict[bytes, _Row]:
        try:
            data = self._file.read_bytes()
            if data[:32] != blake3(data[32:]).digest():
                return {}
            table = msgspec.msgpack.decode(data[32:], type=_Table)
        except (OSError, msgspec.DecodeError):
            return {}
        return table.rows if table.version == _VERSION and table.root == self._root else {}
