"""Datasets and their versions."""

import asyncio
from typing import Any

from litestar import get, post

from trackbed.base.errors import BadInput, NotFound
from trackbed.base.ids import Digest
from trackbed.datasets import service
from trackbed.db import ReadTx, Tx
from trackbed.domain.scope import Permission, Scope
from trackbed.formats.tree import Entry, is_digest
from trackbed.server.app import App
from trackbed.server.flows import trees
from trackbed.wire.data import DatasetCommit, DatasetVersionView, DatasetView

READ = {"permission": Permission.READ}
READ_TOO = {"permission": Permission.READ, "attempt": True}
WRITE = {"permission": Permission.WRITE}


@get("/api/v1/datasets", opt=READ)
async def list_all(trackbed_app: App, who: Scope, space: str = "") -> list[DatasetView]:
    """All datasets, or those of one space, each with its newest version."""
    return await trackbed_app.db.aread(lambda tx: service.list_datasets(tx, who, space))


@get("/api/v1/datasets/{name:str}", opt=READ)
async def show(trackbed_app: App, who: Scope, name: str, space: str = "") -> DatasetView:
    """One dataset with all its versions, the newest first."""
    return await trackbed_app.db.aread(lambda tx: service.show(tx, who, name, space))


@get("/api/v1/datasets/{name:str}/resolve", opt=READ_TOO)
async def resolve(trackbed_app: App, who: Scope, name: str, ref: str = "", space: str = "") -> DatasetVersionView:
    """The version that a reference means now; without one the newest."""

    def read(tx: ReadTx) -> DatasetVersionView:
        return service.resolve(tx, who, ref or name, space)

    return await trackbed_app.db.aread(read)


@post("/api/v1/datasets/{name:str}/versions", opt=WRITE)
async def commit(data: DatasetCommit, trackbed_app: App, who: Scope, name: str) -> DatasetVersionView:
    """Make the next version from a tree in the store. An unchanged tree gives the version there is."""
    if not is_digest(data.digest):
        raise BadInput("storage_digest_bad", digest=data.digest[:100])
    digest = Digest(data.digest)
    if not await trackbed_app.db.aread(lambda tx: trees.may_use(tx, who, digest)):
        raise NotFound("storage_tree_missing", digest=digest)
    entries = await asyncio.to_thread(trackbed_app.store.read_listing, digest)
    sizes = _sizes(name, data.kind, entries)

    def work(tx: Tx) -> DatasetVersionView:
        return service.commit(
            tx, who, name, digest, space=data.space, kind=data.kind, files=len(sizes), size_bytes=sum(sizes),
            message=data.message,
        )  # fmt: skip

    return await trackbed_app.db.awrite(work, actor=who.actor)


def _sizes(name: str, kind: str, entries: list[Entry]) -> list[int]:
    sizes = [entry.size for entry in entries if entry.kind == "f"]
    if not sizes:
        raise BadInput("dataset_empty", name=name)
    if kind == "file" and len(entries) != 1:
        raise BadInput("dataset_not_one_file", name=name, files=len(entries))
    return sizes


routes: list[Any] = [list_all, show, resolve, commit]
