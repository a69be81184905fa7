"""The unsealed points of a run, decoded once per process: a cache keyed by the last frame.

A read fetches what is newer first, so what was acknowledged is seen by every process at once. A `Tail` only grows; what was
sealed meanwhile is cut off at the front.
"""

import threading
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sqlalchemy import select

from trackbed.db import ReadTx
from trackbed.formats import spool
from trackbed.formats.points import Floats, Ints
from trackbed.formats.spool import Metrics
from trackbed.tracking.ingest_tables import frame
from trackbed.tracking.metrics_columns import Column
from trackbed.tracking.metrics_state import version_of


def frames_of(
    tx: ReadTx, run_id: str, *, low: int | None = None, high: int | None = None, after: int = 0, most: int = 0
) -> Iterator[tuple[Any, Metrics]]:
    """Yield the metric frames of a run in the order of `pos`, those that may hold steps from `low` to `high`.

    `most` is how many points are enough; 0: all.
    """
    stmt = select(frame).where(frame.c.run_id == run_id, frame.c.pos > after).order_by(frame.c.pos)
    if low is not None and high is not None:
        stmt = stmt.where(frame.c.last_step >= low, frame.c.first_step <= high)
    points = 0
    for row in chain.from_iterable(tx.pages(stmt, rows=16)):
        yield row, spool.decode_metrics(spool.decode(row.bytes).frames[0].body)
        points += row.n
        if most and points >= most:
            return


class Loose(NamedTuple):
    """Points of all streams in the order in which they became durable."""

    keys: dict[str, int]
    key: Ints  # number of the key
    rank: Ints
    version: Ints
    pos: Ints  # of the frame
    step: Ints
    ts: Ints
    value: Floats

    def cut(self, places: "npt.NDArray[Any] | slice") -> "Loose":
        return Loose._make([self.keys, *(column[places] for column in self[1:])])

    def behind(self, pos: int) -> "Loose":
        """Return the points of later frames."""
        return self.cut(slice(int(np.searchsorted(self.pos, pos, "right")), None))

    def ranks(self, key: str) -> list[int]:
        number = self.keys.get(key)
        return [] if number is None else np.unique(self.rank[self.key == number]).tolist()

    def places(self, key: str, rank: int) -> Ints:
        number = self.keys.get(key)
        if number is None:
            return np.empty(0, np.int64)
        return np.flatnonzero((self.key == number) & (self.rank == rank))

    def column(self, key: str, rank: int) -> Column:
        places = self.places(key, rank)
        return Column(self.step[places], self.ts[places], self.value[places], self.version[places])


def no_points() -> Loose:
    return Loose._make([{}, *(np.empty(0, np.int64) for _ in range(6)), np.empty(0, np.float64)])


def gather(
    tx: ReadTx,
    run_id: str,
    *,
    after: int,
    keys: dict[str, int],
    low: int | None = None,
    high: int | None = None,
    most: int = 0,
) -> list[Loose]:
    """Return frames behind a position, decoded; names that are new get the next number in `keys`."""
    found: list[Loose] = []
    for row, points in frames_of(tx, run_id, low=low, high=high, after=after, most=most):
        numbers = np.array([keys.setdefault(key, len(keys)) for key in points.keys], np.int64)
        size = len(points.step)
        found.append(
            Loose(
                keys, numbers[np.frombuffer(points.key, np.uint32)], np.full(size, row.rank),
                np.full(size, version_of(row.attempt, row.incarnation)), np.full(size, row.pos),
                np.frombuffer(points.step, np.int64), np.frombuffer(points.ts, np.int64),
                np.frombuffer(points.value, np.float64),
            )
        )  # fmt: skip
    return found


def together(keys: dict[str, int], parts: list[Loose]) -> Loose:
    if not parts:
        return no_points()._replace(keys=keys)
    if len(parts) == 1:
        return parts[0]
    return Loose._make([keys, *(np.concatenate(columns) for columns in list(zip(*parts, strict=True))[1:])])


class Tail:
    """Unsealed points of one run. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._base = 0  # everything behind this position is held …
        self._pos = 0  # … up to this one
        self._held = no_points()

    @property
    def points(self) -> int:
        return len(self._held.step)

    def up_to_date(self, tx: ReadTx, run_id: str, sealed: int) -> Loose:
        """Return the points behind position `sealed`, those of the newest frame included."""
        with self._lock:
            if sealed < self._base:  # an older snapshot than the one that cut
                keys: dict[str, int] = {}
                return together(keys, gather(tx, run_id, after=sealed, keys=keys))
            if sealed > self._pos:
                self._held, self._pos = no_points(), sealed
            fresh = gather(tx, run_id, after=max(self._pos, sealed), keys=self._held.keys)
            if sealed > self._base:
                self._held, self._base = self._held.behind(sealed), sealed
            if fresh:
                self._held = together(self._held.keys, [self._held, *fresh])
                self._pos = int(fresh[-1].pos[-1])
            return self._held
