"""Runs out and in: one checked bundle, and the points of a run as CSV."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from typing import IO, Any

from litestar import Request, get, post
from litestar.response import Stream

from trackbed.db import ReadTx
from trackbed.domain.scope import Permission, Scope
from trackbed.server.app import App
from trackbed.server.bodies import BLOCK
from trackbed.server.flows import bundles
from trackbed.tracking import export, runs
from trackbed.wire.bundle import ImportReply


@get("/api/v1/export", opt={"permission": Permission.READ})
async def export_runs(trackbed_app: App, who: Scope, filter: str = "", run: str = "", artifacts: bool = True) -> Stream:
    """A bundle of the runs of a filter, or of one run; `X-Trackbed-Digest` is the digest of its manifest."""
    if run:
        rows = [await trackbed_app.db.aread(lambda tx: runs.resolve(tx, who, run))]
    else:
        rows = await asyncio.to_thread(bundles.find_runs, trackbed_app, who, filter)
    file, digest = await asyncio.to_thread(
        bundles.write_bundle, trackbed_app, who, rows, filter or run, artifacts=artifacts
    )
    size = file.seek(0, 2)
    file.seek(0)
    headers = {
        "Content-Length": str(size), "Content-Disposition": 'attachment; filename="runs.tbx"',
        "X-Trackbed-Digest": digest, "X-Trackbed-Runs": str(len(rows)), "Cache-Control": "private, no-store",
    }  # fmt: skip
    return Stream(_blocks(file), media_type="application/zip", headers=headers)


@post("/api/v1/import", opt={"permission": Permission.WRITE}, status_code=200, request_max_body_size=None)
async def import_runs(
    request: Request[Any, Any, Any], trackbed_app: App, who: Scope, project: str = "", space: str = ""
) -> ImportReply:
    """Bring the runs of a bundle in, as foreign records; repeated, it changes nothing."""
    with tempfile.TemporaryFile(dir=trackbed_app.home) as file:
        async for piece in request.stream():
            await asyncio.to_thread(file.write, piece)
        file.seek(0)
        return await asyncio.to_thread(bundles.take_bundle, trackbed_app, who, file, project=project, space=space)


@get("/api/v1/runs/{run:str}/metrics.csv", opt={"permission": Permission.READ})
async def metrics_csv(trackbed_app: App, who: Scope, run: str, plain: bool = False) -> Stream:
    """Every point of a run, of every attempt and rank, as CSV."""

    def read(tx: ReadTx) -> tuple[str, IO[bytes]]:
        row = runs.resolve(tx, who, run)
        file: IO[bytes] = tempfile.TemporaryFile(dir=trackbed_app.home)  # noqa: SIM115 - it is closed when it was sent
        for part in export.csv_of(tx, trackbed_app.curves.view(tx, row.id), plain=plain):
            file.write(part.encode())
        return runs.ref_of(row), file

    ref, file = await trackbed_app.db.aread(read)
    size = file.tell()
    file.seek(0)
    name = ref.replace("#", "-")
    headers = {
        "Content-Length": str(size), "Content-Disposition": f'attachment; filename="{ascii(name)[1:-1]}.csv"',
        "Cache-Control": "private, no-store",
    }  # fmt: skip
    return Stream(_blocks(file), media_type="text/csv; charset=utf-8", headers=headers)


async def _blocks(file: IO[bytes]) -> AsyncIterator[bytes]:
    try:
        while block := await asyncio.to_thread(file.read, BLOCK):
            yield block
    finally:
        file.close()


routes: list[Any] = [export_runs, import_runs, metrics_csv]
