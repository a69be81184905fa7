"""What the runs table needs beside its rows: columns, groups, saved views."""

from typing import Any

from litestar import delete, get, post, put
from sqlalchemy import ColumnElement

from trackbed.db import ReadTx
from trackbed.domain.scope import Permission, Scope
from trackbed.server.app import App
from trackbed.tracking import runs_columns, runs_groups, saved_views
from trackbed.tracking.runs_tables import run as run_table
from trackbed.tracking.search import compile as compile_filter
from trackbed.wire.table import ColumnsReply, GroupPage, SavedView, SavedViewRequest

READ = {"permission": Permission.READ}
WRITE = {"permission": Permission.WRITE}


@get("/api/v1/run-columns", opt=READ)
async def columns(
    trackbed_app: App, who: Scope, project: str = "", filter: str = "", search: str = "", limit: int = 200
) -> ColumnsReply:
    """Names of metrics, params and tags that runs carry, with how many do."""

    def read(tx: ReadTx) -> ColumnsReply:
        return runs_columns.columns(tx, who, where=_where(filter, project), search=search, limit=limit)

    return await trackbed_app.db.aread(read)


@get("/api/v1/run-groups", opt=READ)
async def groups(
    trackbed_app: App,
    who: Scope,
    by: list[str],
    metric: list[str] | None = None,
    filter: str = "",
    project: str = "",
    limit: int = 200,
) -> GroupPage:
    """Groups of runs that agree in `by`, with mean and spread of each `metric`."""

    def read(tx: ReadTx) -> GroupPage:
        where = _where(filter, project)
        return runs_groups.groups(tx, who, by=by, metrics=metric or [], where=where, limit=limit)

    return await trackbed_app.db.aread(read)


def _where(filter: str, project: str) -> list[ColumnElement[bool]]:
    where = [compile_filter(filter)] if filter.strip() else []
    return [*where, run_table.c.project == project] if project else where


@get("/api/v1/views", opt=READ, name="list_views", operation_id="list_views")
async def list_views(trackbed_app: App, who: Scope, page: str = "", project: str = "") -> list[SavedView]:
    """Own and shared views, of one page and of one project or for all."""
    return await trackbed_app.db.aread(lambda tx: saved_views.views(tx, who, page=page, project=project))


@post("/api/v1/views", opt=WRITE, name="save_view", operation_id="save_view")
async def save_view(trackbed_app: App, who: Scope, data: SavedViewRequest) -> SavedView:
    """Keep the address of a page under a name."""
    return await trackbed_app.db.awrite(lambda tx: saved_views.save(tx, who, data), actor=who.actor)


@put("/api/v1/views/{view:str}", opt=WRITE, name="change_view", operation_id="change_view")
async def change_view(trackbed_app: App, who: Scope, view: str, data: SavedViewRequest) -> SavedView:
    """Change a view, if nobody did so since."""
    return await trackbed_app.db.awrite(lambda tx: saved_views.change(tx, who, view, data), actor=who.actor)


@delete("/api/v1/views/{view:str}", opt=WRITE, status_code=204, name="delete_view", operation_id="delete_view")
async def delete_view(trackbed_app: App, who: Scope, view: str) -> None:
    """Forget a view."""
    await trackbed_app.db.awrite(lambda tx: saved_views.remove(tx, who, view), actor=who.actor)


routes: list[Any] = [columns, groups, list_views, save_view, change_view, delete_view]
