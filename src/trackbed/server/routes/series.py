"""Curves out: catalogue of metrics, exact history, bucketed series. As JSON, or as columns of bytes for who accepts those."""

import asyncio
from typing import Any

import msgspec
from litestar import Request, Response, get, post

from trackbed.base.errors import BadInput, Fault, TooLarge
from trackbed.db import ReadTx
from trackbed.domain.scope import Permission, Scope
from trackbed.formats import columns
from trackbed.formats.columns import MEDIA_TYPE
from trackbed.server.app import App
from trackbed.tracking import metrics, metrics_series, runs
from trackbed.tracking.metrics_cells import METRIC, Window
from trackbed.tracking.metrics_series import Answer, Asked
from trackbed.tracking.metrics_view import View
from trackbed.wire.series import HistoryReply, KeysReply, SeriesQuery, SeriesReply

READ_BY_JOBS = {"permission": Permission.READ, "attempt": True}
MOST_CURVES = 2_000
MAX_BUCKETS = 2_000
_AXES = ("step", "relative", "wall")


@get("/api/v1/runs/{run:str}/keys", opt=READ_BY_JOBS)
async def keys(trackbed_app: App, who: Scope, run: str, search: str = "", limit: int = 1000) -> KeysReply:
    """Metrics of a run, by name, with their summaries and definitions."""

    def read(tx: ReadTx) -> KeysReply:
        return metrics.keys(tx, runs.resolve(tx, who, run).id, search=search, limit=limit)

    return await trackbed_app.db.aread(read)


@get("/api/v1/runs/{run:str}/history", opt=READ_BY_JOBS)
async def history(
    request: Request[Any, Any, Any], trackbed_app: App, who: Scope, run: str, key: str, all_attempts: bool = False,
    rank: int | None = None, cursor: str = "", limit: int = 10_000,
) -> HistoryReply:  # fmt: skip
    """Points exactly as logged: the counted ones, or all."""
    view = await trackbed_app.db.aread(lambda tx: trackbed_app.curves.view(tx, runs.resolve(tx, who, run).id))
    packed = _packed(request)
    most = metrics.MAX_PACKED if packed else metrics.MAX_HISTORY

    def work() -> Any:
        page = metrics.history(
            view, key, all_attempts=all_attempts, rank=rank, cursor=cursor, limit=max(1, min(limit, most))
        )
        return _as_columns(page) if packed else page.reply()

    return await asyncio.to_thread(work)


@post("/api/v1/series", opt=READ_BY_JOBS, status_code=200)
async def series(request: Request[Any, Any, Any], trackbed_app: App, who: Scope, data: SeriesQuery) -> SeriesReply:
    """Curves of many runs at most `buckets` points long; minimum and maximum of each bucket hide no spike."""
    _check(data)
    window = Window(data.x, data.from_, data.to, data.buckets, data.all_attempts, data.streams)

    def read(tx: ReadTx) -> list[Asked]:
        asked: dict[str, Asked] = {}
        for ref in dict.fromkeys(data.runs):
            row = runs.resolve(tx, who, ref)
            view: View = trackbed_app.curves.view(tx, row.id)
            since = data.since.get(ref, data.since.get(row.id))
            asked[row.id] = Asked(view, row.started_us or row.created_us, int(since) if since else None)
        return list(asked.values())

    asked = await trackbed_app.db.aread(read)
    packed = _packed(request)

    def work() -> Any:
        answer = metrics_series.series(asked, data.keys, window)
        return _curves_as_columns(answer) if packed else answer.reply()

    return await asyncio.to_thread(work)


def _packed(request: Request[Any, Any, Any]) -> bool:
    return MEDIA_TYPE in request.headers.get("accept", "")


def _as_columns(page: metrics.Page) -> Response[bytes]:
    named = page.columns()
    document = {"key": page.key, "next": page.following, "columns": {name: at for at, name in enumerate(named)}}
    return Response(columns.encode(document, list(named.values())), media_type=MEDIA_TYPE)


def _curves_as_columns(answer: Answer) -> Response[bytes]:
    reply, places, packed = answer.columns()
    document = msgspec.to_builtins(reply)
    for one, named in zip(document["series"], places, strict=True):
        one["columns"] = named
    return Response(columns.encode(document, packed), media_type=MEDIA_TYPE)


def _check(data: SeriesQuery) -> None:
    if len(data.runs) * len(data.keys) > MOST_CURVES:
        raise TooLarge("series_many", curves=len(data.runs) * len(data.keys), limit=MOST_CURVES)
    faults: list[Fault] = []
    if data.x not in _AXES and not (data.x.startswith(METRIC) and len(data.x) > len(METRIC)):
        faults.append(Fault("series_axis", "x", params={"x": data.x[:200], "axes": ", ".join((*_AXES, "metrics.KEY"))}))
    if not 1 <= data.buckets <= MAX_BUCKETS:
        faults.append(Fault("series_buckets", "buckets", params={"buckets": data.buckets, "limit": MAX_BUCKETS}))
    for run, cursor in data.since.items():
        if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
            faults.append(Fault("cursor_wrong", f"since.{run[:100]}", params={"cursor": cursor[:200]}))
    if faults:
        raise BadInput("request_bad", faults=faults)


routes: list[Any] = [keys, history, series]
