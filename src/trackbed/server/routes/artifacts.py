"""Files that runs left. What a browser would run is shown in a sandbox that reaches nothing of ours."""

import asyncio
import mimetypes
from typing import Any
from urllib.parse import quote

from litestar import get
from litestar.response import Stream

from trackbed.base.ids import FileDigest
from trackbed.db import ReadTx
from trackbed.domain.scope import Permission, Scope
from trackbed.server.app import App
from trackbed.server.bodies import blocks
from trackbed.tracking import artifacts as files
from trackbed.tracking import runs
from trackbed.wire.runs import ArtifactView

READ_BY_JOBS = {"permission": Permission.READ, "attempt": True}
# An origin of its own, scripts without network: a report draws its plots, and reads nothing.
SANDBOX = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; media-src data: blob:; form-action 'none'; frame-ancestors 'self'"
)
# Shown by a browser as what they are; everything else is downloaded.
_SHOWN = {
    ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
    ".svg": "image/svg+xml", ".html": "text/html; charset=utf-8", ".htm": "text/html; charset=utf-8",
    ".txt": "text/plain; charset=utf-8", ".log": "text/plain; charset=utf-8", ".md": "text/plain; charset=utf-8",
    ".csv": "text/plain; charset=utf-8", ".tsv": "text/plain; charset=utf-8", ".yaml": "text/plain; charset=utf-8",
    ".yml": "text/plain; charset=utf-8", ".py": "text/plain; charset=utf-8", ".jsonl": "text/plain; charset=utf-8",
    ".json": "application/json",
}  # fmt: skip


@get("/api/v1/runs/{run:str}/artifacts", opt=READ_BY_JOBS)
async def list_artifacts(trackbed_app: App, who: Scope, run: str) -> list[ArtifactView]:
    """The newest file of each path."""

    def read(tx: ReadTx) -> list[ArtifactView]:
        return files.of_run(tx, runs.resolve(tx, who, run).id)

    return await trackbed_app.db.aread(read)


@get("/api/v1/runs/{run:str}/artifacts/content", opt=READ_BY_JOBS)
async def content(trackbed_app: App, who: Scope, run: str, path: str, download: bool = False) -> Stream:
    """The bytes of a file, verified on the way."""

    def read(tx: ReadTx) -> ArtifactView:
        return files.find(tx, runs.resolve(tx, who, run), path)

    view = await trackbed_app.db.aread(read)
    reader = await asyncio.to_thread(trackbed_app.store.open_range, FileDigest(view.file_digest))
    name = view.path.rpartition("/")[2]
    shown = _SHOWN.get("." + name.rpartition(".")[2].lower())
    kind = "inline" if shown and not download else "attachment"
    headers = {
        "Content-Disposition": f"{kind}; filename*=UTF-8''{quote(name, safe='')}",
        "Content-Security-Policy": SANDBOX,
        "Content-Length": str(view.size_bytes),
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "private, no-cache",
        "ETag": f'"{view.file_digest}"',
    }
    media = shown or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Stream(blocks(reader), media_type=media, headers=headers)


routes: list[Any] = [list_artifacts, content]
