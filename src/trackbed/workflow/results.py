"""Results of stages, and what was chosen for the stages of a run: kept, found, shown."""

from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import Row, delete, select

from trackbed.db import ReadTx, Tx, upsert
from trackbed.wire.runs import Reason
from trackbed.workflow.cache import Earlier, Parts
from trackbed.workflow.sql import choice, result

_AT_ONCE = 500  # values in one statement
_LOOKED_AT = 50  # newest results of a stage that a miss is compared with


@dataclass(frozen=True)
class Choice:
    """What was chosen for one stage of a run: its products are taken from an earlier run (`hit`), or it is run."""

    position: int
    state: str  # hit | miss | off
    reason: Reason
    key: str = ""
    parts: Parts | None = None
    from_run: str = ""
    outputs: str = ""


def find(tx: ReadTx, space_id: str, key: str) -> Row[Any] | None:
    """Return the result of a key in a space."""
    return tx.one(select(result).where(result.c.space_id == space_id, result.c.key == key))


def earlier(tx: ReadTx, space_id: str, stage: str) -> list[Earlier]:
    """Return the newest results of stages of that name, the newest first."""
    mine = select(result).where(result.c.space_id == space_id, result.c.stage == stage)
    rows = tx.rows(mine.order_by(result.c.created_us.desc(), result.c.key).limit(_LOOKED_AT))
    return [Earlier(row.run_id, row.run_ref, msgspec.json.decode(row.parts, type=Parts)) for row in rows]


def record(
    tx: Tx, space_id: str, made: Choice, stage: str, *, run_id: str, ref: str, attempt: int, products: dict[str, str],
    outputs: str,
) -> None:  # fmt: skip
    """Keep what a stage left under the key that it was run by. The newest of a key stands: its products are surely there."""
    values = {
        "space_id": space_id, "key": made.key, "stage": stage, "parts": _json(made.parts or {}),
        "products": _json(products), "outputs": outputs, "run_id": run_id, "run_ref": ref, "attempt": attempt,
        "created_us": tx.now_us,
    }  # fmt: skip
    changed = ["stage", "parts", "products", "outputs", "run_id", "run_ref", "attempt", "created_us"]
    tx.execute(upsert(result, values, key=["space_id", "key"], update=changed))


def forget(tx: Tx, space_id: str, key: str) -> None:
    """Drop a result whose products are gone."""
    tx.execute(delete(result).where(result.c.space_id == space_id, result.c.key == key))


def choose(tx: Tx, space_id: str, run_id: str, made: Choice) -> None:
    """Note what was chosen for a stage; the last word holds."""
    values = {
        "run_id": run_id, "position": made.position, "space_id": space_id, "key": made.key,
        "parts": _json(made.parts or {}), "state": made.state, "reason": _json(made.reason),
        "from_run": made.from_run, "outputs": made.outputs,
    }  # fmt: skip
    changed = [name for name in values if name not in ("run_id", "position")]
    tx.execute(upsert(choice, values, key=["run_id", "position"], update=changed))


def choices(tx: ReadTx, run_id: str) -> dict[int, Choice]:
    """Return what was chosen for the stages of a run, by their position."""
    rows = tx.rows(select(choice).where(choice.c.run_id == run_id).order_by(choice.c.position))
    return {
        row.position: Choice(
            row.position, row.state, msgspec.json.decode(row.reason, type=Reason), row.key,
            msgspec.json.decode(row.parts, type=Parts), row.from_run, row.outputs,
        )
        for row in rows
    }  # fmt: skip


def waiting_for(tx: ReadTx, space_id: str, key: str) -> list[tuple[str, int]]:
    """Return run and position of the stages that were to be run under a key."""
    mine = select(choice.c.run_id, choice.c.position).where(choice.c.space_id == space_id, choice.c.key == key)
    return [(row.run_id, row.position) for row in tx.rows(mine.where(choice.c.state == "miss"))]


def due(tx: ReadTx, positions: dict[str, int]) -> dict[str, str]:
    """Return the keys of the stages that runs (run → position) work on or are to run, where the result would be kept."""
    found: dict[str, str] = {}
    ids = sorted(positions)
    for at in range(0, len(ids), _AT_ONCE):
        mine = select(choice.c.run_id, choice.c.position, choice.c.key).where(choice.c.state == "miss")
        for row in tx.rows(mine.where(choice.c.run_id.in_(ids[at : at + _AT_ONCE]))):
            if positions[row.run_id] == row.position:
                found[row.run_id] = row.key
    return found


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
