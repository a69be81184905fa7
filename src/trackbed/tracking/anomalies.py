"""What was noticed about runs: judged from the frames as they arrive, kept as rows, told as events.

    frames behind `pos` ─► look (pure, on a state that can be written down) ─► keep: rows, events, the state with its new `pos`

The state and its position are stored together, so that a server that starts again goes on exactly where it was.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import msgspec
from sqlalchemy import Column, Float, Integer, LargeBinary, Row, Table, Text, delete, func, select

from trackbed.db import ReadTx, Tx, metadata, upsert
from trackbed.domain.events import Event
from trackbed.formats.spool import Metrics
from trackbed.tracking import facts, runs
from trackbed.tracking.anomalies_rules import Curve, Judge, Mark, News, bad, good, rules_for
from trackbed.tracking.metrics_state import version_of, word
from trackbed.tracking.metrics_tail import frames_of
from trackbed.tracking.slow_rules import Pace, Slow, feed, stuck
from trackbed.wire.marks import AnomaliesReply, Anomaly, RankWork, SlowStep, StepsReply

MOST_CURVES = 64  # judged curves of a run; the first ones that ask for it
MOST_BAD_KEYS = 20  # metrics of a run with an entry of their own for NaN and infinity; further ones share one
MOST_SLOW = 500  # slow steps kept of a run, the slowest
MOST_POINTS = 200_000  # looked at in one go
REST = "*"  # the metrics beyond MOST_BAD_KEYS
STALLED = "stalled"

anomaly = Table(
    "anomaly",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("opened_us", Integer, nullable=False),
    Column("closed_us", Integer, nullable=False, default=0),  # 0: open
    Column("document", Text, nullable=False),  # wire.marks.Anomaly
)

slow_step = Table(
    "slow_step",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("step", Integer, primary_key=True, autoincrement=False),
    Column("seconds", Float, nullable=False),
    Column("document", Text, nullable=False),  # wire.marks.SlowStep
)

watched = Table(
    "run_watched",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("pos", Integer, nullable=False),  # last frame looked at
    Column("state", LargeBinary, nullable=False),
)


class Seen(msgspec.Struct, array_like=True):
    """What has to be known of a run to judge what it says next."""

    curves: dict[str, Curve] = {}
    bad: dict[str, Mark] = {}
    pace: Pace = msgspec.field(default_factory=Pace)
    stalled: Mark = msgspec.field(default_factory=Mark)
    waits_for: str = ""
    usual_s: float = 0.0
    missed_frames: int = 0  # went to the store before they were looked at (this server was away)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Seen).decode
_STORE = upsert(watched, key=["run_id"], update=["pos", "state"])
_MARK = upsert(anomaly, key=["run_id", "key", "kind", "number"], update=["closed_us", "document"])
_SLOW = upsert(slow_step, key=["run_id", "attempt", "step"], update=["seconds", "document"])


@dataclass
class Noticed:
    """What is to be kept of a look: marks that changed, by metric and kind; slow steps; what is to be told."""

    marks: dict[tuple[str, str], Mark] = field(default_factory=dict[tuple[str, str], Mark])
    slow: dict[tuple[int, int], Slow] = field(default_factory=dict[tuple[int, int], Slow])
    news: list[News] = field(default_factory=list[News])

    def __bool__(self) -> bool:
        return bool(self.marks or self.slow)


@dataclass
class Batch:
    """Frames that were not looked at yet. `pos`: the last of them."""

    pos: int
    frames: list[tuple[int, int, Metrics]] = field(default_factory=list[tuple[int, int, Metrics]])  # rank, version
    missed: int = 0
    definitions: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])


# --- looking ----------------------------------------------------------------------------------------------------------


def load(tx: ReadTx, run_id: str) -> tuple[int, Seen]:
    """Return how far the run was looked at, and what is known of it."""
    row = tx.one(select(watched.c.pos, watched.c.state).where(watched.c.run_id == run_id))
    return (0, Seen()) if row is None else (row.pos, _decode(row.state))


def fresh(tx: ReadTx, run_id: str, pos: int, arrived: int) -> Batch:
    """Return the frames behind `pos`, at most about MOST_POINTS of their points; `arrived`: the last there has been.

    Those that were sealed into the store and swept away before anybody looked are counted as missed.
    """
    batch, points = Batch(pos), 0
    for row, columns in frames_of(tx, run_id, after=pos):
        batch.missed += row.pos - batch.pos - 1
        batch.pos = row.pos
        batch.frames.append((row.rank, version_of(row.attempt, row.incarnation), columns))
        points += len(columns.step)
        if points >= MOST_POINTS:
            break
    if not batch.frames:
        batch.missed, batch.pos = arrived - pos, arrived
    else:
        batch.definitions = facts.definitions(tx, run_id)
    return batch


def look(seen: Seen, batch: Batch, now_us: int) -> Noticed:
    """Judge new frames. Pure but for `seen`, which is brought up to date."""
    noticed = Noticed()
    seen.missed_frames += batch.missed
    for rank, version, columns in batch.frames:
        by_key: dict[str, tuple[list[int], list[int], list[float]]] = {}
        places = [by_key.setdefault(key, ([], [], [])) for key in columns.keys]
        for at, step, ts, value in zip(columns.key, columns.step, columns.ts, columns.value, strict=True):
            steps, stamps, values = places[at]
            steps.append(step)
            stamps.append(ts)
            values.append(value)
        for key, (steps, stamps, values) in by_key.items():
            _finite(seen, noticed, key, rank, steps, stamps, values)
            _curve(seen, noticed, key, rank, version, batch.definitions.get(key, {}), (steps, stamps, values))
        timed = [
            (key, step, ts, value)
            for key, (steps, stamps, values) in by_key.items()
            for step, ts, value in zip(steps, stamps, values, strict=True)
        ]
        for slow in feed(seen.pace, rank, version, timed, now_us):
            noticed.slow[slow.attempt, slow.step] = slow
    return noticed


def _curve(
    seen: Seen,
    noticed: Noticed,
    key: str,
    rank: int,
    version: int,
    definition: Mapping[str, Any],
    points: tuple[list[int], list[int], list[float]],
) -> None:
    curve = seen.curves.get(key)
    rules = rules_for(key, definition)
    if rules is None or (curve is None and len(seen.curves) >= MOST_CURVES):
        return
    if curve is None or rank < curve.rank:
        curve = seen.curves[key] = Curve(rank=rank, marks=curve.marks if curve is not None else {})
    if rank != curve.rank:
        return
    judge = Judge(key, curve, rules)
    judge.feed(version, *points)
    noticed.news += judge.news
    for kind in judge.changed:
        noticed.marks[key, kind] = curve.marks[kind]


def _finite(
    seen: Seen, noticed: Noticed, key: str, rank: int, steps: list[int], stamps: list[int], values: list[float]
) -> None:
    """Note points that are no numbers. A metric that only ever had numbers costs one look at their sum."""
    name = key if key in seen.bad or len(seen.bad) < MOST_BAD_KEYS else REST
    if math.isfinite(sum(values)) and name not in seen.bad:  # not fsum: it raises on inf - inf and on large sums
        return
    for step, ts, value in zip(steps, stamps, values, strict=True):
        if math.isfinite(value):
            mark = seen.bad.get(name)
            if mark is None or name == REST:  # other metrics' numbers are no sign that it is over
                continue
            over = good(mark, ts)
            if over and not mark.told_over:
                mark.told_over = True
                noticed.news.append(News("over", "non_finite", name, mark))
            if not over:
                continue
        else:
            mark = seen.bad.setdefault(name, Mark(rank=rank))
            if bad(mark, step, ts, value):
                mark.rank = rank
                noticed.news.append(News("opened", "non_finite", name, mark))
        noticed.marks[name, "non_finite"] = mark


def look_at_clock(seen: Seen, now_us: int, *, since_us: int, active: bool, silent: bool) -> Noticed:
    """Say whether the run has stopped moving. `silent`: its supervisor is not heard of; `since_us`: see `stuck`."""
    noticed = Noticed()
    found = stuck(seen.pace, now_us, since_us=since_us) if active else None
    mark = seen.stalled
    if found is None:
        if mark.open:
            mark.open, mark.closed_us, mark.calm, mark.told_over = False, now_us, 1 << 30, True
            noticed.marks["", STALLED] = mark
            noticed.news.append(News("over", STALLED, "", mark))
        return noticed
    waits_for = "contact" if silent else f"ranks {', '.join(map(str, found.behind))}" if found.behind else ""
    if not mark.open:
        mark.calm = 1 << 30
        bad(mark, found.step, found.since_us, (now_us - found.since_us) / 1e6, found.usual_s)
        noticed.news.append(News("opened", STALLED, "", mark))
    elif waits_for == seen.waits_for:
        return noticed
    seen.waits_for, seen.usual_s = waits_for, found.usual_s
    noticed.marks["", STALLED] = mark
    return noticed


# --- keeping ----------------------------------------------------------------------------------------------------------


def keep(tx: Tx, row: runs.RunRow, before: int, pos: int, seen: Seen, noticed: Iterable[Noticed]) -> bool:
    """Store what was noticed up to frame `pos`; False, and nothing stored, where somebody else has gone on from `before`."""
    stands = tx.scalar(select(watched.c.pos).where(watched.c.run_id == row.id))
    if (stands or 0) != before:
        return False
    tx.execute(_STORE, [{"run_id": row.id, "pos": pos, "state": _encode(seen)}])
    for one in noticed:
        _keep_marks(tx, row, one, seen)
        _keep_slow(tx, row.id, one)
    return True


def _keep_marks(tx: Tx, row: runs.RunRow, noticed: Noticed, seen: Seen) -> None:
    rows = [
        {
            "run_id": row.id, "key": key, "kind": kind, "number": mark.number, "opened_us": mark.opened_us,
            "closed_us": mark.closed_us, "document": runs.to_json(_view(key, kind, mark, seen)),
        }
        for (key, kind), mark in noticed.marks.items()
    ]  # fmt: skip
    if rows:
        tx.execute(_MARK, rows)
    for news in noticed.news:
        kind = "run.anomaly" if news.what == "opened" else "run.anomaly_over"
        shown = _view(news.key, news.kind, news.mark, seen)
        data = {
            "anomaly": news.kind, "key": news.key, "step": shown.first_step, "last_step": shown.last_step,
            "value": shown.value, "worst": shown.worst, "count": shown.count, "waits_for": shown.waits_for,
        }  # fmt: skip
        tx.emit(Event(kind, row.id, row.space_id, row.id, row.attempt_id, data=data))


def _view(key: str, kind: str, mark: Mark, seen: Seen) -> Anomaly:
    return Anomaly(
        kind=kind, key=key, number=mark.number, open=mark.open, rank=mark.rank, first_step=mark.first_step,
        last_step=mark.last_step, count=mark.count, value=word(mark.value), worst=word(mark.worst),
        expected=None if mark.expected is None else word(mark.expected), opened_us=mark.opened_us,
        closed_us=mark.closed_us, waits_for=seen.waits_for if kind == STALLED else "",
    )  # fmt: skip


def _keep_slow(tx: Tx, run_id: str, noticed: Noticed) -> None:
    rows = [
        {
            "run_id": run_id, "attempt": slow.attempt, "step": slow.step, "seconds": slow.seconds,
            "document": runs.to_json(
                SlowStep(
                    step=slow.step, attempt=slow.attempt, time_us=slow.ts, seconds=slow.seconds,
                    median_s=slow.median_s, split=slow.split, cause=slow.cause,
                    straggler=slow.straggler if slow.straggler >= 0 else None, straggler_s=slow.straggler_s,
                )
            ),
        }
        for slow in noticed.slow.values()
    ]  # fmt: skip
    if not rows:
        return
    tx.execute(_SLOW, rows)
    many = int(tx.scalar(select(func.count()).select_from(slow_step).where(slow_step.c.run_id == run_id)) or 0)
    if many > MOST_SLOW:
        least = select(slow_step.c.seconds).where(slow_step.c.run_id == run_id).order_by(slow_step.c.seconds.desc())
        limit = tx.scalar(least.offset(MOST_SLOW - 1).limit(1))
        tx.execute(delete(slow_step).where(slow_step.c.run_id == run_id, slow_step.c.seconds < limit))


# --- reading ----------------------------------------------------------------------------------------------------------


def open_kinds_of(tx: ReadTx, run_ids: Sequence[str]) -> dict[str, list[str]]:
    """Return run → kinds of anomalies that are open: the marks of the runs table."""
    found: dict[str, list[str]] = {}
    for at in range(0, len(run_ids), 500):
        stmt = select(anomaly.c.run_id, anomaly.c.kind).where(
            anomaly.c.run_id.in_(run_ids[at : at + 500]), anomaly.c.closed_us == 0
        )
        for row in tx.rows(stmt.distinct().order_by(anomaly.c.kind)):
            found.setdefault(row.run_id, []).append(row.kind)
    return found


def anomalies_of(tx: ReadTx, run_id: str) -> AnomaliesReply:
    """Return the anomalies of a run, the newest first, and which of its metrics are judged."""
    rows = tx.rows(select(anomaly).where(anomaly.c.run_id == run_id).order_by(anomaly.c.opened_us.desc()))
    _, seen = load(tx, run_id)
    return AnomaliesReply(anomalies=[_anomaly(row) for row in rows], watched=sorted(seen.curves))


def _anomaly(row: Row[Any]) -> Anomaly:
    return msgspec.json.decode(row.document, type=Anomaly)


def steps_of(tx: ReadTx, run_id: str) -> StepsReply:
    """Return how the steps of a run go: usual time and split, the slow ones, the ranks."""
    rows = tx.rows(
        select(slow_step.c.document).where(slow_step.c.run_id == run_id).order_by(slow_step.c.attempt, slow_step.c.step)
    )
    _, seen = load(tx, run_id)
    pace = seen.pace
    moving = {rank: beat for rank, beat in sorted(pace.ranks.items()) if beat.gaps}
    return StepsReply(
        steps=pace.steps_total,
        median_s=median(moving[min(moving)].gaps) if moving else None,
        split={name: median(spent) for name, spent in pace.usual.items() if spent},
        slow=[msgspec.json.decode(row.document, type=SlowStep) for row in rows],
        slow_total=pace.slow_total,
        ranks=[RankWork(rank=rank, step=beat.step, work_s=beat.usual_work_s) for rank, beat in moving.items()],
    )
