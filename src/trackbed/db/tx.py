"""What a unit of work is given: reads of one snapshot, writes that stand or fall together, events in the same transaction."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, CursorResult, Executable, Row, Table, false, true
from sqlalchemy.dialects.postgresql import insert

from trackbed.db.schema import event as event_table
from trackbed.domain.events import Event
from trackbed.domain.scope import Actor, Permission, Scope

Params = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None
_insert_event = event_table.insert()


class ReadTx:
    """A consistent snapshot. Good only inside the function that it was given to."""

    def __init__(self, connection: Connection, *, now_us: int) -> None:
        self.connection = connection  # of this room; others go through the methods
        self.now_us = now_us

    def rows(self, stmt: Executable, params: Params = None) -> list[Row[Any]]:
        return list(self.connection.execute(stmt, params).fetchall())

    def pages(self, stmt: Executable, *, rows: int = 2000) -> Iterator[Sequence[Row[Any]]]:
        """Yield the rows of a long answer in parts, without holding all of them."""
        found = self.connection.execute(stmt, execution_options={"stream_results": True, "yield_per": rows})
        yield from found.partitions(rows)

    def one(self, stmt: Executable, params: Params = None) -> Row[Any] | None:
        """Return the first row, or None."""
        return self.connection.execute(stmt, params).first()

    def scalar(self, stmt: Executable, params: Params = None) -> Any:
        """Return the first column of the first row, or None."""
        return self.connection.execute(stmt, params).scalar()


class Tx(ReadTx):
    """One unit of work: all of it is durable when `write` returns, or none of it is.

    On PostgreSQL the function may run again after a serialization failure, so it changes nothing but the database;
    what must follow a commit goes to `after_commit`.
    """

    def __init__(
        self, connection: Connection, *, now_us: int, actor: Actor, positions: Callable[[Connection, int], list[int]]
    ) -> None:
        super().__init__(connection, now_us=now_us)
        self.actor = actor
        self._positions = positions
        self._events: list[Event] = []
        self.hooks: list[Callable[[], None]] = []

    def execute(self, stmt: Executable, params: Params = None) -> CursorResult[Any]:
        """Run a statement; a list of dicts runs it for each."""
        return self.connection.execute(stmt, params)  # pyright: ignore[reportReturnType] - Core gives a CursorResult

    def emit(self, event: Event) -> None:
        """Write what happened into the journal of this transaction, in the order of the calls."""
        self._events.append(event)

    def after_commit(self, fn: Callable[[], None]) -> None:
        """Run `fn` once the group commit is durable, before `write` returns. It must be quick and must not write."""
        self.hooks.append(fn)

    def flush(self) -> None:
        """Insert the emitted events; called by the writer when the function has returned."""
        if not self._events:
            return
        ids = self._positions(self.connection, len(self._events))
        actor = self.actor
        rows = [
            {
                "id": position,
                "time_us": self.now_us,
                "kind": event.kind,
                "actor_kind": actor.kind.value,
                "actor": actor.id,
                "actor_name": actor.name,
                "subject": event.subject,
                "space_id": event.space_id,
                "run_id": event.run_id,
                "attempt_id": event.attempt_id,
                "data": msgspec.json.encode(event.data).decode(),
            }
            for position, event in zip(ids, self._events, strict=True)
        ]
        self.connection.execute(_insert_event, rows)


def scope_clause(table: Table, scope: Scope, permission: Permission = Permission.READ) -> ColumnElement[bool]:
    """Return the condition that keeps a query inside the spaces where the scope has the permission.

    Every query of persons' data carries one; `table` has a column `space_id`.
    """
    spaces = scope.spaces(permission)
    if spaces is None:
        return true()
    return table.c.space_id.in_(sorted(spaces)) if spaces else false()


def upsert(
    table: Table,
    values: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    *,
    key: Sequence[str],
    update: Sequence[str] = (),
) -> Any:
    """Return an insert that, where a row with the same `key` stands, updates the named columns to the new values.

    Without `update` the row that stands is left alone. The same statement compiles for both databases and takes
    `.returning(...)`; leave `values` out to run it for a list of params.
    """
    stmt = insert(table)
    if values is not None:
        stmt = stmt.values(values)
    if not update:
        return stmt.on_conflict_do_nothing(index_elements=list(key))
    return stmt.on_conflict_do_update(index_elements=list(key), set_={name: stmt.excluded[name] for name in update})
