"""Packs as rows: one for each environment and platform, claimed by one builder at a time.

wanted ─► building ─► ready | failed         a builder that falls silent loses its claim
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Column, Integer, Row, Table, Text, or_, select, update

from trackbed.db import ReadTx, Tx, metadata, upsert
from trackbed.domain.events import Event
from trackbed.wire.environments import PackView
from trackbed.wire.runs import Reason

STALE_US = 60_000_000  # a builder beats every few seconds

pack = Table(
    "environment_pack",
    metadata,
    Column("environment", Text, primary_key=True),
    Column("platform", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("python", Text, nullable=False, default=""),
    Column("tree_digest", Text, nullable=False, default=""),  # keeps the pack in the store
    Column("size_bytes", Integer, nullable=False, default=0),
    Column("reason", Text, nullable=False, default=""),  # Reason as JSON
    Column("notes", Text, nullable=False, default="[]"),
    Column("log", Text, nullable=False, default=""),
    Column("builder", Text, nullable=False, default=""),
    Column("beat_us", Integer, nullable=False, default=0),
    Column("tries", Integer, nullable=False, default=0),
    Column("not_before_us", Integer, nullable=False, default=0),
    Column("created_us", Integer, nullable=False),
    Column("ended_us", Integer, nullable=False, default=0),
)


def get(tx: ReadTx, environment: str, platform: str) -> Row[Any] | None:
    return tx.one(select(pack).where(_key(environment, platform)))


def ready_tree(tx: ReadTx, environment: str, platform: str) -> str:
    """Return the tree digest of a pack; empty where it is not ready."""
    row = get(tx, environment, platform)
    return str(row.tree_digest) if row is not None and row.state == "ready" else ""


def want(tx: Tx, environment: str, platform: str) -> None:
    """Ask for a pack; one that failed is tried again."""
    values = {"environment": environment, "platform": platform, "state": "wanted", "created_us": tx.now_us}
    tx.execute(upsert(pack, values, key=["environment", "platform"]))
    again = {"state": "wanted", "reason": "", "tries": 0, "not_before_us": 0, "ended_us": 0}
    tx.execute(update(pack).where(_key(environment, platform), pack.c.state == "failed").values(**again))


def claim(tx: Tx, builder: str, platforms: Sequence[str]) -> Row[Any] | None:
    """Take the pack that waits longest, or one whose builder fell silent."""
    free = or_(
        (pack.c.state == "wanted") & (pack.c.not_before_us <= tx.now_us),
        (pack.c.state == "building") & (pack.c.beat_us < tx.now_us - STALE_US),
    )
    row = tx.one(select(pack).where(free, pack.c.platform.in_(list(platforms))).order_by(pack.c.created_us).limit(1))
    if row is None:
        return None
    values = {"state": "building", "builder": builder, "beat_us": tx.now_us, "tries": row.tries + 1, "log": ""}
    tx.execute(update(pack).where(_key(row.environment, row.platform)).values(**values))
    tx.emit(Event("environment.building", row.environment, data={"platform": row.platform}))
    return get(tx, row.environment, row.platform)


def beat(tx: Tx, row: Row[Any], log: str) -> bool:
    """Say that the build goes on; False where another builder has it now."""
    mine = (pack.c.state == "building") & (pack.c.builder == row.builder)
    done = tx.execute(update(pack).where(_key(row.environment, row.platform), mine).values(beat_us=tx.now_us, log=log))
    return done.rowcount == 1


def close(tx: Tx, row: Row[Any], state: str, **values: Any) -> bool:
    """End a build, or put it back (`wanted`); False where another builder has it now, and nothing was changed."""
    mine = (pack.c.state == "building") & (pack.c.builder == row.builder)
    ended_us = tx.now_us if state in ("ready", "failed") else 0
    values = {"state": state, "ended_us": ended_us, "builder": "", **values}
    return tx.execute(update(pack).where(_key(row.environment, row.platform), mine).values(**values)).rowcount == 1


def of_environment(tx: ReadTx, environment: str) -> list[PackView]:
    rows = tx.rows(select(pack).where(pack.c.environment == environment).order_by(pack.c.platform))
    return [view(row) for row in rows]


def view(row: Row[Any]) -> PackView:
    return PackView(
        environment=row.environment, platform=row.platform, state=row.state, python=row.python, tree=row.tree_digest,
        size_bytes=row.size_bytes, reason=msgspec.json.decode(row.reason, type=Reason) if row.reason else None,
        notes=msgspec.json.decode(row.notes, type=list[str]), log=row.log, created_us=row.created_us, ended_us=row.ended_us,
    )  # fmt: skip


def forget(tx: Tx, keep: Sequence[str], before_us: int) -> list[str]:
    """Drop packs that ended before a time and belong to no environment of `keep`; return whose they were."""
    old = select(pack).where(pack.c.state.in_(["ready", "failed"]), pack.c.ended_us < before_us)
    kept, gone = set(keep), list[str]()
    for row in tx.rows(old):
        if row.environment not in kept:
            tx.execute(pack.delete().where(_key(row.environment, row.platform)))
            tx.emit(Event("environment.forgotten", row.environment, data={"platform": row.platform}))
            gone.append(row.environment)
    return gone


def _key(environment: str, platform: str) -> Any:
    return (pack.c.environment == environment) & (pack.c.platform == platform)
