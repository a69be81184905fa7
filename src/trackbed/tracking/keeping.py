"""Which checkpoints a run keeps in the store: `checkpoint.keep` of its spec.

Of each stage the newest `last` steps stay, the `best` by a metric stay, what somebody else refers to stays, and so does the
one that the next attempt starts from. The rest leaves the table of checkpoints for `checkpoint_dropped`, from where the
upkeep of the store frees its bytes.
"""

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Index, Integer, Row, Table, Text, delete, insert, select, update

from trackbed.db import ReadTx, Tx, metadata
from trackbed.domain.events import Event
from trackbed.tracking import facts, metrics, runs
from trackbed.tracking.metrics_view import Curves
from trackbed.tracking.runs_tables import checkpoint
from trackbed.wire.spec import Keep

dropped = Table(
    "checkpoint_dropped",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("attempt_id", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("digest", Text, primary_key=True),
    Column("space_id", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("stage", Text, nullable=False, default=""),
    Column("step", Integer, nullable=False),
    Column("size_bytes", Integer, nullable=False, default=0),
    Column("created_us", Integer, nullable=False),
    Column("dropped_us", Integer, nullable=False),
    Column("freed_us", Integer, nullable=False, default=0),  # 0: its bytes may still be in the store
    Index("checkpoint_dropped_by_freed", "freed_us"),
)


@dataclass(frozen=True)
class Copy:
    """A durable checkpoint; `value` is what `keep.by` said at its step, None where it said nothing."""

    attempt_id: str
    name: str
    digest: str
    epoch: int
    step: int
    recorded_us: int
    current: bool = False
    value: float | None = None


def surplus(copies: Sequence[Copy], keep: Keep, *, goal: str = "min", held: frozenset[str] = frozenset()) -> list[Copy]:
    """Which of one stage's checkpoints go, oldest first. Pure.

    A step that was saved again counts once, by its newest copy. While the metric has judged fewer than `best`, nothing
    goes: a misspelt name must not cost the best checkpoint.
    """
    by_age = sorted(copies, key=lambda one: (one.epoch, one.step, one.recorded_us))
    steps = {one.step: one for one in by_age}  # the newest copy of each
    ahead = sorted(steps.values(), key=lambda one: (one.epoch, one.step, one.recorded_us))
    stay = {_id(one) for one in ahead[-max(keep.last, 1) :]}
    if keep.best:
        judged = [one for one in ahead if one.value is not None and one.value == one.value]
        if len(judged) < keep.best:
            return []
        sign = -1.0 if goal == "max" else 1.0
        stay |= {_id(one) for one in sorted(judged, key=lambda one: (sign * (one.value or 0.0), one.step))[: keep.best]}
    return [one for one in by_age if _id(one) not in stay and not one.current and one.digest not in held]


def _id(one: Copy) -> tuple[str, str, str]:
    return one.attempt_id, one.name, one.digest


def look(tx: ReadTx, its_run: runs.RunRow, curves: Curves) -> dict[str, list[Copy]]:
    """The durable checkpoints of a run by stage, judged by the metric of its policy."""
    keep = runs.spec_of(its_run).checkpoint.keep
    by = keep.by if keep is not None else ""
    points = metrics.standing_points(curves.view(tx, its_run.id), by) if by else []
    value_at = _values(points)
    found: dict[str, list[Copy]] = {}
    for row in tx.rows(select(checkpoint).where(checkpoint.c.run_id == its_run.id)):
        one = Copy(
            row.attempt_id, row.name, row.digest, row.epoch, row.step, row.recorded_us, bool(row.current), value_at(row.step)
        )  # fmt: skip
        found.setdefault(row.stage, []).append(one)
    return found


def _values(points: Iterable[tuple[int, int, float]]) -> Any:
    """Return what gives the last value at or before a step."""
    ordered = sorted((step, ts, value) for step, ts, value in points)
    steps = [step for step, _, _ in ordered]

    def at(step: int) -> float | None:
        place = bisect.bisect_right(steps, step)
        return ordered[place - 1][2] if place else None

    return at


def goal_of(tx: ReadTx, run_id: str, keep: Keep) -> str:
    """Whether less or more of the metric is better: as the spec says, else as the program defined it, else less."""
    said = keep.goal or facts.definitions(tx, run_id, [keep.by]).get(keep.by, {}).get("goal", "")
    return "max" if said in ("max", "maximize") else "min"


def drop(tx: Tx, its_run: runs.RunRow, one: Copy, *, why: dict[str, Any]) -> None:
    """Let a checkpoint leave the record of what there is; its bytes are freed later."""
    this = (
        checkpoint.c.run_id == its_run.id, checkpoint.c.attempt_id == one.attempt_id, checkpoint.c.name == one.name,
        checkpoint.c.digest == one.digest, checkpoint.c.current == 0,
    )  # fmt: skip
    row = tx.one(select(checkpoint).where(*this))
    if row is None:
        return
    tx.execute(delete(checkpoint).where(*this))
    again = (dropped.c[name] == getattr(one, name) for name in ("attempt_id", "name", "digest"))
    tx.execute(delete(dropped).where(dropped.c.run_id == its_run.id, *again))  # dropped, saved again, dropped again
    tx.execute(
        insert(dropped).values(
            run_id=row.run_id, attempt_id=row.attempt_id, name=row.name, digest=row.digest, space_id=row.space_id,
            attempt=row.attempt, stage=row.stage, step=row.step, size_bytes=row.size_bytes, created_us=row.created_us,
            dropped_us=tx.now_us,
        )
    )  # fmt: skip
    data = {"name": row.name, "step": row.step, "digest": row.digest, "size_bytes": row.size_bytes, **why}
    tx.emit(Event("checkpoint.dropped", row.run_id, row.space_id, row.run_id, row.attempt_id, data))


def waiting(tx: ReadTx) -> list[Row[Any]]:
    """Dropped checkpoints whose bytes were not freed yet."""
    return tx.rows(select(dropped).where(dropped.c.freed_us == 0).order_by(dropped.c.dropped_us).limit(1000))


def freed(tx: Tx, digests: Sequence[str]) -> None:
    """Note that nothing of these is in the store any more, or that somebody else names them."""
    for at in range(0, len(digests), 500):
        some = list(digests[at : at + 500])
        tx.execute(
            update(dropped).where(dropped.c.digest.in_(some), dropped.c.freed_us == 0).values(freed_us=tx.now_us)
        )


def dropped_one(tx: ReadTx, attempt_id: str, name: str, digest: str) -> Row[Any] | None:
    """A checkpoint that was let go."""
    this = (dropped.c.attempt_id == attempt_id, dropped.c.name == name, dropped.c.digest == digest)
    return tx.one(select(dropped).where(*this))


def dropped_of(tx: ReadTx, run_id: str) -> list[Row[Any]]:
    return tx.rows(select(dropped).where(dropped.c.run_id == run_id).order_by(dropped.c.dropped_us, dropped.c.step))
