"""What was read and found clean before: the line of an unchanged file in the listing, without opening it.

A line is kept only for a file that was searched for secrets and has none, by the rules of this version. A file that was
written shortly before it was read is not kept: a later write in the same tick of the file system's clock would not show.
The table is a cache; without it everything is read.
"""

import os
import secrets
import time
from pathlib import Path
from typing import Any

import msgspec
from blake3 import blake3

from trackbed.sources.secrets import RULES
from trackbed.storage.scan import Found

_TICK_NS = 2_000_000_000  # the coarsest clock of a file system that we believe in
_Row = tuple[int, int, int, int, int, bytes]  # mode, size, mtime ns, ctime ns, inode, line of the listing


class Known:
    """The table of one folder, in a file of a cache folder. Not shared between threads."""

    def __init__(self, cache: Path | None, root: Path) -> None:
        name = blake3(os.fsencode(root) + b"\0" + RULES.encode()).hexdigest()[:32]
        self._file = cache / f"{name}.known" if cache else None
        self._began_ns = time.time_ns()
        self._rows = self._load()
        self._fresh: dict[bytes, _Row] = {}

    def line(self, one: Found) -> bytes | None:
        """The line of a file that is as it was when it was read; None: read it."""
        row = self._rows.get(one.path)
        if (
            row is None or row[3] != one.ctime_ns or row[2] != one.mtime_ns or row[1] != one.size or row[4] != one.inode
            or row[0] != one.mode
        ):  # fmt: skip
            return None
        self._fresh[one.path] = row
        return row[5]

    def remember(self, one: Found, line: bytes) -> None:
        """Note a file that was read whole and has nothing to hide."""
        if max(one.mtime_ns, one.ctime_ns) + _TICK_NS <= self._began_ns:
            self._fresh[one.path] = (one.mode, one.size, one.mtime_ns, one.ctime_ns, one.inode, line)

    def keep(self) -> None:
        """Write what this capture saw; a cache that cannot be written is no fault."""
        if self._file is None or self._fresh == self._rows:
            return
        data = msgspec.msgpack.encode(self._fresh)
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            aside = self._file.with_suffix(f".{secrets.token_hex(4)}")
            aside.write_bytes(blake3(data).digest() + data)
            aside.replace(self._file)
        except OSError:
            return

    def _load(self) -> dict[bytes, _Row]:
        if self._file is None:
            return {}
        try:
            data = self._file.read_bytes()
            digest, table = data[:32], data[32:]
            if digest != blake3(table).digest():
                return {}
            rows: Any = msgspec.msgpack.decode(table, type=dict[bytes, _Row])
        except (OSError, msgspec.DecodeError):
            return {}
        return rows
