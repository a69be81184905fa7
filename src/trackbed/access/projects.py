"""Projects: owners of runs and of their gap-free numbers. An old name keeps leading to its project."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import select, update

from trackbed.access import tables
from trackbed.access.rules import DEFAULT_SPACE, checked_name
from trackbed.access.spaces import space_named
from trackbed.base.entropy import new_id
from trackbed.base.errors import Conflict, NotFound
from trackbed.db import ReadTx, Tx, scope_clause
from trackbed.domain.events import Event
from trackbed.domain.scope import Permission, Scope
from trackbed.wire.access import NamingView, ProjectView


@dataclass(frozen=True)
class ProjectRow:
    """`name` is the present one, also where an old one was asked for."""

    id: str
    name: str
    space_id: str
    space: str


def find_project(
    tx: ReadTx, scope: Scope, name: str, *, space: str = DEFAULT_SPACE, permission: Permission = Permission.READ
) -> ProjectRow:
    """Return the project that has or had this name in the space.

    Raises:
        NotFound: no such project or space for this scope.
        Denied: the role is too low for `permission`.
    """
    room = space_named(tx, scope, space, permission=permission)
    found = _lookup(tx, room.id, room.name, name)
    if found is None:
        raise NotFound("project_unknown", project=name, space=room.name)
    return found


def _lookup(tx: ReadTx, space_id: str, space: str, name: str) -> ProjectRow | None:
    names, project = tables.project_name, tables.project
    row = tx.one(
        select(project)
        .join(names, names.c.project_id == project.c.id)
        .where(names.c.space_id == space_id, names.c.name == name)
    )
    return None if row is None else ProjectRow(row.id, row.name, space_id, space)


def ensure_project(tx: Tx, scope: Scope, space: str, name: str) -> ProjectRow:
    """Return the project, made if there is none of this name. Needs the right to write in the space.

    Raises:
        NotFound, Denied: as `space_named`.
        BadInput: `access_name_bad`.
    """
    room = space_named(tx, scope, space, permission=Permission.WRITE)
    found = _lookup(tx, room.id, room.name, name)
    if found is not None:
        return found
    checked_name(name, what="a project")
    made = ProjectRow(new_id("prj"), name, room.id, room.name)
    tx.execute(tables.project.insert().values(id=made.id, space_id=room.id, name=name, runs=0, created_us=tx.now_us))
    tx.execute(tables.project_name.insert().values(space_id=room.id, name=name, project_id=made.id))
    tx.emit(Event("project.created", made.id, space_id=room.id, data={"name": name}))
    return made


def next_run_number(tx: Tx, project_id: str) -> int:
    """Return 1, 2, 3, … without a gap: the number stands or falls with the transaction that took it."""
    number = tx.execute(
        update(tables.project)
        .where(tables.project.c.id == project_id)
        .values(runs=tables.project.c.runs + 1)
        .returning(tables.project.c.runs)
    ).scalar()
    if number is None:
        raise NotFound("project_unknown", project=project_id, space="")
    return number


def rename_project(tx: Tx, scope: Scope, name: str, *, to: str, space: str = DEFAULT_SPACE) -> ProjectRow:
    """Give a project another name; the old one stays as an alias. Needs a maintainer.

    Raises:
        Conflict: `project_exists`: another project has or had the new name.
    """
    project = find_project(tx, scope, name, space=space, permission=Permission.MAINTAIN)
    checked_name(to, what="a project")
    holder = _lookup(tx, project.space_id, project.space, to)
    if holder is not None and holder.id != project.id:
        raise Conflict("project_exists", project=to, space=project.space)
    if holder is None:
        tx.execute(tables.project_name.insert().values(space_id=project.space_id, name=to, project_id=project.id))
    tx.execute(update(tables.project).where(tables.project.c.id == project.id).values(name=to))
    tx.emit(Event("project.renamed", project.id, space_id=project.space_id, data={"from": project.name, "to": to}))
    return ProjectRow(project.id, to, project.space_id, project.space)


def list_projects(tx: ReadTx, scope: Scope, *, naming: Mapping[str, NamingView] | None = None) -> list[ProjectView]:
    """Return the projects that the scope may read, by space and name, with the names they had."""
    project, space, names = tables.project, tables.space, tables.project_name
    rows = tx.rows(
        select(project, space.c.name.label("space"))
        .join(space, space.c.id == project.c.space_id)
        .where(scope_clause(project, scope))
        .order_by(space.c.name, project.c.name)
    )
    old: dict[str, list[str]] = {}
    for row in tx.rows(select(names).where(scope_clause(names, scope)).order_by(names.c.name)):
        old.setdefault(row.project_id, []).append(row.name)
    return [
        ProjectView(
            name=row.name,
            space=row.space,
            runs=row.runs,
            created_us=row.created_us,
            aliases=[name for name in old.get(row.id, []) if name != row.name],
            naming=(naming or {}).get(row.id),
        )
        for row in rows
    ]
