"""Files in and out by MLflow's proxy. Paths are labels of rows; bytes lie in the store by their digest."""

import asyncio
import mimetypes
from typing import Any
from urllib.parse import quote

from litestar import Request, Response, delete, get, put
from litestar.response import Stream

from trackbed.base.errors import NotFound
from trackbed.domain.scope import Permission, Scope
from trackbed.server.app import App
from trackbed.server.bodies import Body, blocks
from trackbed.server.mlflow import places, run_views
from trackbed.server.mlflow.codec import answer, ask
from trackbed.server.mlflow.places import File, Place
from trackbed.server.mlflow.routing import for_job, made, options

_ROOTS = ("/api/2.0/mlflow-artifacts/artifacts", "/ajax-api/2.0/mlflow-artifacts/artifacts")
_FILES = [f"{root}/{{path:path}}" for root in _ROOTS]
# A browser runs nothing of what it gets here.
_CLOSED = {"Content-Security-Policy": "sandbox; default-src 'none'", "Cache-Control": "private, no-cache"}


async def list_of_run(request: Request[Any, Any, Any], trackbed_app: App, who: Scope) -> Response[bytes]:
    """What lies in a folder of a run, by whole paths."""
    asked = await ask(request)
    run_id = asked.need("run_id", "run_uuid")
    inner = asked.text("path").strip("/")
    place = places.place_of(f"p/{run_id}/artifacts/{inner}")
    row = await trackbed_app.db.aread(lambda tx: run_views.find(tx, who, run_id))
    files = await _files(trackbed_app, who, place)
    return answer(
        {"root_uri": run_views.artifact_root(row), "files": places.children(files, place.path, whole_paths=True)}
    )


async def _files(app: App, who: Scope, place: Place) -> list[File]:
    folder = await app.db.aread(lambda tx: places.folder_of(tx, who, place))
    return await asyncio.to_thread(places.files_of, app.store, folder)


@get(list(_ROOTS), opt=options(Permission.READ, by_jobs=True), include_in_schema=False)
async def list_folder(request: Request[Any, Any, Any], trackbed_app: App, who: Scope) -> Response[bytes]:
    """What lies in a folder, by names."""
    asked = await ask(request)
    place = places.place_of(asked.text("path"))
    files = await _files(trackbed_app, who, place)
    return answer({"files": places.children(files, place.path, whole_paths=False)})


@get(_FILES, opt=options(Permission.READ, by_jobs=True), include_in_schema=False)
async def download(trackbed_app: App, who: Scope, path: str) -> Stream:
    """The bytes of a file, verified on the way."""
    place = places.place_of(path)
    files = await _files(trackbed_app, who, place)
    found = next((one for one in files if one.path == place.path), None)
    if found is None:
        raise NotFound("mlflow_artifact_unknown", path=place.path[:200])
    reader = await asyncio.to_thread(trackbed_app.store.open_range, found.digest)
    name = found.path.rpartition("/")[2]
    headers = {
        **_CLOSED,
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "Content-Length": str(found.size_bytes),
        "ETag": f'"{found.digest}"',
    }
    media = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Stream(blocks(reader), media_type=media, headers=headers)


@put(
    _FILES,
    opt=options(Permission.WRITE, by_jobs=True),
    status_code=200,
    include_in_schema=False,
    request_max_body_size=None,
)
async def upload(request: Request[Any, Any, Any], trackbed_app: App, who: Scope, path: str) -> Response[bytes]:
    """Keep a file of any size, as it streams in: in the store first, then on the record."""
    place = places.place_of(path)
    row = await trackbed_app.db.aread(lambda tx: places.may_keep(tx, for_job(who), place))
    body = Body(request.stream(), asyncio.get_running_loop())
    store = await asyncio.to_thread(trackbed_app.store_of, str(row.space_id))
    digest, size = await asyncio.to_thread(store.put_blob, body)  # pyright: ignore[reportArgumentType]
    await trackbed_app.db.awrite(lambda tx: places.keep(tx, for_job(who), place, digest, size), actor=who.actor)
    return answer({})


@delete(_FILES, opt=options(Permission.WRITE, by_jobs=True), status_code=200, include_in_schema=False)
async def remove(trackbed_app: App, who: Scope, path: str) -> Response[bytes]:
    """Take a file or a folder off the record of a run or a logged model."""
    place = places.place_of(path)
    await trackbed_app.db.awrite(lambda tx: places.forget(tx, for_job(who), place), actor=who.actor)
    return answer({})


routes: list[Any] = [
    made("GET", "artifacts/list", Permission.READ, list_of_run, by_jobs=True),
    list_folder,
    download,
    upload,
    remove,
]
