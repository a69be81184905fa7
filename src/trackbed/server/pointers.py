"""Pointers of a store whose place keeps no conditions: rows of the database, moved by compare-and-set with the epoch."""

from typing import Any

from sqlalchemy import Column, Integer, Row, Table, Text, select

from trackbed.base.errors import Conflict
from trackbed.db import Database, ReadTx, Tx, metadata, upsert
from trackbed.domain.scope import SYSTEM
from trackbed.storage.refs_backend import CallbackRefs
from trackbed.storage.store import RefValue

pointer = Table(
    "store_pointer",
    metadata,
    Column("domain", Text, primary_key=True),  # of the store; empty: the first one
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("moved_us", Integer, nullable=False),
)


def database_refs(db: Database, domain: str) -> CallbackRefs:
    """Pointers of one domain in the database."""

    def find(tx: ReadTx, name: str) -> Row[Any] | None:
        return tx.one(select(pointer).where(pointer.c.domain == domain, pointer.c.name == name))

    def get(name: str) -> RefValue | None:
        row = db.read(lambda tx: find(tx, name))
        return RefValue(row.value, row.epoch) if row is not None else None

    def compare_and_set(name: str, expected: str | None, new: str, epoch: int) -> None:
        def work(tx: Tx) -> None:
            now = find(tx, name)
            if now is not None and epoch < now.epoch:
                raise Conflict("epoch_superseded", name=name, epoch=epoch, current=now.epoch)
            if (now.value if now is not None else None) != expected:
                raise Conflict("ref_moved", name=name, expected=expected or "-", actual=now.value if now else "-")
            values = {"domain": domain, "name": name, "value": new, "epoch": epoch, "moved_us": tx.now_us}
            tx.execute(upsert(pointer, values, key=["domain", "name"], update=["value", "epoch", "moved_us"]))

        db.write(work, actor=SYSTEM.actor)

    return CallbackRefs(get, compare_and_set)
