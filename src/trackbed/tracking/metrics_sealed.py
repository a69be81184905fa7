"""Reads sealed points: which objects a run has, their directories, pages and levels, each decoded once and kept for a while."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Row, select

from trackbed.base.errors import Damaged
from trackbed.base.ids import FileDigest
from trackbed.db import ReadTx
from trackbed.formats import points as fmt
from trackbed.formats.points import Directory, Level, Points, PointsFault
from trackbed.storage import Store
from trackbed.tracking.ingest_tables import seal
from trackbed.tracking.metrics_columns import Column
from trackbed.tracking.metrics_state import version_of

Seal = Row[Any]
KEPT_BYTES = 192 * 2**20
FETCH_BYTES = 8 * 2**20  # neighbouring pages are read together, up to this


def seals_of(tx: ReadTx, run_id: str) -> list[Seal]:
    """Return the objects of a run in the order of their positions."""
    return tx.rows(select(seal).where(seal.c.run_id == run_id).order_by(seal.c.first_pos))


def sealed_to(seals: Sequence[Seal]) -> int:
    """Return the last sealed position; 0 for none."""
    return seals[-1].last_pos if seals else 0


class Part(NamedTuple):
    """One chunk of one object."""

    seal: Seal
    directory: Directory
    chunk: int

    @property
    def size(self) -> int:
        return int(self.directory.count[self.chunk])

    @property
    def version(self) -> int:
        return version_of(int(self.directory.attempt[self.chunk]), int(self.directory.incarnation[self.chunk]))

    @property
    def steps(self) -> tuple[int, int]:
        return int(self.directory.low_step[self.chunk]), int(self.directory.high_step[self.chunk])

    @property
    def levelled(self) -> bool:
        return int(self.directory.level_size[self.chunk]) > 0

    def has(self, flags: int) -> bool:
        return int(self.directory.flags[self.chunk]) & flags == flags


@dataclass
class _Kept:
    value: Any
    size: int


class SealReader:
    """Threads may share it. What was used longest ago is dropped first."""

    def __init__(self, store: Store, most_bytes: int = KEPT_BYTES) -> None:
        self._store, self._most = store, most_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str, int], _Kept] = OrderedDict()
        self._bytes = 0

    def directory(self, seal: Seal) -> Directory:
        def read() -> tuple[Directory, int]:
            found = fmt.read_directory(lambda at, size: self._fetch(seal, at, size), seal.size_bytes)
            return found, 96 * len(found.key) + 64 * len(found.keys)

        return self._once((seal.digest, "directory", 0), read, seal)

    def parts(self, seals: Iterable[Seal], key: str) -> list[Part]:
        """Return the chunks of a key, of all ranks, in the order of positions within each rank."""
        found: list[Part] = []
        for one in seals:
            directory = self.directory(one)
            found += [Part(one, directory, chunk) for chunk in directory.of(key)]
        return found

    def column(self, parts: Sequence[Part]) -> list[Column]:
        """Return the points of each chunk."""
        for one in {part.seal.digest: part for part in parts}.values():
            self._load(
                one, {int(one.directory.page[part.chunk]) for part in parts if part.seal.digest == one.seal.digest}
            )
        return [self._cut(part) for part in parts]

    def level(self, part: Part) -> Level:
        directory, chunk = part.directory, part.chunk

        def read() -> tuple[Level, int]:
            body = self._fetch(part.seal, int(directory.level_at[chunk]), int(directory.level_size[chunk]))
            found = fmt.decode_level(body, part.size)
            return found, 64 * len(found.step)

        return self._once((part.seal.digest, "level", chunk), read, part.seal)

    def _cut(self, part: Part) -> Column:
        directory, chunk = part.directory, part.chunk
        page = self._page(part, int(directory.page[chunk]))
        start = int(directory.start[chunk])
        stretch = slice(start, start + part.size)
        version = np.full(part.size, part.version)
        return Column(page.step[stretch], page.ts[stretch], page.value[stretch], version)

    def _page(self, part: Part, number: int, body: bytes | None = None) -> Points:
        directory = part.directory

        def read() -> tuple[Points, int]:
            raw = body or self._fetch(part.seal, int(directory.page_at[number]), int(directory.page_size[number]))
            found = fmt.decode_page(raw, int(directory.page_count[number]))
            return found, 24 * len(found.step)

        return self._once((part.seal.digest, "page", number), read, part.seal)

    def _load(self, part: Part, pages: set[int]) -> None:
        """Decode the pages that are not kept, fetching neighbours in one piece."""
        with self._lock:
            wanted = sorted(page for page in pages if (part.seal.digest, "page", page) not in self._kept)
        at, size = part.directory.page_at, part.directory.page_size
        while wanted:
            group = [wanted.pop(0)]
            while (
                wanted and wanted[0] == group[-1] + 1 and at[wanted[0]] + size[wanted[0]] - at[group[0]] <= FETCH_BYTES
            ):
                group.append(wanted.pop(0))
            first = int(at[group[0]])
            raw = self._fetch(part.seal, first, int(at[group[-1]]) + int(size[group[-1]]) - first)
            for page in group:
                low = int(at[page]) - first
                self._page(part, page, raw[low : low + int(size[page])])

    def _fetch(self, seal: Seal, at: int, size: int) -> bytes:
        with self._store.open_range(FileDigest(seal.digest), at, size) as stream:
            return b"".join(stream)

    def _once(self, name: tuple[str, str, int], read: Callable[[], tuple[Any, int]], seal: Seal) -> Any:
        with self._lock:
            found = self._kept.get(name)
            if found is not None:
                self._kept.move_to_end(name)
                return found.value
        try:
            value, size = read()
        except PointsFault as fault:
            raise Damaged("points_damaged", digest=seal.digest, what=str(fault)) from fault
        with self._lock:
            if name not in self._kept:
                self._kept[name] = _Kept(value, size)
                self._bytes += size
            while self._bytes > self._most and len(self._kept) > 1:
                self._bytes -= self._kept.popitem(last=False)[1].size
        return value
