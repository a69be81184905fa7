"""Which run was made from which, with what changed."""

from typing import Any

import msgspec
from sqlalchemy import Row, select

from trackbed.db import ReadTx, Tx
from trackbed.wire.runs import FieldChange
from trackbed.workflow.sql import like


def record(tx: Tx, run_id: str, of_id: str, space_id: str, kind: str, changes: list[FieldChange]) -> None:
    tx.execute(
        like.insert().values(
            run_id=run_id, of_id=of_id, space_id=space_id, kind=kind, changes=msgspec.json.encode(changes).decode()
        )
    )  # fmt: skip


def of_run(tx: ReadTx, run_id: str) -> Row[Any] | None:
    return tx.one(select(like).where(like.c.run_id == run_id))


def made_from(tx: ReadTx, run_id: str) -> list[str]:
    """Return the runs that were made from a run, at most 200."""
    return [row.run_id for row in tx.rows(select(like).where(like.c.of_id == run_id).limit(200))]


def changes_of(row: Row[Any]) -> list[FieldChange]:
    return msgspec.json.decode(row.changes, type=list[FieldChange])
