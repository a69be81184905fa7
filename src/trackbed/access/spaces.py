"""Spaces: a team's walled room, and who may do what in it."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, delete, select, true

from trackbed.access import tables
from trackbed.access.people import person_named, require_admin
from trackbed.access.rules import DEFAULT_SPACE, checked_name
from trackbed.base.entropy import new_id
from trackbed.base.errors import BadInput, Conflict, NotFound
from trackbed.db import ReadTx, Tx, upsert
from trackbed.domain.events import Event
from trackbed.domain.scope import Permission, Role, Scope
from trackbed.wire.access import SpaceView

GIVEN = (Role.VIEWER, Role.MEMBER, Role.MAINTAINER)  # admin is a right of the installation, not of a space


@dataclass(frozen=True)
class SpaceRow:
    id: str
    name: str


def _visible(scope: Scope) -> ColumnElement[bool]:
    spaces = scope.spaces(Permission.READ)
    return true() if spaces is None else tables.space.c.id.in_(sorted(spaces))


def space_named(
    tx: ReadTx, scope: Scope, name: str = DEFAULT_SPACE, *, permission: Permission = Permission.READ
) -> SpaceRow:
    """Return the space of this name.

    Raises:
        NotFound: there is none, or the scope may not even read it.
        Denied: it may read it, but the role is too low for `permission`.
    """
    row = tx.one(select(tables.space).where(tables.space.c.name == (name or DEFAULT_SPACE)))
    if row is None:
        raise NotFound("not_found", what=f"space {name}")
    scope.require(permission, row.id, what=f"space {name}")
    return SpaceRow(row.id, row.name)


def space_names(tx: ReadTx, scope: Scope) -> dict[str, str]:
    """Return id → name of the spaces that the scope may read."""
    return {row.id: row.name for row in tx.rows(select(tables.space).where(_visible(scope)))}


def list_spaces(tx: ReadTx, scope: Scope) -> list[SpaceView]:
    """Return the spaces that the scope may read, with their members."""
    spaces = tx.rows(select(tables.space).where(_visible(scope)).order_by(tables.space.c.name))
    return [_view(tx, scope, SpaceRow(row.id, row.name)) for row in spaces]


def _view(tx: ReadTx, scope: Scope, space: SpaceRow) -> SpaceView:
    membership, person = tables.membership, tables.person
    rows = tx.rows(
        select(person.c.name, membership.c.role)
        .join(person, person.c.id == membership.c.person_id)
        .where(membership.c.space_id == space.id)
        .order_by(person.c.name)
    )
    mine = Role.ADMIN if scope.admin else scope.roles.get(space.id)
    return SpaceView(
        id=space.id, name=space.name, role=mine.value if mine else "", members={row.name: row.role for row in rows}
    )


def create_space(tx: Tx, scope: Scope, *, name: str, accepted: bool) -> SpaceView:
    """Make a space; its maker needs no role in it, being an admin.

    Raises:
        Denied: the scope is no admin's.
        Conflict: `one_trust_domain` where jobs share the server's account and nobody `accepted` that; `space_exists`.
    """
    require_admin(scope)
    checked_name(name, what="a space")
    if not accepted:
        raise Conflict("one_trust_domain", name=name)
    if tx.one(select(tables.space.c.id).where(tables.space.c.name == name)):
        raise Conflict("space_exists", name=name)
    space = SpaceRow(new_id("spc"), name)
    tx.execute(tables.space.insert().values(id=space.id, name=name, created_us=tx.now_us))
    tx.emit(Event("space.created", space.id, space_id=space.id, data={"name": name}))
    return _view(tx, scope, space)


def set_role(tx: Tx, scope: Scope, space_name: str, *, person: str, role: str) -> SpaceView:
    """Give a person a role in a space; an empty role takes it away.

    Raises:
        Denied, NotFound: the scope is no maintainer of the space, or may not see it.
        BadInput: `role_unknown`.
    """
    space = space_named(tx, scope, space_name, permission=Permission.MAINTAIN)
    if role and role not in GIVEN:
        raise BadInput("role_unknown", role=role, known=", ".join(GIVEN))
    holder = person_named(tx, person)
    table = tables.membership
    if role:
        values = {"space_id": space.id, "person_id": holder.id, "role": role}
        tx.execute(upsert(table, values, key=["space_id", "person_id"], update=["role"]))
    else:
        tx.execute(delete(table).where(table.c.space_id == space.id, table.c.person_id == holder.id))
    tx.emit(
        Event("space.role", holder.id, space_id=space.id, data={"person": person, "role": role, "space": space.name})
    )
    return _view(tx, scope, space)
