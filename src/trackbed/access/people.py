"""People, and the first one of an installation."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, func, select

from trackbed.access import tables
from trackbed.access.rules import DEFAULT_PROJECT, DEFAULT_SPACE, checked_name
from trackbed.base.entropy import new_id
from trackbed.base.errors import Conflict, Denied, NotFound
from trackbed.db import ReadTx, Tx
from trackbed.domain.events import Event
from trackbed.domain.scope import Role, Scope


@dataclass(frozen=True)
class Person:
    id: str
    name: str
    admin: bool
    disabled: bool


def person_of(row: Row[Any]) -> Person:
    return Person(row.id, row.name, bool(row.admin), bool(row.disabled))


def require_admin(scope: Scope) -> None:
    """Raise Denied unless the scope is that of an admin of the installation (or of the system)."""
    if not (scope.admin or scope.everything):
        raise Denied("role_too_low", what="the installation", needed=Role.ADMIN.value)


def found(tx: Tx, *, admin: str) -> Person | None:
    """Make the first admin, the space `default` and the project `demo`; None where people are already known."""
    if tx.scalar(select(func.count()).select_from(tables.person)):
        return None
    space_id, project_id = new_id("spc"), new_id("prj")
    tx.execute(tables.space.insert().values(id=space_id, name=DEFAULT_SPACE, created_us=tx.now_us))
    tx.execute(
        tables.project.insert().values(
            id=project_id, space_id=space_id, name=DEFAULT_PROJECT, runs=0, created_us=tx.now_us
        )
    )
    tx.execute(tables.project_name.insert().values(space_id=space_id, name=DEFAULT_PROJECT, project_id=project_id))
    return _insert(tx, admin, admin=True)


def create_person(tx: Tx, scope: Scope, *, name: str, admin: bool) -> Person:
    """Make a person, who is a member of the default space from the start.

    Raises:
        Denied: the scope is no admin's.
        Conflict: `person_exists`.
    """
    require_admin(scope)
    checked_name(name, what="a person")
    if tx.one(select(tables.person.c.id).where(tables.person.c.name == name)):
        raise Conflict("person_exists", name=name)
    person = _insert(tx, name, admin=admin)
    space_id = tx.scalar(select(tables.space.c.id).where(tables.space.c.name == DEFAULT_SPACE))
    if space_id:
        tx.execute(tables.membership.insert().values(space_id=space_id, person_id=person.id, role=Role.MEMBER.value))
    return person


def _insert(tx: Tx, name: str, *, admin: bool) -> Person:
    person = Person(new_id("per"), name, admin, disabled=False)
    tx.execute(
        tables.person.insert().values(id=person.id, name=name, admin=int(admin), disabled=0, created_us=tx.now_us)
    )
    tx.emit(Event("person.created", person.id, data={"name": name, "admin": admin}))
    return person


def list_people(tx: ReadTx, scope: Scope) -> list[Person]:
    """Return everybody, by name; admins only."""
    require_admin(scope)
    return [person_of(row) for row in tx.rows(select(tables.person).order_by(tables.person.c.name))]


def person_named(tx: ReadTx, name: str) -> Person:
    """Return the person of this name; NotFound otherwise. The caller has checked who asks."""
    row = tx.one(select(tables.person).where(tables.person.c.name == name))
    if row is None:
        raise NotFound("person_unknown", name=name)
    return person_of(row)
