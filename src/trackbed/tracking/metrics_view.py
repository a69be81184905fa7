"""All points of a run at one snapshot: sealed objects, then the tail. `Curves` is the cache of a server process."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from trackbed.db import ReadTx
from trackbed.storage import Store
from trackbed.tracking.ingest_summary import Known, Unread
from trackbed.tracking.metrics_columns import Column, joined
from trackbed.tracking.metrics_sealed import Part, Seal, SealReader, sealed_to, seals_of
from trackbed.tracking.metrics_tail import Loose, Tail

CACHED_POINTS = 2_000_000  # of all tails together
CACHED_RUNS = 1_000


@dataclass(frozen=True)
class View:
    """Points of one run. Good after its transaction has ended; nothing in it is to be changed."""

    run_id: str
    seals: Sequence[Seal]
    loose: Loose
    reader: SealReader

    @property
    def cursor(self) -> int:
        """Position of the newest frame."""
        return int(self.loose.pos[-1]) if len(self.loose.pos) else sealed_to(self.seals)

    def parts(self, key: str) -> dict[int, list[Part]]:
        """Return rank → sealed chunks of a key, in the order of their positions."""
        found: dict[int, list[Part]] = {}
        for part in self.reader.parts(self.seals, key):
            found.setdefault(int(part.directory.rank[part.chunk]), []).append(part)
        return found

    def columns(self, key: str, rank: int | None = None, *, lowest: bool = False) -> dict[int, Column]:
        """Return rank → all points of a key: of every rank, of one, or of the lowest that has any."""
        parts = self.parts(key)
        ranks = sorted({*parts, *self.loose.ranks(key)}) if rank is None else [rank]
        return {one: self.column(key, one, parts.get(one, [])) for one in (ranks[:1] if lowest else ranks)}

    def column(self, key: str, rank: int, parts: Sequence[Part]) -> Column:
        """Return all points of a stream; `parts` are its sealed chunks."""
        loose = self.loose.column(key, rank)
        return joined([*self.reader.column(parts), *([loose] if len(loose) else [])])


def known(reader: SealReader, seals: Sequence[Seal], need: Unread) -> Known:
    """Return what counts among sealed points, as far as an ingest asked for it."""
    found: dict[tuple[str, int], Column] = {}
    for key, rank in need.streams:
        parts = [part for part in reader.parts(seals, key) if int(part.directory.rank[part.chunk]) == rank]
        if need.low is not None and need.high is not None:
            parts = [part for part in parts if part.steps[1] >= need.low and part.steps[0] <= need.high]
        found[key, rank] = joined(reader.column(parts)).counted()
    return Known(sealed_to(seals), need.low, need.high, found)


class Curves:
    """Threads may share it; the least used runs are dropped first."""

    def __init__(self, store: Store, most_points: int = CACHED_POINTS) -> None:
        self._most = most_points
        self._tails: OrderedDict[str, Tail] = OrderedDict()
        self._lock = threading.Lock()
        self.reader = SealReader(store)

    def view(self, tx: ReadTx, run_id: str) -> View:
        """Return what the snapshot holds of a run."""
        seals = seals_of(tx, run_id)
        with self._lock:
            tail = self._tails.setdefault(run_id, Tail())
            self._tails.move_to_end(run_id)
        loose = tail.up_to_date(tx, run_id, sealed_to(seals))
        self._shrink()
        return View(run_id, seals, loose, self.reader)

    def _shrink(self) -> None:
        with self._lock:
            held = sum(tail.points for tail in self._tails.values())
            while len(self._tails) > CACHED_RUNS or (held > self._most and len(self._tails) > 1):
                held -= self._tails.popitem(last=False)[1].points
