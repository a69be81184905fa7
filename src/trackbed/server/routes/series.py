"""Curves out: catalogue of metrics, exact history, bucketed series."""

from typing import Any

from litestar import get, post

from trackbed.base.errors import BadInput, Fault, TooLarge
from trackbed.db import ReadTx
from trackbed.domain.scope import Permission, Scope
from trackbed.server.app import App
from trackbed.tracking import metrics, runs
from trackbed.tracking.metrics import MAX_BUCKETS, Window
from trackbed.wire.series import HistoryReply, KeysReply, SeriesQuery, SeriesReply

READ_BY_JOBS = {"permission": Permission.READ, "attempt": True}
MOST_CURVES = 2_000
_AXES = ("step", "relative", "wall")


@get("/api/v1/runs/{run:str}/keys", opt=READ_BY_JOBS)
async def keys(trackbed_app: App, who: Scope, run: str, search: str = "", limit: int = 1000) -> KeysReply:
    """Metrics of a run, by name, with their summaries and definitions."""

    def read(tx: ReadTx) -> KeysReply:
        return metrics.keys(tx, runs.resolve(tx, who, run).id, search=search, limit=limit)

    return await trackbed_app.db.aread(read)


@get("/api/v1/runs/{run:str}/history", opt=READ_BY_JOBS)
async def history(
    trackbed_app: App, who: Scope, run: str, key: str, all_attempts: bool = False, rank: int | None = None, cursor: str = "",
    limit: int = 10_000,
) -> HistoryReply:  # fmt: skip
    """Points exactly as logged: the counted ones, or all."""

    def read(tx: ReadTx) -> HistoryReply:
        found = runs.resolve(tx, who, run).id
        return metrics.history(tx, found, key, all_attempts=all_attempts, rank=rank, cursor=cursor, limit=limit)

    return await trackbed_app.db.aread(read)


@post("/api/v1/series", opt=READ_BY_JOBS, status_code=200)
async def series(trackbed_app: App, who: Scope, data: SeriesQuery) -> SeriesReply:
    """Curves of many runs at most `buckets` points long; minimum and maximum of each bucket hide no spike."""
    _check(data)

    def read(tx: ReadTx) -> SeriesReply:
        reply = SeriesReply(series=[])
        for ref in dict.fromkeys(data.runs):
            row = runs.resolve(tx, who, ref)
            window = Window(
                data.x, data.from_, data.to, data.buckets, zero_us=row.started_us or row.created_us,
                all_attempts=data.all_attempts, streams=data.streams,
            )  # fmt: skip
            reply.series += metrics.series(tx, row.id, data.keys, window)
        return reply

    return await trackbed_app.db.aread(read)


def _check(data: SeriesQuery) -> None:
    if len(data.runs) * len(data.keys) > MOST_CURVES:
        raise TooLarge("series_many", curves=len(data.runs) * len(data.keys), limit=MOST_CURVES)
    faults: list[Fault] = []
    if data.x not in _AXES:
        faults.append(Fault("series_axis", "x", params={"x": data.x, "axes": ", ".join(_AXES)}))
    if not 1 <= data.buckets <= MAX_BUCKETS:
        faults.append(Fault("series_buckets", "buckets", params={"buckets": data.buckets, "limit": MAX_BUCKETS}))
    if faults:
        raise BadInput("request_bad", faults=faults)


routes: list[Any] = [keys, history, series]
