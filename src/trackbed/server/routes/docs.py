"""Documents of the tree of a run."""

import asyncio
from typing import Any

from litestar import get

from trackbed.domain.scope import Permission, Scope
from trackbed.server.app import App
from trackbed.server.flows import docs
from trackbed.wire.docs import Document, DocumentView

READ = {"permission": Permission.READ}


@get("/api/v1/runs/{run:str}/docs", opt=READ, name="list_docs", operation_id="list_docs")
async def list_all(trackbed_app: App, who: Scope, run: str) -> list[Document]:
    """The documents that were captured with the run, READMEs first."""
    _, tree = await trackbed_app.db.aread(lambda tx: docs.tree_of(tx, who, run))
    return await asyncio.to_thread(docs.list_documents, trackbed_app, tree)


@get("/api/v1/runs/{run:str}/docs/content", opt=READ, name="show_doc", operation_id="show_doc")
async def show(trackbed_app: App, who: Scope, run: str, path: str = "") -> DocumentView:
    """One document as text, with its marked commands; without a path, the first."""
    ref, tree = await trackbed_app.db.aread(lambda tx: docs.tree_of(tx, who, run))
    return await asyncio.to_thread(docs.show, trackbed_app, ref, tree, path)


routes: list[Any] = [list_all, show]
