"""What a node had to fetch before an attempt could start: per input its bytes, how many came from the node's cache, the wait."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, Float, Integer, Row, Table, Text, select

from trackbed.db import ReadTx, Tx, metadata, upsert
from trackbed.domain.events import Event
from trackbed.wire.attempts import InputFetch

fetch = Table(
    "attempt_input",
    metadata,
    Column("attempt_id", Text, primary_key=True),
    Column("node_rank", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, primary_key=True),
    Column("run_id", Text, nullable=False, index=True),
    Column("size_bytes", Integer, nullable=False),
    Column("fetched_bytes", Integer, nullable=False),
    Column("seconds", Float, nullable=False),
)


def note(tx: Tx, attempt: Row[Any], node_rank: int, inputs: Sequence[InputFetch]) -> None:
    """Keep what one node reports; said twice it is kept once."""
    fresh = False
    for one in inputs:
        values = {
            "attempt_id": attempt.id, "node_rank": node_rank, "name": one.name, "run_id": attempt.run_id,
            "size_bytes": one.size_bytes, "fetched_bytes": one.fetched_bytes, "seconds": one.seconds,
        }  # fmt: skip
        key = ["attempt_id", "node_rank", "name"]
        fresh |= tx.execute(upsert(fetch, values, key=key).returning(fetch.c.name)).first() is not None
    if fresh:
        size = sum(one.size_bytes for one in inputs)
        fetched = sum(one.fetched_bytes for one in inputs)
        data = {
            "attempt": attempt.number, "size_bytes": size, "cached_bytes": size - fetched, "fetched_bytes": fetched,
            "seconds": round(sum(one.seconds for one in inputs), 3),
        }  # fmt: skip
        tx.emit(Event("attempt.inputs_ready", attempt.id, attempt.space_id, attempt.run_id, attempt.id, data))


def of_run(tx: ReadTx, run_id: str) -> dict[str, list[InputFetch]]:
    """What was fetched, by attempt; of several nodes each input once, with the bytes of all and the longest wait."""
    found: dict[str, dict[str, InputFetch]] = {}
    for row in tx.rows(select(fetch).where(fetch.c.run_id == run_id).order_by(fetch.c.name, fetch.c.node_rank)):
        mine = found.setdefault(row.attempt_id, {})
        one = mine.setdefault(row.name, InputFetch(name=row.name))
        one.size_bytes += row.size_bytes
        one.fetched_bytes += row.fetched_bytes
        one.seconds = max(one.seconds, row.seconds)
    return {attempt: list(inputs.values()) for attempt, inputs in found.items()}
