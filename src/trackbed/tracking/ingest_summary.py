"""Keeps the summary of every metric up to date with each batch: at once where points go on behind what is known, else by
looking at the frames that overlap. Sealed points lie in the store, where no transaction may wait: what is needed of them is
asked for by `Unread`, fetched outside, and the work begins anew with it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from sqlalchemy import select

from trackbed.db import ReadTx, Tx, upsert
from trackbed.formats import spool
from trackbed.formats.spool import Metrics
from trackbed.tracking.ingest_parse import Item
from trackbed.tracking.ingest_tables import metric
from trackbed.tracking.metrics_columns import Column, joined
from trackbed.tracking.metrics_sealed import sealed_to, seals_of
from trackbed.tracking.metrics_state import Counted, State, merge, summarize, version_of
from trackbed.tracking.metrics_tail import gather, together

Stream = tuple[str, int]  # key and rank
_STORE = upsert(metric, key=["run_id", "key", "rank"], update=["last", "min", "max", "last_step", "state"])
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(State).decode


@dataclass
class Group:
    """Points of one key, rank and version, in the order in which they were logged."""

    key: str
    rank: int
    version: int
    steps: list[int] = field(default_factory=list[int])
    stamps: list[int] = field(default_factory=list[int])
    values: list[float] = field(default_factory=list[float])
    summary: State | None = None  # where steps only grow


class Unread(Exception):
    """What stands in the store at some steps must be known first; `low` and `high` None: at all steps."""

    def __init__(self, run_id: str, streams: set[Stream], low: int | None, high: int | None) -> None:
        super().__init__(run_id)
        self.run_id, self.streams, self.low, self.high = run_id, streams, low, high


@dataclass(frozen=True)
class Known:
    """What counts among the sealed points up to a position, of some streams and steps."""

    pos: int
    low: int | None
    high: int | None
    points: Mapping[Stream, Column]

    def covers(self, pos: int, streams: set[Stream], low: int | None, high: int | None) -> bool:
        if pos != self.pos or not streams <= self.points.keys():
            return False
        if self.low is None or self.high is None:
            return True
        return low is not None and high is not None and self.low <= low and high <= self.high


def group(items: Iterable[Item]) -> list[Group]:
    """Sort the points of a batch by stream and version, and summarize what can be added at once. Off the writer lane."""
    groups: dict[tuple[str, int, int], Group] = {}
    for item in items:
        if item.header.kind != spool.METRICS or item.content is None:
            continue
        points: Metrics = item.content
        rank, version = item.header.rank, version_of(item.header.attempt, item.header.inc)
        here = [groups.setdefault((key, rank, version), Group(key, rank, version)) for key in points.keys]
        for at, step, ts, value in zip(points.key, points.step, points.ts, points.value, strict=True):
            one = here[at]
            one.steps.append(step)
            one.stamps.append(ts)
            one.values.append(value)
    found = [one for one in groups.values() if one.steps]
    for one in found:
        steps = one.steps
        if all(map(int.__lt__, steps, steps[1:])):
            one.summary = summarize(zip(steps, one.values, one.stamps, [one.version] * len(steps), strict=True))
    return found


def states(tx: ReadTx, run_id: str, streams: Sequence[Stream]) -> dict[Stream, State]:
    """Return the summaries of some streams of a run."""
    found: dict[Stream, State] = {}
    keys = sorted({key for key, _ in streams})
    for at in range(0, len(keys), 500):
        stmt = select(metric.c.key, metric.c.rank, metric.c.state).where(
            metric.c.run_id == run_id, metric.c.key.in_(keys[at : at + 500])
        )
        found |= {(row.key, row.rank): _decode(row.state) for row in tx.rows(stmt)}
    return found


def update(tx: Tx, run_id: str, groups: Sequence[Group], sealed: Known | None = None) -> dict[Stream, State]:
    """Bring the summaries up to date with points that are not in the frame table yet. Returns those that changed.

    Raises:
        Unread: points may stand at steps that are sealed, and `sealed` does not say what counts there.
    """
    known = states(tx, run_id, [(one.key, one.rank) for one in groups])
    changed: dict[Stream, State] = {}
    overlapping: list[Group] = []
    late: set[Stream] = set()
    for one in groups:
        stream = (one.key, one.rank)
        before = changed.get(stream) or known.get(stream) or State()
        after = merge(before, one.summary) if one.summary is not None and stream not in late else None
        if after is None and stream not in late:
            after = at_the_end(before, one)
        if after is None:
            overlapping.append(one)
            late.add(stream)
        else:
            changed[stream] = after
    if overlapping:
        _overlap(_Stored(tx, run_id, sealed), overlapping, known, changed)
    store(tx, run_id, changed)
    return changed


def at_the_end(state: State, group: Group) -> State | None:
    """Return the summary with points at its last step or behind it, None where only the frames can tell.

    A metric that is logged without steps stands at one step for ever; looking at all its frames each time would take
    longer with every point.
    """
    if state.count and group.version < state.version:
        return None
    after = msgspec.structs.replace(state)
    for step, ts, value in zip(group.steps, group.stamps, group.values, strict=True):
        if after.count == 0 or step > after.last_step:
            after.add(step, value, ts)
        elif step < after.last_step:
            return None
        elif after.replace(step, after.last, value, ts):  # an extreme was replaced
            if after.count != 1:
                return None
            after = summarize([(step, value, ts, group.version)])
    after.version = max(state.version, group.version)
    return after


def store(tx: Tx, run_id: str, changed: dict[Stream, State]) -> None:
    rows = [row_of(run_id, key, rank, state) for (key, rank), state in changed.items()]
    if rows:
        tx.execute(_STORE, rows)


def row_of(run_id: str, key: str, rank: int, state: State) -> dict[str, Any]:
    """Return a summary as a row of the metric table."""
    return {
        "run_id": run_id, "key": key, "rank": rank, "last": None if state.last != state.last else state.last,
        "min": state.min, "max": state.max, "last_step": state.last_step, "state": _encode(state),
    }  # fmt: skip


@dataclass(frozen=True)
class _Stored:
    """What counts already, wherever it lies."""

    tx: ReadTx
    run_id: str
    sealed: Known | None
    asked: set[Stream] = field(default_factory=set[Stream])  # an answer must do for all that one batch asks

    def columns(self, streams: set[Stream], low: int | None = None, high: int | None = None) -> dict[Stream, Column]:
        """Return what was said of some streams, at least at the steps from `low` to `high`."""
        seals = seals_of(self.tx, self.run_id)
        parts: dict[Stream, list[Column]] = {stream: [] for stream in streams}
        if any(low is None or high is None or (one.high_step >= low and one.low_step <= high) for one in seals):
            self.asked.update(streams)
            if self.sealed is None or not self.sealed.covers(sealed_to(seals), self.asked, low, high):
                raise Unread(self.run_id, set(self.asked), low, high)
            for stream, found in parts.items():
                found.append(self.sealed.points[stream])
        keys: dict[str, int] = {}
        loose = together(keys, gather(self.tx, self.run_id, after=sealed_to(seals), keys=keys, low=low, high=high))
        return {stream: joined([*found, loose.column(*stream)]) for stream, found in parts.items()}

    def counted(self, streams: set[Stream], low: int, high: int) -> dict[Stream, dict[int, Counted]]:
        return {stream: _by_step(column.counted()) for stream, column in self.columns(streams, low, high).items()}


def _by_step(column: Column) -> dict[int, Counted]:
    points = map(Counted, column.version.tolist(), column.value.tolist())
    return dict(zip(column.step.tolist(), points, strict=True))


def _overlap(stored: _Stored, groups: list[Group], known: dict[Stream, State], changed: dict[Stream, State]) -> None:
    """Add points whose steps may be counted already, by what stands at those steps."""
    steps = [step for one in groups for step in one.steps]
    counted = stored.counted({(one.key, one.rank) for one in groups}, min(steps), max(steps))
    rescan: dict[Stream, dict[int, Counted]] = {}
    for one in groups:
        stream = (one.key, one.rank)
        here = counted.setdefault(stream, {})
        state = changed.setdefault(stream, known.get(stream) or State())
        for step, ts, value in zip(one.steps, one.stamps, one.values, strict=True):
            old = here.get(step)
            if old is not None and old.version > one.version:
                continue  # a replaced attempt says what is known better
            here[step] = Counted(one.version, value)
            if old is None:
                state.add(step, value, ts)
            elif state.replace(step, old.value, value, ts):
                rescan[stream] = here
        state.version = max(state.version, one.version)
    if rescan:
        _rescan(stored, rescan, changed)


def _rescan(stored: _Stored, fresh: dict[Stream, dict[int, Counted]], changed: dict[Stream, State]) -> None:
    """Look for the extremes anew: one of them was replaced."""
    for stream, column in stored.columns(set(fresh)).items():
        state, said = changed[stream], fresh[stream]
        steps = np.array(list(said), np.int64)
        values = np.array([point.value for point in said.values()], np.float64)
        versions = np.array([point.version for point in said.values()], np.int64)
        counted = joined([column, Column(steps, steps, values, versions)]).counted()
        finite = counted.take(np.isfinite(counted.value))
        if not len(finite):
            state.min = state.argmin = state.max = state.argmax = None
            continue
        least, greatest = int(np.argmin(finite.value)), int(np.argmax(finite.value))
        state.min, state.argmin = float(finite.value[least]), int(finite.step[least])
        state.max, state.argmax = float(finite.value[greatest]), int(finite.step[greatest])
