"""Saved views: an address of a page under a name, one's own or for everybody who may read the space."""

from typing import Any

from sqlalchemy import (
    Column,
    Integer,
    Row,
    Table,
    Text,
    UniqueConstraint,
    column,
    delete,
    insert,
    or_,
    select,
    table,
    update,
)

from trackbed.base.entropy import new_id
from trackbed.base.errors import BadInput, Conflict, Denied, Fault, NotFound
from trackbed.db import ReadTx, Tx, metadata, scope_clause
from trackbed.domain.events import Event
from trackbed.domain.scope import ActorKind, Permission, Scope
from trackbed.wire.table import SavedView, SavedViewRequest

PAGES = ("runs", "compare", "metrics")
MOST_NAME, MOST_QUERY = 120, 8000

saved_view = Table(
    "saved_view",
    metadata,
    Column("id", Text, primary_key=True),
    Column("space_id", Text, nullable=False),
    Column("page", Text, nullable=False),
    Column("project", Text, nullable=False),  # "" for all
    Column("owner_id", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("query", Text, nullable=False),
    Column("shared", Integer, nullable=False),
    Column("created_us", Integer, nullable=False),
    Column("updated_us", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    UniqueConstraint("space_id", "page", "project", "owner_id", "name", name="saved_view_name"),
)
_space = table("space", column("id"), column("name"))  # kept by `access`; here only what a name stands for


def views(tx: ReadTx, scope: Scope, *, page: str = "", project: str = "") -> list[SavedView]:
    """Return one's own views and the shared ones of the spaces one may read, by name."""
    stmt = _all(scope).order_by(saved_view.c.name, saved_view.c.id)
    if page:
        stmt = stmt.where(saved_view.c.page == page)
    if project:
        stmt = stmt.where(saved_view.c.project.in_(["", project]))
    return [_view(row, scope) for row in tx.rows(stmt)]


def save(tx: Tx, scope: Scope, request: SavedViewRequest) -> SavedView:
    """Keep a view under its name.

    Raises:
        BadInput: `view_wrong` with every wrong field.
        Conflict: `view_name_taken`: one's own view of that page has the name.
    """
    _check(request)
    space_id = tx.scalar(select(_space.c.id).where(_space.c.name == request.space))
    if space_id is None:
        raise NotFound("not_found", what=f"space {request.space}")
    scope.require(Permission.WRITE, space_id, what=f"space {request.space}")
    _free(tx, scope, request, space_id)
    values: dict[str, Any] = {
        "id": new_id("viw"), "space_id": space_id, "page": request.page, "project": request.project,
        "owner_id": scope.actor.id, "owner": scope.actor.name or scope.actor.id, "name": request.name.strip(),
        "query": request.query, "shared": int(request.shared), "created_us": tx.now_us, "updated_us": tx.now_us,
        "version": 1,
    }  # fmt: skip
    tx.execute(insert(saved_view).values(**values))
    tx.emit(Event("view.saved", values["id"], space_id, data={"name": values["name"], "shared": request.shared}))
    return _view(_find(tx, scope, values["id"]), scope)


def change(tx: Tx, scope: Scope, view_id: str, request: SavedViewRequest) -> SavedView:
    """Change name, address and sharing of a view; it keeps its space and its owner.

    Raises:
        Conflict: `view_moved`: somebody changed it since.
        Denied: it is somebody else's, and the scope does not maintain the space.
    """
    _check(request)
    row = _own(tx, scope, view_id)
    if request.expected is not None and request.expected != row.version:
        raise Conflict("view_moved", name=row.name, expected=request.expected, version=row.version)
    _free(tx, scope, request, row.space_id, but=view_id, owner_id=row.owner_id)
    values = {
        "name": request.name.strip(), "query": request.query, "page": request.page, "project": request.project,
        "shared": int(request.shared), "updated_us": tx.now_us, "version": row.version + 1,
    }  # fmt: skip
    tx.execute(update(saved_view).where(saved_view.c.id == view_id).values(**values))
    tx.emit(Event("view.changed", view_id, row.space_id, data={"name": values["name"], "shared": request.shared}))
    return _view(_find(tx, scope, view_id), scope)


def remove(tx: Tx, scope: Scope, view_id: str) -> None:
    """Forget a view; an address that was sent around still opens."""
    row = _own(tx, scope, view_id)
    tx.execute(delete(saved_view).where(saved_view.c.id == view_id))
    tx.emit(Event("view.deleted", view_id, row.space_id, data={"name": row.name}))


def _check(request: SavedViewRequest) -> None:
    faults: list[Fault] = []
    name = request.name.strip()
    if not name or len(name) > MOST_NAME or not name.isprintable():
        faults.append(Fault("view_name_bad", "name", params={"limit": MOST_NAME}))
    if len(request.query) > MOST_QUERY:
        faults.append(Fault("view_query_long", "query", params={"size": len(request.query), "limit": MOST_QUERY}))
    if request.page not in PAGES:
        faults.append(Fault("view_page_unknown", "page", params={"page": request.page, "pages": ", ".join(PAGES)}))
    if faults:
        raise BadInput("view_wrong", faults=faults, count=len(faults))


def _free(
    tx: ReadTx, scope: Scope, request: SavedViewRequest, space_id: str, *, but: str = "", owner_id: str = ""
) -> None:
    same = select(saved_view.c.id).where(
        saved_view.c.space_id == space_id, saved_view.c.page == request.page, saved_view.c.project == request.project,
        saved_view.c.owner_id == (owner_id or scope.actor.id), saved_view.c.name == request.name.strip(),
        saved_view.c.id != but,
    )  # fmt: skip
    if tx.scalar(same) is not None:
        raise Conflict("view_name_taken", name=request.name.strip())


def _all(scope: Scope) -> Any:
    seen = or_(saved_view.c.shared == 1, saved_view.c.owner_id == scope.actor.id)
    joined = saved_view.join(_space, _space.c.id == saved_view.c.space_id)
    stmt = select(saved_view, _space.c.name.label("space")).select_from(joined)
    return stmt.where(scope_clause(saved_view, scope), seen)


def _find(tx: ReadTx, scope: Scope, view_id: str) -> Row[Any]:
    row = tx.one(_all(scope).where(saved_view.c.id == view_id))
    if row is None:
        raise NotFound("view_unknown", view=view_id)
    return row


def _own(tx: ReadTx, scope: Scope, view_id: str) -> Row[Any]:
    row = _find(tx, scope, view_id)
    mine = scope.actor.kind is ActorKind.PERSON and row.owner_id == scope.actor.id
    if not mine and not scope.may(Permission.MAINTAIN, row.space_id):
        raise Denied("view_not_yours", name=row.name, owner=row.owner)
    return row


def _view(row: Row[Any], scope: Scope) -> SavedView:
    return SavedView(
        id=row.id, name=row.name, query=row.query, page=row.page, project=row.project, space=row.space,
        shared=bool(row.shared), owner=row.owner, mine=row.owner_id == scope.actor.id, created_us=row.created_us,
        updated_us=row.updated_us, version=row.version,
    )  # fmt: skip
