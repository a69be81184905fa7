"""The pool's board for every signed-in person: names of spaces that one may not read are masked, no row is hidden."""

import asyncio
from typing import Any

from litestar import get

from trackbed.db import ReadTx
from trackbed.domain.scope import Permission, Scope
from trackbed.server.app import App
from trackbed.server.flows import board
from trackbed.wire.runs import NodeView, QueueEntry

SIGNED_IN = {"permission": Permission.SIGNED_IN}


@get("/api/v1/nodes", opt=SIGNED_IN)
async def nodes(trackbed_app: App, who: Scope) -> list[NodeView]:
    """Every machine with its cards and who holds them."""
    inventory = await asyncio.to_thread(trackbed_app.engine.inventory)

    def read(tx: ReadTx) -> list[NodeView]:
        return board.nodes(tx, who, inventory)

    return await trackbed_app.db.aread(read)


@get("/api/v1/queue", opt=SIGNED_IN)
async def queue(trackbed_app: App, who: Scope) -> list[QueueEntry]:
    """Everything that waits, in the order in which it will be served, with the reason."""
    return await trackbed_app.db.aread(lambda tx: board.queue(tx, who))


routes: list[Any] = [nodes, queue]
