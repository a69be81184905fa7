"""Metrics that say which logged model they are of, and on which data they were measured."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import select

from trackbed.base.errors import NotFound
from trackbed.db import ReadTx, Tx, scope_clause, upsert
from trackbed.domain.scope import Scope
from trackbed.server.mlflow.codec import Asked, Document, clamped, some
from trackbed.server.mlflow.tables import logged_metric, logged_model
from trackbed.tracking.runs import RunRow


class ModelPoint(NamedTuple):
    model_id: str
    key: str
    step: int
    ts_ms: int
    value: float
    dataset_name: str
    dataset_digest: str


def read(entries: Sequence[Asked], points: Sequence[tuple[str, int, int, float]]) -> list[ModelPoint]:
    """Return those points that name a model."""
    return [
        ModelPoint(entry.text("model_id"), *point, entry.text("dataset_name"), entry.text("dataset_digest"))
        for entry, point in zip(entries, points, strict=True)
        if entry.text("model_id")
    ]


def keep(tx: Tx, scope: Scope, run: RunRow, points: Sequence[ModelPoint]) -> None:
    """Note metrics of models.

    Raises:
        NotFound: `mlflow_logged_model_unknown`.
    """
    if not points:
        return
    asked = sorted({point.model_id for point in points})
    stmt = select(logged_model.c.id).where(logged_model.c.id.in_(asked), scope_clause(logged_model, scope))
    known = {row.id for row in tx.rows(stmt)}
    for model_id in asked:
        if model_id not in known:
            raise NotFound("mlflow_logged_model_unknown", ref=model_id[:200])
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for point in points:
        nan = math.isnan(point.value)
        row = {**point._asdict(), "run_id": run.id, "value": 0.0 if nan else clamped(point.value), "is_nan": int(nan)}
        rows[tuple(row[name] for name in _KEY)] = row
    tx.execute(upsert(logged_metric, key=_KEY, update=["value", "is_nan"]), list(rows.values()))


_KEY = ["model_id", "key", "run_id", "step", "ts_ms", "dataset_name", "dataset_digest"]


def of_models(tx: ReadTx, model_ids: Sequence[str]) -> dict[str, list[Document]]:
    """Return the latest value of each metric of each model, run and dataset."""
    found: dict[str, dict[tuple[str, ...], Any]] = {model_id: {} for model_id in model_ids}
    for at in range(0, len(model_ids), 500):
        part = logged_metric.c.model_id.in_(model_ids[at : at + 500])
        order = (logged_metric.c.step, logged_metric.c.ts_ms, logged_metric.c.value)
        for row in tx.rows(select(logged_metric).where(part).order_by(*order)):
            found[row.model_id][row.key, row.run_id, row.dataset_name, row.dataset_digest] = row
    return {model_id: [_view(row) for row in rows.values()] for model_id, rows in found.items()}


def _view(row: Any) -> Document:
    return some(
        key=row.key,
        value="NaN" if row.is_nan else row.value,
        timestamp=row.ts_ms,
        step=row.step,
        model_id=row.model_id,
        run_id=row.run_id,
        dataset_name=row.dataset_name or None,
        dataset_digest=row.dataset_digest or None,
    )
