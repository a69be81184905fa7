"""Points in: one unit of work, which may have to learn first what stands among sealed points."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from trackbed.base.errors import Unavailable
from trackbed.db import ReadTx, Tx
from trackbed.domain.scope import Actor
from trackbed.server.app import App
from trackbed.tracking.ingest_summary import Known, Unread
from trackbed.tracking.metrics_sealed import seals_of
from trackbed.tracking.metrics_view import known

T = TypeVar("T")
TRIES = 8  # each time another object was sealed, or one batch replays steps of ever more


async def keep_points(app: App, work: Callable[[Tx, Known | None], T], *, actor: Actor) -> T:
    """Return what `work` returned once it is durable. It hands what it is given on to `ingest` as `sealed`.

    The store is read between two tries, never inside one: the writer lane waits for nobody.
    """
    sealed: Known | None = None
    for _ in range(TRIES):
        try:
            return await app.db.awrite(lambda tx, given=sealed: work(tx, given), actor=actor, lane="bulk")
        except Unread as need:
            sealed = await asyncio.to_thread(_learn, app, need)
    raise Unavailable("points_contended")


def keep_points_here(app: App, work: Callable[[Tx, Known | None], T], *, actor: Actor) -> T:
    """As `keep_points`, in a worker thread."""
    sealed: Known | None = None
    for _ in range(TRIES):
        try:
            return app.db.write(lambda tx, given=sealed: work(tx, given), actor=actor, lane="bulk")
        except Unread as need:
            sealed = _learn(app, need)
    raise Unavailable("points_contended")


def _learn(app: App, need: Unread) -> Known:
    def read(tx: ReadTx) -> Known:
        return known(app.curves.reader, seals_of(tx, need.run_id), need)

    return app.db.read(read)
