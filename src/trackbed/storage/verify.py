"""Reading a store through: is every record, pack and frame what was written, and is everything there that a tree needs?

A sample reads every record, every footer and every page, and a share of the frames; full reads every frame. Whoever holds
the store and the key can run it: no index is believed (it is compared with the packs), no database is asked.
"""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from trackbed.base.errors import Damaged, TrackbedError, Unavailable
from trackbed.formats.footer import FrameRow, PackRows
from trackbed.storage.backends.port import ObjectInfo
from trackbed.storage.index import PACKS, FrameAt
from trackbed.storage.marks import Broken, Kept, mark, tree_records
from trackbed.storage.reader import read_footer
from trackbed.storage.store import Progress
from trackbed.storage.transfer import Pace, Tally

_THREADS = 2


@dataclass
class VerifyReport:
    trees: int = 0
    files: int = 0
    packs: int = 0
    frames: int = 0
    frames_read: int = 0
    bytes_stored: int = 0
    bytes_read: int = 0
    index_sound: bool = True
    index_lags: int = 0  # packs of which the index says something else than they do
    broken: list[Broken] = field(default_factory=list[Broken])

    @property
    def clean(self) -> bool:
        """Nothing is damaged and nothing is missing. (An index that lags is mended by using it.)"""
        return not self.broken


def verify(
    store: Kept,
    *,
    share: float = 1.0,
    pace: Pace | None = None,
    on_progress: Progress | None = None,
    choose: Callable[[], float] = random.random,
) -> VerifyReport:
    """Read `share` of the frames (1: all) and everything above them; name what is not right, and change nothing."""
    report = VerifyReport(index_sound=store.index.sound())
    if not report.index_sound:
        store.index.rebuild(store.backend, store.read_rows)
    store.refresh()
    infos = list(store.backend.list(PACKS))
    report.packs, report.bytes_stored = len(infos), sum(info.size for info in infos)
    tally = Tally(report.bytes_stored, on_progress)
    with ThreadPoolExecutor(_THREADS) as pool:
        for part in pool.map(lambda info: _Pack(store, info, share, pace, choose, tally).read(), infos):
            report.frames += part.frames
            report.frames_read += part.frames_read
            report.bytes_read += part.bytes_read
            report.index_lags += part.index_lags
            report.broken += part.broken
    trees, broken = tree_records(store)
    report.trees, report.broken = len(trees), report.broken + broken
    marks = mark(store, trees)
    report.files = len(marks.files)
    report.broken += marks.broken
    return report


class _Pack:
    def __init__(
        self, store: Kept, info: ObjectInfo, share: float, pace: Pace | None, choose: Callable[[], float], tally: Tally
    ) -> None:
        self._store, self._info, self._share, self._pace = store, info, share, pace
        self._choose, self._tally = choose, tally
        self._part = VerifyReport()

    def read(self) -> VerifyReport:
        part = self._part
        try:
            rows = self._rows()
        except Unavailable:
            raise
        except TrackbedError as fault:
            if fault.code != "storage_object_missing":
                part.broken.append(Broken(self._info.name, fault.code, fault.text()))
            return part
        part.frames = len(rows.frames)
        part.index_lags = int(not self._agrees(rows))
        left = self._info.size
        for row in rows.frames:
            left -= row.length
            if self._share >= 1 or self._choose() < self._share:
                self._frame(rows, row)
            self._tally.add(row.length)
        self._tally.add(max(left, 0))
        return part

    def _rows(self) -> PackRows:
        """By the footer; where that is spoiled by the frames, and said so."""
        try:
            return read_footer(self._store.backend, self._store.keys, self._info)
        except Damaged as fault:
            self._part.broken.append(Broken(self._info.name, fault.code, fault.text()))
            return self._store.read_rows(self._store.backend, self._info)

    def _frame(self, rows: PackRows, row: FrameRow) -> None:
        if self._pace:
            self._pace.take(row.length)
        self._part.frames_read += 1
        self._part.bytes_read += row.length
        try:
            self._store.check_frame(frame_at(rows, row), row.chunks)
        except Unavailable:
            raise
        except TrackbedError as fault:
            what = f"{self._info.name}#{row.frame_id.hex()}"
            self._part.broken.append(Broken(what, fault.code, fault.text()))

    def _agrees(self, rows: PackRows) -> bool:
        known = self._store.index.frames(rows.pack_id)
        return known == sorted((frame_at(rows, row) for row in rows.frames), key=lambda one: one.offset)


def frame_at(rows: PackRows, row: FrameRow) -> FrameAt:
    """Where a frame lies by what its own pack says."""
    return FrameAt(
        row.frame_id, rows.pack_id, row.offset, row.length, row.codec, row.depth, row.raw_length, row.bases
    )  # fmt: skip
