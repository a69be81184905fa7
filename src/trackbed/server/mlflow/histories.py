"""Curves as MLflow answers them: exact duplicates once, by (time, step, value), infinities clamped."""

import math
from typing import Any

from trackbed.base.errors import BadInput
from trackbed.db import ReadTx
from trackbed.domain.scope import Scope
from trackbed.server.mlflow import codec, run_views
from trackbed.server.mlflow.codec import Asked, Document
from trackbed.server.mlflow.routing import reads_points
from trackbed.tracking.metrics import standing_points
from trackbed.tracking.metrics_view import Curves, View

MOST_RUNS = 100
SAMPLED = 2500
MOST_BULK = 25_000
_Point = tuple[int, int, bool, float]  # time in ms, step, is NaN, clamped value


def points_of(view: View, key: str) -> list[_Point]:
    """Return the points of a metric in MLflow's order."""
    found: set[_Point] = set()
    for step, ts_us, value in standing_points(view, key):
        nan = math.isnan(value)
        found.add((codec.milliseconds(ts_us), step, nan, 0.0 if nan else codec.clamped(value)))
    return sorted(found, key=lambda point: (point[0], point[1], point[3], point[2]))


def _view(key: str, point: _Point) -> Document:
    ts_ms, step, nan, value = point
    return {"key": key, "value": "NaN" if nan else value, "timestamp": ts_ms, "step": step}


def get_history(tx: ReadTx, scope: Scope, asked: Asked, curves: Curves) -> Document:
    row, key = run_views.find(tx, scope, asked.need("run_id", "run_uuid")), asked.need("metric_key")
    start = codec.offset_of(asked.text("page_token"))
    points = points_of(curves.view(tx, row.id), key)
    size = codec.page_size(asked, usual=max(1, len(points)), most=2**31 - 1)
    reply: Document = {"metrics": [_view(key, point) for point in points[start : start + size]]}
    if start + size < len(points):
        reply["next_page_token"] = codec.page_token(start + size)
    return reply


def get_bulk(tx: ReadTx, scope: Scope, asked: Asked, curves: Curves) -> Document:
    """Points of one metric of several runs, run by run, at most `max_results` of them in all."""
    key, most = asked.need("metric_key"), codec.page_size(asked, usual=MOST_BULK, most=MOST_BULK)
    found: list[Document] = []
    for row in _runs(tx, scope, asked, "run_id"):
        for point in points_of(curves.view(tx, row.id), key)[: most - len(found)]:
            found.append({**_view(key, point), "run_id": row.id})
    return {"metrics": found}


def get_interval(tx: ReadTx, scope: Scope, asked: Asked, curves: Curves) -> Document:
    """Points of one metric of several runs at steps that are spread evenly; first and last step of each run are kept."""
    key, most = asked.need("metric_key"), codec.page_size(asked, usual=SAMPLED, most=SAMPLED)
    low, high = asked.whole("start_step", -codec.INT64), asked.whole("end_step", codec.INT64 - 1)
    if asked.has("start_step") != asked.has("end_step") or low > high:
        raise codec.bad("start_step", asked.text("start_step"))
    found_of: dict[str, list[_Point]] = {}
    for row in _runs(tx, scope, asked, "run_ids"):
        found_of[row.id] = [point for point in points_of(curves.view(tx, row.id), key) if low <= point[1] <= high]
    steps = sorted({point[1] for points in found_of.values() for point in points})
    shown = set(steps[:: math.ceil(len(steps) / most)]) if steps else set[int]()
    found: list[Document] = []
    for run_id, points in found_of.items():
        ends = {min(point[1] for point in points), max(point[1] for point in points)} if points else set[int]()
        kept = [point for point in points if point[1] in shown or point[1] in ends]
        found += [{**_view(key, point), "run_id": run_id} for point in sorted(kept, key=lambda one: (one[1], one[0]))]
    return {"metrics": found}


def _runs(tx: ReadTx, scope: Scope, asked: Asked, name: str) -> list[Any]:
    idents = asked.texts(name)
    if not idents:
        raise BadInput("mlflow_field_missing", field=name)
    if len(idents) > MOST_RUNS:
        raise BadInput("mlflow_many_runs", given=len(idents), most=MOST_RUNS)
    return [run_views.find(tx, scope, ident) for ident in idents]


routes: list[Any] = [
    reads_points("metrics/get-history", get_history),
    reads_points("metrics/get-history-bulk", get_bulk),
    reads_points("metrics/get-history-bulk-interval", get_interval),
]
