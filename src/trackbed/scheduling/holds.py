"""Who holds which card. One row a held card: the primary key is what makes a second hold impossible.

A hold ends by a confirmed exit, or by another boot of its node. A hold of an attempt that was declared gone is *unknown*:
it is not free, and it is not counted as used by anybody.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Index, Integer, Row, Table, Text, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from trackbed.base.errors import Conflict
from trackbed.db import ReadTx, Tx, metadata

card_hold = Table(
    "card_hold",
    metadata,
    Column("node", Text, primary_key=True),
    Column("card", Integer, primary_key=True, autoincrement=False),
    Column("attempt_id", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("space_id", Text, nullable=False),
    Column("unknown", Integer, nullable=False, default=0),
    Column("since_us", Integer, nullable=False),
    Index("card_hold_by_attempt", "attempt_id"),
)


@dataclass(frozen=True)
class Holder:
    attempt_id: str
    run_id: str
    space_id: str


def take(tx: Tx, holder: Holder, cards: Mapping[str, Iterable[int]]) -> None:
    """Hold the cards of an attempt, all or none.

    Raises:
        Conflict: `card_held`: somebody else holds one of them.
    """
    rows = [
        {
            "node": node, "card": card, "attempt_id": holder.attempt_id, "run_id": holder.run_id,
            "space_id": holder.space_id, "unknown": 0, "since_us": tx.now_us,
        }
        for node, indexes in cards.items()
        for card in indexes
    ]  # fmt: skip
    if not rows:
        return
    try:
        tx.execute(insert(card_hold), rows)
    except IntegrityError:
        raise Conflict("card_held", cards=", ".join(f"{row['node']}:{row['card']}" for row in rows)) from None


def free(tx: Tx, attempt_id: str) -> int:
    """End the holds of an attempt after its confirmed exit; return how many cards that frees."""
    return tx.execute(delete(card_hold).where(card_hold.c.attempt_id == attempt_id)).rowcount


def set_unknown(tx: Tx, attempt_id: str, *, unknown: bool) -> None:
    """Mark the holds of an attempt that was declared gone, or of one that was heard of again."""
    tx.execute(update(card_hold).where(card_hold.c.attempt_id == attempt_id).values(unknown=int(unknown)))


def all_holds(tx: ReadTx) -> list[Row[Any]]:
    return tx.rows(select(card_hold).order_by(card_hold.c.node, card_hold.c.card))
