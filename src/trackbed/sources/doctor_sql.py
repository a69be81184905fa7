"""What the checks of nodes saw, with history; a change of verdict is an event."""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Column, Float, Index, Integer, Row, Table, Text, delete, func, select

from trackbed.db import ReadTx, Tx, metadata
from trackbed.domain.events import Event
from trackbed.sources.doctor import Look
from trackbed.wire.doctor import NodeCheck

KEEP_US = 14 * 86400 * 1_000_000

node_check = Table(
    "node_check",
    metadata,
    Column("node", Text, primary_key=True),
    Column("check", Text, primary_key=True),
    Column("time_us", Integer, primary_key=True, autoincrement=False),
    Column("verdict", Text, nullable=False),
    Column("value", Float, nullable=False, default=0.0),
    Column("unit", Text, nullable=False, default=""),
    Column("params", Text, nullable=False, default="{}"),
    Index("node_check_by_time", "time_us"),
)


def note(tx: Tx, node: str, looks: Sequence[Look]) -> list[str]:
    """Keep a look at a node, drop what is older than the history; return the checks whose verdict changed."""
    before = {row.check: row.verdict for row in _newest(tx, node)}
    changed: list[str] = []
    for one in looks:
        tx.execute(node_check.insert().values(
            node=node, check=one.check, time_us=tx.now_us, verdict=one.verdict, value=one.value, unit=one.unit,
            params=msgspec.json.encode(one.params).decode(),
        ))  # fmt: skip
        was = before.get(one.check, "ok")  # a node that is well from the start is no news
        if was != one.verdict:
            changed.append(one.check)
            data = {"node": node, "check": one.check, "before": was, "verdict": one.verdict, **one.params}
            tx.emit(Event("node.check_changed", f"node:{node}", data=data))
    tx.execute(delete(node_check).where(node_check.c.time_us < tx.now_us - KEEP_US))
    return changed


def newest(tx: ReadTx) -> list[NodeCheck]:
    """The last look of every check at every node."""
    return [view(row) for row in _newest(tx)]


def history(tx: ReadTx, *, node: str = "", check: str = "", since_us: int = 0, limit: int = 500) -> list[NodeCheck]:
    """Looks, the newest first."""
    wanted = [node_check.c.time_us >= since_us]
    wanted += [node_check.c.node == node] if node else []
    wanted += [node_check.c.check == check] if check else []
    stmt = (
        select(node_check).where(*wanted).order_by(node_check.c.time_us.desc(), node_check.c.node, node_check.c.check)
    )
    return [view(row) for row in tx.rows(stmt.limit(max(1, min(limit, 5000))))]


def view(row: Row[Any]) -> NodeCheck:
    return NodeCheck(
        node=row.node, check=row.check, verdict=row.verdict, value=row.value, unit=row.unit, time_us=row.time_us,
        params=msgspec.json.decode(row.params),
    )  # fmt: skip


def _newest(tx: ReadTx, node: str = "") -> list[Row[Any]]:
    last = select(node_check.c.node, node_check.c.check, func.max(node_check.c.time_us).label("time_us"))
    last = (last.where(node_check.c.node == node) if node else last).group_by(node_check.c.node, node_check.c.check)
    newest_of = last.subquery()
    on = (
        (node_check.c.node == newest_of.c.node)
        & (node_check.c.check == newest_of.c.check)
        & (node_check.c.time_us == newest_of.c.time_us)
    )
    return tx.rows(select(node_check).join(newest_of, on).order_by(node_check.c.node, node_check.c.check))
