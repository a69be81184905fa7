"""Keeps the summary of every metric up to date with each batch: at once where points go on behind what is known, else by
looking at the frames that overlap.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from sqlalchemy import select

from trackbed.db import ReadTx, Tx, upsert
from trackbed.formats import spool
from trackbed.formats.spool import Metrics
from trackbed.tracking.ingest_parse import Item
from trackbed.tracking.ingest_tables import frame, metric
from trackbed.tracking.metrics_state import Counted, State, merge, summarize, version_of

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


def update(tx: Tx, run_id: str, groups: Sequence[Group]) -> dict[Stream, State]:
    """Bring the summaries up to date with points that are not in the frame table yet. Returns those that changed."""
    known = states(tx, run_id, [(one.key, one.rank) for one in groups])
    changed: dict[Stream, State] = {}
    overlapping: list[Group] = []
    late: set[Stream] = set()
    for one in groups:
        stream = (one.key, one.rank)
        before = changed.get(stream) or known.get(stream) or State()
        after = merge(before, one.summary) if one.summary is not None and stream not in late else None
        if after is None:
            overlapping.append(one)
            late.add(stream)
        else:
            changed[stream] = after
    if overlapping:
        _overlap(tx, run_id, overlapping, known, changed)
    store(tx, run_id, changed)
    return changed


def store(tx: Tx, run_id: str, changed: dict[Stream, State]) -> None:
    rows = [
        {
            "run_id": run_id, "key": key, "rank": rank, "last": None if state.last != state.last else state.last,
            "min": state.min, "max": state.max, "last_step": state.last_step, "state": _encode(state),
        }
        for (key, rank), state in changed.items()
    ]  # fmt: skip
    if rows:
        tx.execute(_STORE, rows)


def _overlap(
    tx: Tx, run_id: str, groups: list[Group], known: dict[Stream, State], changed: dict[Stream, State]
) -> None:
    """Add points whose steps may be counted already, by what stands at those steps."""
    steps = [step for one in groups for step in one.steps]
    counted = _counted(tx, run_id, {(one.key, one.rank) for one in groups}, min(steps), max(steps))
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
        _rescan(tx, run_id, rescan, changed)


def _counted(
    tx: ReadTx, run_id: str, streams: set[Stream], low: int | None = None, high: int | None = None
) -> dict[Stream, dict[int, Counted]]:
    found: dict[Stream, dict[int, Counted]] = {stream: {} for stream in streams}
    for row, points in frames_of(tx, run_id, low=low, high=high):
        version = version_of(row.attempt, row.incarnation)
        wanted = {at: found[(key, row.rank)] for at, key in enumerate(points.keys) if (key, row.rank) in found}
        if not wanted:
            continue
        for at, step, value in zip(points.key, points.step, points.value, strict=True):
            here = wanted.get(at)
            if here is not None and (step not in here or version >= here[step].version):
                here[step] = Counted(version, value)
    return found


def frames_of(
    tx: ReadTx, run_id: str, *, low: int | None = None, high: int | None = None, after: int = 0
) -> Iterator[tuple[Any, Metrics]]:
    """Yield the metric frames of a run in the order of `pos`, those that may hold steps from `low` to `high`."""
    stmt = select(frame).where(frame.c.run_id == run_id, frame.c.pos > after).order_by(frame.c.pos)
    if low is not None and high is not None:
        stmt = stmt.where(frame.c.last_step >= low, frame.c.first_step <= high)
    for row in tx.rows(stmt):
        yield row, spool.decode_metrics(spool.decode(row.bytes).frames[0].body)


def _rescan(tx: ReadTx, run_id: str, fresh: dict[Stream, dict[int, Counted]], changed: dict[Stream, State]) -> None:
    """Look for the extremes anew: one of them was replaced."""
    for stream, stored in _counted(tx, run_id, set(fresh)).items():
        values = {**stored, **fresh[stream]}
        state = changed[stream]
        anew = summarize((step, point.value, 0, 0) for step, point in values.items())
        state.min, state.argmin, state.max, state.argmax = anew.min, anew.argmin, anew.max, anew.argmax
