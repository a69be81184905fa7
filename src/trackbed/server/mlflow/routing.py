"""How routes of this surface are made: one function of a transaction each, under both prefixes of MLflow."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from litestar import Request, Response, route
from litestar.handlers import HTTPRouteHandler

from trackbed.db import ReadTx, Tx
from trackbed.domain.scope import ActorKind, Permission, Role, Scope
from trackbed.server.app import App
from trackbed.server.mlflow.codec import Asked, Document, answer, ask
from trackbed.tracking.metrics_view import Curves

PREFIXES = ("/api/2.0/mlflow", "/ajax-api/2.0/mlflow")
Reading = Callable[[ReadTx, Scope, Asked], Document]
Writing = Callable[[Tx, Scope, Asked], Document]


def both(path: str) -> list[str]:
    """Return the path as programs and as MLflow's page ask for it."""
    return [f"{prefix}/{path}" for prefix in PREFIXES]


def options(permission: Permission, *, by_jobs: bool = False) -> dict[str, Any]:
    """Return what a handler declares: who may, that basic auth is taken here, and whether a job may through its relay."""
    return {"permission": permission, "basic": True, "attempt": by_jobs}


def for_job(scope: Scope) -> Scope:
    """Return the scope of an attempt on the routes that it may write by: a member's, in its space; others as they are."""
    if scope.actor.kind is not ActorKind.ATTEMPT:
        return scope
    return replace(scope, roles={scope.actor.space_id: Role.MEMBER})


def reads(methods: str, path: str, work: Reading) -> HTTPRouteHandler:
    """Return the handler of a route that only reads."""

    async def handler(request: Request[Any, Any, Any], trackbed_app: App, who: Scope) -> Response[bytes]:
        asked = await ask(request)
        return answer(await trackbed_app.db.aread(lambda tx: work(tx, who, asked)))

    return made(methods, path, Permission.READ, handler, by_jobs=True)


def reads_points(path: str, work: Callable[[ReadTx, Scope, Asked, Curves], Document]) -> HTTPRouteHandler:
    """Return the handler of a GET route that reads curves too."""

    async def handler(request: Request[Any, Any, Any], trackbed_app: App, who: Scope) -> Response[bytes]:
        asked = await ask(request)
        return answer(await trackbed_app.db.aread(lambda tx: work(tx, who, asked, trackbed_app.curves)))

    return made("GET", path, Permission.READ, handler, by_jobs=True)


def writes(
    methods: str, path: str, work: Writing, *, permission: Permission = Permission.WRITE, by_jobs: bool = False
) -> HTTPRouteHandler:
    """Return the handler of a route that changes something: one unit of work, durable before the answer."""

    async def handler(request: Request[Any, Any, Any], trackbed_app: App, who: Scope) -> Response[bytes]:
        asked = await ask(request)
        return answer(await trackbed_app.db.awrite(lambda tx: work(tx, for_job(who), asked), actor=who.actor))

    return made(methods, path, permission, handler, by_jobs=by_jobs)


def made(methods: str, path: str, permission: Permission, handler: Any, *, by_jobs: bool = False) -> HTTPRouteHandler:
    """Return a handler under both prefixes. `methods` is one or more, separated by blanks."""
    return route(
        both(path),
        http_method=methods.split(),  # pyright: ignore[reportArgumentType] - names of methods are taken too
        opt=options(permission, by_jobs=by_jobs),
        status_code=200,
        include_in_schema=False,
    )(handler)
