"""Which stages of a run are worked on by runs of their own."""

from typing import Any

from sqlalchemy import Row, select, update

from trackbed.db import ReadTx, Tx
from trackbed.workflow.sql import child

_AT_ONCE = 500  # values in one statement


def give(tx: Tx, run_id: str, position: int, child_id: str, space_id: str) -> None:
    """Note that a stage was given to a run of its own."""
    values = {"run_id": run_id, "position": position, "child_id": child_id, "space_id": space_id, "state": "running"}
    tx.execute(child.insert().values(**values))


def of_run(tx: ReadTx, run_id: str) -> dict[int, Row[Any]]:
    """Return what was given away of a run, by the position of the stage."""
    rows = tx.rows(select(child).where(child.c.run_id == run_id).order_by(child.c.position))
    return {row.position: row for row in rows}


def parent_of(tx: ReadTx, child_id: str) -> Row[Any] | None:
    """Return for which stage of which run a run was made."""
    return tx.one(select(child).where(child.c.child_id == child_id))


def running(tx: ReadTx) -> list[Row[Any]]:
    return tx.rows(select(child).where(child.c.state == "running").order_by(child.c.run_id, child.c.position))


def failed(tx: ReadTx) -> list[Row[Any]]:
    return tx.rows(select(child).where(child.c.state == "failed").order_by(child.c.run_id, child.c.position))


def set_state(tx: Tx, run_id: str, position: int, state: str) -> None:
    tx.execute(update(child).where(child.c.run_id == run_id, child.c.position == position).values(state=state))


def awaited(tx: ReadTx, positions: dict[str, int]) -> dict[str, str]:
    """Return of runs (run → the stage that it stands at) those that wait for a run of their own: run → that one."""
    found: dict[str, str] = {}
    ids = sorted(positions)
    for at in range(0, len(ids), _AT_ONCE):
        mine = select(child).where(child.c.run_id.in_(ids[at : at + _AT_ONCE]), child.c.state != "done")
        found |= {row.run_id: row.child_id for row in tx.rows(mine) if positions[row.run_id] == row.position}
    return found
