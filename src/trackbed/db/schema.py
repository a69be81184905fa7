"""The tables of this room: the journal and the stamp; and the one `metadata` that every room's tables stand on."""

from typing import Any

from sqlalchemy import Column, Index, Integer, MetaData, Table, Text
from sqlalchemy.ext.compiler import compiles

SCHEMA = 1  # raised by a change that an older program cannot read

metadata = MetaData()


@compiles(Integer, "postgresql")
def _eight_bytes(*_: Any, **__: Any) -> str:
    """An `Integer` holds microseconds and bytes on both databases; PostgreSQL's own INTEGER ends at 2³¹."""
    return "BIGINT"


# The journal. `id` is the position that cursors hold: it grows in the order in which transactions become visible to a
# reader of `Database.events` (docs/decisions/0021-journal-order.md).
event = Table(
    "event",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("time_us", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("actor_kind", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("actor_name", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("space_id", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("attempt_id", Text, nullable=False),
    Column("data", Text, nullable=False),
    Index("event_by_run", "run_id", "id"),
    Index("event_by_space", "space_id", "id"),
)

stamp = Table(
    "trackbed_stamp",
    metadata,
    Column("one", Integer, primary_key=True, autoincrement=False),  # always 1
    Column("schema", Integer, nullable=False),
    Column("program", Text, nullable=False),
    Column("created_us", Integer, nullable=False),
    Column(
        "journal_base", Integer, nullable=False
    ),  # added to PostgreSQL's transaction numbers, so that ids never fall
)
