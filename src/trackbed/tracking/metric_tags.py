"""Views that a tag of a metric gives: its metrics across runs, and along the versions and the time of one model or dataset."""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, select

from trackbed.db import ReadTx, scope_clause
from trackbed.domain.scope import Scope
from trackbed.tracking import runs
from trackbed.tracking.ingest_tables import definition, metric
from trackbed.tracking.metrics_state import State, word
from trackbed.tracking.runs_tables import run
from trackbed.wire.marks import MetricTag, TaggedValue

MOST_RUNS = 1000  # the newest ones that have a metric of the tag
_state = msgspec.msgpack.Decoder(State).decode


def tags(tx: ReadTx, scope: Scope, project: str = "") -> list[MetricTag]:
    """Return the tags that `define_metric` gave to metrics, with the metrics and how many runs have them."""
    stmt = select(definition.c.run_id, definition.c.key, definition.c.document).select_from(
        definition.join(run, run.c.id == definition.c.run_id)
    )
    stmt = stmt.where(scope_clause(run, scope), definition.c.document.contains('"tags"'), *_in(project))
    found: dict[str, tuple[set[str], set[str]]] = {}
    for row in tx.rows(stmt):
        for tag in _tags(row.document):
            keys, run_ids = found.setdefault(tag, (set(), set()))
            keys.add(row.key)
            run_ids.add(row.run_id)
    return [MetricTag(tag=tag, keys=sorted(keys), runs=len(ids)) for tag, (keys, ids) in sorted(found.items())]


def values(
    tx: ReadTx, scope: Scope, tag: str, *, project: str = "", run_ids: Sequence[str] | None = None
) -> list[TaggedValue]:
    """Return last and best of every metric with a tag, run by run, the oldest run first; of some runs, where given."""
    has = definition.c.document.contains(runs.to_json(tag), autoescape=True)
    columns = (run.c.id, run.c.project, run.c.number, run.c.name, run.c.state, run.c.created_us, run.c.spec)
    stmt = select(*columns, definition.c.key, definition.c.document, metric.c.state.label("summary"))
    stmt = stmt.select_from(
        definition.join(run, run.c.id == definition.c.run_id).join(
            metric, (metric.c.run_id == definition.c.run_id) & (metric.c.key == definition.c.key) & (metric.c.rank == 0)
        )
    ).where(scope_clause(run, scope), has, *_in(project))
    if run_ids is not None:
        stmt = stmt.where(run.c.id.in_(run_ids))
    rows = tx.rows(stmt.order_by(run.c.created_us.desc(), run.c.id, definition.c.key).limit(MOST_RUNS))
    return [_value(row) for row in reversed(rows) if tag in _tags(row.document)]


def _value(row: Any) -> TaggedValue:
    said: dict[str, Any] = msgspec.json.decode(row.document)
    state, goal = _state(row.summary), str(said.get("goal", ""))
    best = state.min if goal == "min" else state.max if goal == "max" else None
    spec = runs.spec_of(row)
    return TaggedValue(
        run=row.id, ref=runs.ref_of(row), name=row.name, state=row.state, created_us=row.created_us, key=row.key,
        goal=goal, unit=str(said.get("unit", "")), last=word(state.last), best=best,
        data={name: f"{pin.dataset}@{pin.version}" for name, pin in spec.data.items() if pin.dataset},
    )  # fmt: skip


def _tags(document: str) -> list[str]:
    said: Any = msgspec.json.decode(document)
    found: Any = said.get("tags", [])
    return [str(tag) for tag in found] if isinstance(found, list) else []


def _in(project: str) -> list[ColumnElement[bool]]:
    return [run.c.project == project] if project else []
