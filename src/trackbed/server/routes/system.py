"""How the server is: alive, its schema, its numbers, its state in one view."""

import asyncio
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from litestar import Request, Response, get
from sqlalchemy import func, select

from trackbed.db import ReadTx
from trackbed.domain.scope import Permission
from trackbed.domain.states import ACTIVE, RunState
from trackbed.server.app import App
from trackbed.server.flows import environments, upkeep
from trackbed.tracking.runs_tables import run
from trackbed.wire.runs import Reason, StatusView

SIGNED_IN = {"permission": Permission.SIGNED_IN}


@get("/healthz", opt={"permission": Permission.PUBLIC})
async def healthz(trackbed_app: App) -> Response[dict[str, bool]]:
    """Up, and not about to go down."""
    ok = not trackbed_app.stopping.is_set()
    return Response({"ok": ok}, status_code=200 if ok else 503)


@get("/api/v1/openapi.json", opt=SIGNED_IN, include_in_schema=False)
async def openapi(request: Request[Any, Any, Any]) -> dict[str, Any]:
    """The schema of this API."""
    return request.app.openapi_schema.to_schema()


def _counts(tx: ReadTx) -> tuple[dict[str, int], int]:
    """Return runs by state, and the cards of those that hold some. Numbers of the whole pool, no names."""
    rows = tx.rows(
        select(run.c.state, func.count().label("runs"), func.sum(run.c.cards).label("held")).group_by(run.c.state)
    )
    held = sum(int(row.held or 0) for row in rows if row.state in ACTIVE)
    return {row.state: int(row.runs) for row in rows}, held


def _cards_total(app: App) -> int:
    return sum(len(node.cards) for node in app.engine.inventory())


@get("/api/v1/status", opt=SIGNED_IN)
async def status(trackbed_app: App) -> StatusView:
    """The installation in one view."""
    counts, held = await trackbed_app.db.aread(_counts)
    shared = trackbed_app.one_trust_domain
    store = await trackbed_app.db.aread(lambda tx: upkeep.warnings(trackbed_app, tx))
    return StatusView(
        version=version("trackbed"),
        url=trackbed_app.url,
        started_us=trackbed_app.started_us,
        one_trust_domain=shared,
        counts=counts,
        cards_total=await asyncio.to_thread(_cards_total, trackbed_app),
        cards_held=held,
        platforms=[environments.pool_platform()],
        lane_wait_p99_ms=round(trackbed_app.db.lane_wait_p99_ms, 3),
        warnings=[*([Reason(code="one_trust_domain_here")] if shared else []), *store],
    )


@get("/metrics", opt=SIGNED_IN, media_type="text/plain; version=0.0.4")
async def metrics(trackbed_app: App) -> str:
    """The server's numbers for Prometheus."""
    counts, held = await trackbed_app.db.aread(_counts)
    total = await asyncio.to_thread(_cards_total, trackbed_app)
    return "\n".join(_exposition(trackbed_app, counts, held, total)) + "\n"


def _exposition(app: App, counts: dict[str, int], held: int, total: int) -> Iterator[str]:
    """Lines of Prometheus' text format."""
    yield from _family("trackbed_up_seconds", "gauge", "time since the server started")
    yield f"trackbed_up_seconds {(app.clock.now_us() - app.started_us) / 1e6:.3f}"
    yield from _family("trackbed_runs", "gauge", "runs by state")
    for state in RunState:
        yield f'trackbed_runs{{state="{state.value}"}} {counts.get(state.value, 0)}'
    yield from _family("trackbed_cards", "gauge", "cards of the pool")
    yield f'trackbed_cards{{state="held"}} {held}'
    yield f'trackbed_cards{{state="all"}} {total}'
    yield from _family("trackbed_lane_wait_seconds", "summary", "how long a write waited for its turn, by class")
    for lane, waits in app.db.waits.items():
        for fraction in (0.5, 0.99):
            yield (
                f'trackbed_lane_wait_seconds{{lane="{lane}",quantile="{fraction}"}} '
                f"{waits.percentile_ms(fraction) / 1000:.6f}"
            )
        yield f'trackbed_lane_wait_seconds_sum{{lane="{lane}"}} {waits.total_s:.6f}'
        yield f'trackbed_lane_wait_seconds_count{{lane="{lane}"}} {waits.count}'
    yield from _family("trackbed_commit_seconds", "summary", "how long a commit took to be durable")
    yield f'trackbed_commit_seconds{{quantile="0.99"}} {app.db.commits.percentile_ms(0.99) / 1000:.6f}'
    yield f"trackbed_commit_seconds_sum {app.db.commits.total_s:.6f}"
    yield f"trackbed_commit_seconds_count {app.db.commits.count}"
    yield from _family("trackbed_streams", "gauge", "open event streams")
    yield f"trackbed_streams {app.publisher.listening}"


def _family(name: str, kind: str, what: str) -> tuple[str, str]:
    return f"# HELP {name} {what}", f"# TYPE {name} {kind}"


routes: list[Any] = [healthz, openapi, status, metrics]
