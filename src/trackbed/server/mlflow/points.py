"""The latest point of a metric by MLflow's rule: the greatest (step, time, value), where NaN counts as 0."""

import math
from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from trackbed.db import Tx, upsert
from trackbed.server.mlflow.codec import clamped
from trackbed.server.mlflow.tables import latest


def note_latest(tx: Tx, run_id: str, points: Sequence[tuple[str, int, int, float]]) -> None:
    """Keep the latest of points (metric, step, time in ms, value), if it is later than what is known."""
    best: dict[str, tuple[int, int, float, int]] = {}
    for key, step, ts_ms, value in points:
        nan = math.isnan(value)
        one = (step, ts_ms, 0.0 if nan else clamped(value), int(nan))
        best[key] = max(best.get(key, one), one, key=lambda given: given[:3])
    for row in _known(tx, run_id, list(best)):
        if best[row.key][:3] <= (row.step, row.ts_ms, row.value):
            del best[row.key]
    rows: list[dict[str, Any]] = [
        {"run_id": run_id, "key": key, "step": step, "ts_ms": ts_ms, "value": value, "is_nan": is_nan}
        for key, (step, ts_ms, value, is_nan) in best.items()
    ]
    if rows:
        update = ["step", "ts_ms", "value", "is_nan"]
        tx.execute(upsert(latest, key=["run_id", "key"], update=update), rows)


def _known(tx: Tx, run_id: str, keys: list[str]) -> list[Any]:
    found: list[Any] = []
    for at in range(0, len(keys), 500):
        part = latest.c.key.in_(keys[at : at + 500])
        found += tx.rows(select(latest).where(latest.c.run_id == run_id, part))
    return found
