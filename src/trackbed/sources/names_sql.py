"""Names of environments, each a pointer in a space that moves by its version; and what was found where an attempt ran."""

from typing import Any

import msgspec
from sqlalchemy import Column, Integer, Row, Table, Text, select

from trackbed.base.errors import Conflict, NotFound
from trackbed.db import ReadTx, Tx, metadata, scope_clause, upsert
from trackbed.domain.events import Event
from trackbed.domain.scope import Scope
from trackbed.wire.environments import EnvironmentName
from trackbed.wire.surroundings import EnvironmentFound, Surroundings

name = Table(
    "environment_name",
    metadata,
    Column("space_id", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("space", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("run_id", Text, nullable=False, default=""),
    Column("surroundings", Text, nullable=False, default=""),  # Surroundings as JSON
    Column("version", Integer, nullable=False),
    Column("set_by", Text, nullable=False),
    Column("set_us", Integer, nullable=False),
)

found = Table(
    "attempt_environment",
    metadata,
    Column("attempt_id", Text, primary_key=True),
    Column("run_id", Text, nullable=False),
    Column("space_id", Text, nullable=False),
    Column("found", Text, nullable=False),  # EnvironmentFound as JSON
    Column("created_us", Integer, nullable=False),
)


def point(
    tx: Tx, space: tuple[str, str], label: str, digest: str, *, run_id: str = "",
    surroundings: Surroundings | None = None, expected: int | None = None,
) -> EnvironmentName:  # fmt: skip
    """Point a name of a space (id, name) to an environment.

    Raises:
        Conflict: `environment_name_moved`: it is not at the version that its writer saw.
    """
    row = tx.one(select(name).where(name.c.space_id == space[0], name.c.name == label))
    stands = row.version if row is not None else 0
    if expected is not None and expected != stands:
        raise Conflict("environment_name_moved", name=label, expected=expected, version=stands,
                       digest=row.digest if row is not None else "-")  # fmt: skip
    values = {
        "space_id": space[0], "name": label, "space": space[1], "digest": digest, "run_id": run_id,
        "surroundings": msgspec.json.encode(surroundings).decode() if surroundings else "",
        "version": stands + 1, "set_by": tx.actor.name, "set_us": tx.now_us,
    }  # fmt: skip
    tx.execute(
        upsert(
            name, values, key=["space_id", "name"], update=[key for key in values if key not in ("space_id", "name")]
        )
    )
    tx.emit(
        Event(
            "environment.named", digest, space[0], data={"name": label, "before": row.digest if row is not None else ""}
        )
    )
    return of(tx, space[0], label)


def of(tx: ReadTx, space_id: str, label: str) -> EnvironmentName:
    """Return what a name points to.

    Raises:
        NotFound: `environment_name_unknown`.
    """
    return view(row_of(tx, space_id, label))


def row_of(tx: ReadTx, space_id: str, label: str) -> Row[Any]:
    row = tx.one(select(name).where(name.c.space_id == space_id, name.c.name == label))
    if row is None:
        raise NotFound("environment_name_unknown", name=label)
    return row


def all_of(tx: ReadTx, scope: Scope) -> list[EnvironmentName]:
    return [
        view(row) for row in tx.rows(select(name).where(scope_clause(name, scope)).order_by(name.c.space, name.c.name))
    ]


def is_named(tx: ReadTx, space_id: str, digest: str) -> bool:
    return tx.one(select(name.c.name).where(name.c.space_id == space_id, name.c.digest == digest)) is not None


def view(row: Row[Any]) -> EnvironmentName:
    return EnvironmentName(
        name=row.name, space=row.space, digest=row.digest, run=row.run_id, version=row.version, set_by=row.set_by,
        set_us=row.set_us,
    )  # fmt: skip


def surroundings_of(row: Row[Any]) -> Surroundings | None:
    return msgspec.json.decode(row.surroundings, type=Surroundings) if row.surroundings else None


def note_found(tx: Tx, attempt: Row[Any], told: EnvironmentFound) -> None:
    """Keep what a supervisor found on its node, once."""
    values = {
        "attempt_id": attempt.id, "run_id": attempt.run_id, "space_id": attempt.space_id,
        "found": msgspec.json.encode(told).decode(), "created_us": tx.now_us,
    }  # fmt: skip
    if tx.execute(upsert(found, values, key=["attempt_id"])).rowcount == 1 and told.drift:
        data = {"count": len(told.drift), "changes": ", ".join(told.drift[:20])}
        tx.emit(Event("attempt.environment_drift", attempt.run_id, attempt.space_id, attempt.run_id, attempt.id, data))


def found_of_run(tx: ReadTx, run_id: str) -> EnvironmentFound | None:
    """Return what the newest attempt of a run found."""
    row = tx.one(select(found.c.found).where(found.c.run_id == run_id).order_by(found.c.created_us.desc()).limit(1))
    return msgspec.json.decode(row.found, type=EnvironmentFound) if row is not None else None
