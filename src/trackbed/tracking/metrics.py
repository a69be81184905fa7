"""Metrics of a run: exact histories, catalogues of keys, last values. Curves for charts: `metrics_series`."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from sqlalchemy import func, select

from trackbed.base.errors import BadInput
from trackbed.db import ReadTx
from trackbed.formats.columns import Column as Packed
from trackbed.formats.points import Ints
from trackbed.tracking import facts
from trackbed.tracking.ingest_tables import metric, tail
from trackbed.tracking.metrics_columns import Column, joined, words
from trackbed.tracking.metrics_state import State, word
from trackbed.tracking.metrics_view import View
from trackbed.wire.series import HistoryReply, KeyInfo, KeysReply, Point

MAX_HISTORY = 100_000  # points of a page as JSON
MAX_PACKED = 1_000_000  # as columns
_INCARNATION = (1 << 24) - 1
_state = msgspec.msgpack.Decoder(State).decode


class Page:
    """Points of one metric, exact, and the cursor of what follows ("" at the end)."""

    def __init__(self, key: str, points: Column, ranks: Ints, following: str) -> None:
        self.key, self.points, self.ranks, self.following = key, points, ranks, following
        self.attempts = points.version >> 24
        self.incarnations = points.version & _INCARNATION

    def reply(self) -> HistoryReply:
        rows = zip(
            self.points.step.tolist(), self.points.ts.tolist(), words(self.points.value), self.attempts.tolist(),
            self.incarnations.tolist(), self.ranks.tolist(), strict=True,
        )  # fmt: skip
        points = [
            Point(step=step, time_us=ts, value=value, attempt=attempt, incarnation=incarnation, rank=rank)
            for step, ts, value, attempt, incarnation, rank in rows
        ]
        return HistoryReply(key=self.key, points=points, next=self.following)

    def columns(self) -> dict[str, Packed]:
        """Return the same as `reply`, as columns for the binary answer."""
        points = self.points
        whole = {"step": points.step, "time_us": points.ts}
        small = {"attempt": self.attempts, "incarnation": self.incarnations, "rank": self.ranks}
        return {
            **{name: Packed("i8", column.astype("<i8").tobytes()) for name, column in whole.items()},
            "value": Packed("f8", points.value.astype("<f8").tobytes()),
            **{name: Packed("u4", column.astype("<u4").tobytes()) for name, column in small.items()},
        }


def history(
    view: View, key: str, *, all_attempts: bool = False, rank: int | None = None, cursor: str = "", limit: int = 10_000
) -> Page:
    """Return points of a metric exactly as logged, a page at a time.

    By default those of the lowest rank (or of `rank`) that a later attempt did not repeat, by step; with `all_attempts`
    every point of every rank. Both by (step, time), duplicates included.
    """
    columns = view.columns(key, rank, lowest=not all_attempts)
    points = joined(list(columns.values()))
    ranks = np.repeat(np.array(list(columns), np.int64), [len(column) for column in columns.values()])
    if all_attempts:
        places = np.concatenate([np.arange(len(column)) for column in columns.values()] or [np.empty(0, np.int64)])
        shown = np.lexsort((places, ranks, points.ts, points.step))
    else:
        places = np.arange(len(points))
        shown = points.standing()
    start = 0
    if cursor:

        def of(at: int) -> tuple[int, ...]:
            place = shown[at]
            return tuple(int(column[place]) for column in (points.step, points.ts, ranks, places))

        start = bisect_right(range(len(shown)), _parse_cursor(cursor), key=of)
    page = shown[start : start + limit]
    following = ""
    if start + limit < len(shown):
        last = page[-1]
        following = "-".join(_hex(int(column[last])) for column in (points.step, points.ts, ranks, places))
    return Page(key, points.take(page), ranks[page], following)


def _hex(number: int) -> str:
    return f"{number + 2**63:x}"


def _parse_cursor(cursor: str) -> tuple[int, ...]:
    try:
        step, ts, rank, at = (int(part, 16) - 2**63 for part in cursor.split("-"))
    except ValueError:
        raise BadInput("cursor_wrong", cursor=cursor[:200]) from None
    return step, ts, rank, at


def standing_points(view: View, key: str) -> list[tuple[int, int, float]]:
    """Return step, time (µs) and value of the points of a metric that stand, of its lowest rank, duplicates included."""
    for column in view.columns(key, lowest=True).values():
        shown = column.take(column.standing())
        return list(zip(shown.step.tolist(), shown.ts.tolist(), shown.value.tolist(), strict=True))
    return []


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


def last_points_of(tx: ReadTx, run_ids: Sequence[str]) -> list[tuple[str, str, int, int, float]]:
    """Return run, metric, step, time (µs) and value of the last counted point of each metric; of lower ranks first."""
    stmt = select(metric.c.run_id, metric.c.key, metric.c.state).where(metric.c.run_id.in_(run_ids))
    rows = tx.rows(stmt.order_by(metric.c.rank, metric.c.key))
    states = [(row.run_id, row.key, _state(row.state)) for row in rows]
    return [(run_id, key, state.last_step, state.last_ts, state.last) for run_id, key, state in states]


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
