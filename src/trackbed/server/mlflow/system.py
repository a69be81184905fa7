"""What clients ask of the server itself before they begin."""

from typing import Any

from litestar import Response, get

from trackbed.domain.scope import Permission
from trackbed.server.app import App
from trackbed.server.mlflow.codec import answer
from trackbed.server.mlflow.routing import options
from trackbed.wire.mlflow import SERVER_INFO, SPOKEN


@get("/health", opt={"permission": Permission.PUBLIC}, include_in_schema=False)
async def health(trackbed_app: App) -> Response[str]:
    """Up, as MLflow says it."""
    ok = not trackbed_app.stopping.is_set()
    return Response("OK" if ok else "stopping", status_code=200 if ok else 503, media_type="text/plain")


@get("/version", opt=options(Permission.SIGNED_IN), include_in_schema=False)
async def version() -> Response[str]:
    """The version of MLflow whose routes are spoken."""
    return Response(SPOKEN, media_type="text/plain")


@get(
    ["/api/3.0/mlflow/server-info", "/ajax-api/3.0/mlflow/server-info"],
    opt=options(Permission.SIGNED_IN),
    include_in_schema=False,
)
async def server_info() -> Response[bytes]:
    """What parts of MLflow there are: no workspaces, no archive of traces, no multipart."""
    return answer(SERVER_INFO)


routes: list[Any] = [health, version, server_info]
