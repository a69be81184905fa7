"""Log lines out, for readers and followers."""

from typing import Any

from litestar import get

from trackbed.db import ReadTx
from trackbed.domain.scope import Permission, Scope
from trackbed.server.app import App
from trackbed.tracking import logs as log_pages
from trackbed.tracking import logs_keep, runs
from trackbed.tracking.logs import Wanted
from trackbed.wire.series import LogPage


@get("/api/v1/runs/{run:str}/logs", opt={"permission": Permission.READ, "attempt": True})
async def logs(
    trackbed_app: App,
    who: Scope,
    run: str,
    after: str = "",
    before: str = "",
    limit: int = 1000,
    rank: int | None = None,
    level: str = "",
    grep: str = "",
    tail: int = 0,
    attempt: int | None = None,
) -> LogPage:
    """Lines in the order of time; `next` goes on behind them, at the end too. `before`: those in front of a line. `level` is the least one shown."""
    wanted = Wanted(attempt=attempt, rank=rank, level=level, grep=grep, tail=max(0, tail), limit=limit)

    def read(tx: ReadTx) -> LogPage:
        found = runs.resolve(tx, who, run).id
        page = log_pages.page(tx, found, wanted, after=after, before=before)
        page.trimmed = logs_keep.trimmed_of(tx, found)
        return page

    return await trackbed_app.db.aread(read)


routes: list[Any] = [logs]
