"""keep: after a checkpoint became durable, and at the end of an attempt, let those go that the run's policy does not keep.

What a model, a fork or a reproduction refers to is looked for outside the writer's lane; what was submitted or registered
since that look is asked again inside the transaction that drops.
"""

from typing import Any

from sqlalchemy import or_, select

from trackbed.db import ReadTx, Tx
from trackbed.domain.scope import Actor, ActorKind
from trackbed.registry.sql import version
from trackbed.server.app import App
from trackbed.tracking import keeping, runs, runs_attempts
from trackbed.tracking.runs_tables import attempt, run
from trackbed.wire.spec import Keep

ACTOR = Actor(ActorKind.SYSTEM, "keep", "checkpoint.keep")
_OVERLAP_US = 60_000_000  # clocks of several servers


def prune(app: App, run_id: str) -> int:
    """Drop what the policy of a run does not keep; return how many went. Blocks; not for the event loop."""

    def first_look(tx: ReadTx) -> tuple[list[keeping.Copy], frozenset[str], int]:
        row = runs.get(tx, run_id)
        found = _surplus(app, tx, row)
        return found, referred(tx, row, [one.digest for one in found]), tx.now_us

    found, held, seen_us = app.db.read(first_look)
    if all(one.digest in held for one in found):
        return 0

    def work(tx: Tx) -> int:
        row = runs.get(tx, run_id)
        keep = runs.spec_of(row).checkpoint.keep or Keep()
        going = [one for one in _surplus(app, tx, row) if one in found and one.digest not in held]
        late = referred(tx, row, [one.digest for one in going], since_us=seen_us - _OVERLAP_US)
        why: dict[str, Any] = {"last": keep.last, "best": keep.best, "by": keep.by or "-"}
        going = [one for one in going if one.digest not in late]
        for one in going:
            value = {"value": one.value} if one.value is not None else {}
            keeping.drop(tx, row, one, why={**why, **value})
        tx.after_commit(lambda: app.wake.set("upkeep"))
        return len(going)

    return app.db.write(work, actor=ACTOR)


def _surplus(app: App, tx: ReadTx, row: runs.RunRow) -> list[keeping.Copy]:
    """Looked at twice: the points that the second look needs are in memory from the first."""
    keep = runs.spec_of(row).checkpoint.keep
    if keep is None:
        return []
    goal = keeping.goal_of(tx, row.id, keep) if keep.by else "min"
    return [
        one for copies in keeping.look(tx, row, app.curves).values() for one in keeping.surplus(copies, keep, goal=goal)
    ]  # fmt: skip


def referred(tx: ReadTx, row: runs.RunRow, digests: list[str], *, since_us: int = 0) -> frozenset[str]:
    """Which of these a model, another run's spec (a fork, its reproductions) or a living attempt of this run names."""
    found: set[str] = set()
    live = {one.resume_digest for one in runs_attempts.of_run(tx, row.id) if one.state in runs_attempts.LIVE}
    for digest in digests:
        others = select(run.c.id).where(
            run.c.created_us >= since_us, run.c.id != row.id, run.c.spec.contains(digest, autoescape=True)
        )
        named = or_(version.c.digest == digest, version.c.provenance.contains(digest, autoescape=True))
        models = select(version.c.model_id).where(version.c.created_us >= since_us, named)
        started = select(attempt.c.id).where(
            attempt.c.resume_digest == digest, attempt.c.run_id != row.id, attempt.c.state.in_(runs_attempts.LIVE)
        )
        if digest in live or any(tx.one(stmt.limit(1)) is not None for stmt in (others, models, started)):
            found.add(digest)
    return frozenset(found)
