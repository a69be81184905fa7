"""Curves: exact histories, bucketed series, catalogues of keys, last values.

Decoded points are kept in memory as a cache keyed by the last frame: a read fetches what is newer first, so what was
acknowledged is seen by every process at once.
"""

import math
import threading
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from sqlalchemy import func, select

from trackbed.base.errors import BadInput
from trackbed.db import ReadTx
from trackbed.tracking import facts
from trackbed.tracking.ingest_summary import frames_of
from trackbed.tracking.ingest_tables import metric, tail
from trackbed.tracking.metrics_state import State, version_of, word
from trackbed.wire.series import HistoryReply, KeyInfo, KeysReply, Point, Series

CACHED_POINTS = 2_000_000
CACHED_RUNS = 1_000
MAX_HISTORY = 100_000
MAX_BUCKETS = 2_000
_INCARNATION = (1 << 24) - 1
_state = msgspec.msgpack.Decoder(State).decode


@dataclass
class Column:
    """Points of one metric of one rank, in the order in which they became durable. Only grows."""

    step: "array[int]" = field(default_factory=lambda: array("q"))
    ts: "array[int]" = field(default_factory=lambda: array("q"))
    value: "array[float]" = field(default_factory=lambda: array("d"))
    version: "array[int]" = field(default_factory=lambda: array("q"))
    ordered: bool = True  # steps grow and versions do not fall: every point counts
    _counted: "Column | None" = None

    def add(self, version: int, step: int, ts: int, value: float) -> None:
        if self.step and (step <= self.step[-1] or version < self.version[-1]):
            self.ordered = False
        self.step.append(step)
        self.ts.append(ts)
        self.value.append(value)
        self.version.append(version)
        self._counted = None

    def counted(self) -> "Column":
        """Return one point a step, by step: that of the newest (attempt, incarnation), there the one logged last."""
        if self.ordered:
            return self
        if self._counted is None:
            best: dict[int, int] = {}
            for at, step in enumerate(self.step):
                other = best.get(step)
                if other is None or self.version[at] >= self.version[other]:
                    best[step] = at
            self._counted = self.take([best[step] for step in sorted(best)])
        return self._counted

    def standing(self) -> "Column":
        """Return by step every point of the newest (attempt, incarnation) at that step: what was logged twice stands twice."""
        if self.ordered:
            return self
        newest: dict[int, int] = {}
        for step, version in zip(self.step, self.version, strict=True):
            newest[step] = max(version, newest.get(step, version))
        places = [at for at, step in enumerate(self.step) if self.version[at] == newest[step]]
        return self.take(sorted(places, key=lambda at: (self.step[at], self.ts[at])))

    def take(self, places: Sequence[int]) -> "Column":
        return Column(
            array("q", [self.step[at] for at in places]),
            array("q", [self.ts[at] for at in places]),
            array("d", [self.value[at] for at in places]),
            array("q", [self.version[at] for at in places]),
        )


@dataclass
class _Known:
    """Points of one run up to frame `pos`."""

    pos: int = 0
    points: int = 0
    columns: dict[tuple[str, int], Column] = field(default_factory=dict[tuple[str, int], Column])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def extend(self, tx: ReadTx, run_id: str) -> None:
        for row, points in frames_of(tx, run_id, after=self.pos):
            version = version_of(row.attempt, row.incarnation)
            here = [self.columns.setdefault((key, row.rank), Column()) for key in points.keys]
            for at, step, ts, value in zip(points.key, points.step, points.ts, points.value, strict=True):
                here[at].add(version, step, ts, value)
            self.pos = row.pos
            self.points += len(points.step)


class Curves:
    """The cache of one server process. Threads may share it; the least used runs are dropped first."""

    def __init__(self, most_points: int = CACHED_POINTS) -> None:
        self._most = most_points
        self._runs: OrderedDict[str, _Known] = OrderedDict()
        self._lock = threading.Lock()

    def columns(self, tx: ReadTx, run_id: str, keys: Sequence[str]) -> dict[tuple[str, int], Column]:
        """Return the columns of some metrics, by key and rank, up to date with the snapshot. Not to be changed."""
        with self._lock:
            known = self._runs.setdefault(run_id, _Known())
            self._runs.move_to_end(run_id)
        wanted = set(keys)
        with known.lock:
            known.extend(tx, run_id)
            found = {stream: column for stream, column in known.columns.items() if stream[0] in wanted}
            copies = {stream: _frozen(column) for stream, column in found.items()}
        self._shrink()
        return copies

    def _shrink(self) -> None:
        with self._lock:
            while self._runs and (len(self._runs) > CACHED_RUNS or self._held() > self._most):
                self._runs.popitem(last=False)

    def _held(self) -> int:
        return sum(known.points for known in self._runs.values())


def _frozen(column: Column) -> Column:
    """Return the counted points in order, computed once, and the raw ones as they are now."""
    column.counted()
    copy = Column(column.step[:], column.ts[:], column.value[:], column.version[:], column.ordered)
    copy._counted = column._counted
    return copy


CURVES = Curves()


def history(
    tx: ReadTx,
    run_id: str,
    key: str,
    *,
    all_attempts: bool = False,
    rank: int | None = None,
    cursor: str = "",
    limit: int = 10_000,
) -> HistoryReply:
    """Return points of a metric exactly as logged, a page at a time.

    By default those of the lowest rank (or of `rank`) that a later attempt did not repeat, by step; with `all_attempts`
    every point of every rank. Both by (step, time), duplicates included.
    """
    limit = max(1, min(limit, MAX_HISTORY))
    columns = CURVES.columns(tx, run_id, [key])
    ranks = sorted(rank for _, rank in columns) if rank is None else [rank]
    if not all_attempts:
        ranks = ranks[:1]
    rows: list[tuple[int, int, int, int, int, float]] = []
    for one in ranks:
        column = columns.get((key, one), Column())
        shown = column if all_attempts else column.standing()
        rows += zip(
            shown.step,
            shown.ts,
            [one] * len(shown.step),
            range(len(shown.step)),
            shown.version,
            shown.value,
            strict=True,
        )
    if all_attempts:
        rows.sort(key=lambda row: row[:4])
    start = 0
    if cursor:
        start = bisect_right(rows, _parse_cursor(cursor), key=lambda row: row[:4])
    page = rows[start : start + limit]
    points = [
        Point(
            step=step,
            time_us=ts,
            value=word(value),
            attempt=version >> 24,
            incarnation=version & _INCARNATION,
            rank=one,
        )
        for step, ts, one, _, version, value in page
    ]
    more = start + limit < len(rows)
    return HistoryReply(key=key, points=points, next="-".join(_hex(part) for part in page[-1][:4]) if more else "")


def _hex(number: int) -> str:
    return f"{number + 2**63:x}"


def _parse_cursor(cursor: str) -> tuple[int, int, int, int]:
    try:
        step, ts, rank, at = (int(part, 16) - 2**63 for part in cursor.split("-"))
    except ValueError:
        raise BadInput("cursor_wrong", cursor=cursor[:200]) from None
    return step, ts, rank, at


@dataclass(frozen=True)
class Window:
    """What of a curve is asked: x is `step`, `relative` (seconds since `zero_us`) or `wall` (seconds UTC)."""

    x: str = "step"
    low: float | None = None
    high: float | None = None
    buckets: int = 1500
    zero_us: int = 0
    all_attempts: bool = False
    streams: bool = False  # of every rank, not only of the lowest


def series(tx: ReadTx, run_id: str, keys: Sequence[str], window: Window) -> list[Series]:
    """Return curves with at most `buckets` points each: raw ones where fewer lie in the window."""
    columns = CURVES.columns(tx, run_id, keys)
    curves: list[Series] = []
    for key in dict.fromkeys(keys):
        ranks = sorted(rank for name, rank in columns if name == key)
        for rank in ranks if window.streams else ranks[:1]:
            column = columns[key, rank]
            curves.append(_curve(run_id, key, rank, column if window.all_attempts else column.counted(), window))
    return curves


def _curve(run_id: str, key: str, rank: int, column: Column, window: Window) -> Series:
    xs, values = _axis(column, window)
    low = 0 if window.low is None else bisect_left(xs, window.low)
    high = len(xs) if window.high is None else bisect_right(xs, window.high)
    xs, values = xs[low:high], values[low:high]
    shown = Series(run=run_id, key=key, stream="" if rank == 0 else f"rank/{rank}", points=len(xs))
    if len(xs) <= window.buckets:
        words = [word(value) for value in values]
        shown.x, shown.last, shown.mean, shown.min, shown.max = [float(x) for x in xs], words, words, words, words
        shown.count = [1] * len(xs)
        return shown
    shown.bucketed = True
    width = (xs[-1] - xs[0]) / window.buckets or 1.0
    start = 0
    for number in range(1, window.buckets + 1):
        end = len(xs) if number == window.buckets else bisect_left(xs, xs[0] + number * width)
        if end > start:
            _bucket(shown, xs[end - 1], values[start:end])
        start = max(start, end)
    return shown


def _axis(column: Column, window: Window) -> tuple[Sequence[float], Sequence[float]]:
    """Return sorted x values and the values at them."""
    if window.x == "step":
        xs: Sequence[float] = column.step
    else:
        zero = window.zero_us if window.x == "relative" else 0
        xs = [(ts - zero) / 1e6 for ts in column.ts]
    if all(map(_not_after, xs, xs[1:])):
        return xs, column.value
    places = sorted(range(len(xs)), key=xs.__getitem__)
    return [xs[at] for at in places], [column.value[at] for at in places]


def _not_after(one: float, other: float) -> bool:
    return one <= other


def _bucket(shown: Series, x: float, values: Sequence[float]) -> None:
    total = math.fsum(values) if all(map(math.isfinite, values)) else math.nan
    shown.x.append(float(x))
    shown.last.append(word(values[-1]))
    shown.count.append(len(values))
    if not math.isnan(total):
        shown.mean.append(total / len(values))
        shown.min.append(min(values))
        shown.max.append(max(values))
        return
    numbers = [value for value in values if not math.isnan(value)]
    finite = [value for value in numbers if math.isfinite(value)]
    shown.mean.append(math.fsum(finite) / len(finite) if finite else word(math.nan if not numbers else numbers[0]))
    shown.min.append(word(min(numbers, default=math.nan)))
    shown.max.append(word(max(numbers, default=math.nan)))
    shown.non_finite = [*shown.non_finite, *[0] * (len(shown.x) - 1 - len(shown.non_finite)), len(values) - len(finite)]


def keys(tx: ReadTx, run_id: str, *, search: str = "", limit: int = 1000) -> KeysReply:
    """Return the metrics of a run with their summaries, by name; `search` is part of a name, in any case of letters."""
    stmt = select(metric.c.key, metric.c.rank, metric.c.state).where(metric.c.run_id == run_id)
    rows = tx.rows(stmt.order_by(metric.c.key, metric.c.rank))
    lowest: dict[str, Any] = {}
    for row in rows:
        if search.casefold() in row.key.casefold():
            lowest.setdefault(row.key, row)
    shown = sorted(lowest.values(), key=lambda row: row.key)[: max(1, limit)]
    said = facts.definitions(tx, run_id)
    return KeysReply(keys=[_info(row, said.get(row.key, {})) for row in shown], total=len(lowest))


def _info(row: Any, definition: dict[str, Any]) -> KeyInfo:
    state = _state(row.state)
    return KeyInfo(
        key=row.key, count=state.count, non_finite=state.non_finite, first=word(state.first), last=word(state.last),
        last_step=state.last_step, min=state.min, max=state.max, argmin=state.argmin, argmax=state.argmax,
        definition=definition,
    )  # fmt: skip


def last_values(tx: ReadTx, run_id: str) -> dict[str, float]:
    """Return the last counted value of each metric of a run, of its lowest rank."""
    return last_values_of(tx, [run_id]).get(run_id, {})


def last_values_of(
    tx: ReadTx, run_ids: Sequence[str], keys: Sequence[str] | None = None
) -> dict[str, dict[str, float]]:
    """Return run → metric → last counted value: columns of the runs table."""
    if not run_ids:
        return {}
    stmt = select(metric.c.run_id, metric.c.key, metric.c.rank, metric.c.state).where(metric.c.run_id.in_(run_ids))
    if keys is not None:
        stmt = stmt.where(metric.c.key.in_(keys))
    found: dict[str, dict[str, float]] = {}
    for row in tx.rows(stmt.order_by(metric.c.rank)):
        found.setdefault(row.run_id, {}).setdefault(row.key, _state(row.state).last)
    return found


def last_step(tx: ReadTx, run_id: str) -> int | None:
    """Return the greatest step that any metric of the run has."""
    return tx.scalar(select(tail.c.last_step).where(tail.c.run_id == run_id))


def key_names(tx: ReadTx, run_id: str) -> list[str]:
    """Return the names of a run's metrics."""
    stmt = select(metric.c.key).where(metric.c.run_id == run_id).group_by(metric.c.key).order_by(metric.c.key)
    return [row.key for row in tx.rows(stmt)]


def count_points(tx: ReadTx, run_id: str) -> int:
    """Return how many points of the run are kept, counted or not."""
    return int(tx.scalar(select(func.coalesce(func.sum(tail.c.points), 0)).where(tail.c.run_id == run_id)) or 0)
