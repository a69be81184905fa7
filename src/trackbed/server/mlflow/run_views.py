"""Runs as MLflow answers them: info, latest metrics, params, tags, inputs, outputs; many at once in few statements."""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Integer, Select, Text, case, cast, func, select

from trackbed.base.errors import BadInput, NotFound
from trackbed.db import ReadTx, scope_clause
from trackbed.domain.scope import Scope
from trackbed.domain.states import RunState
from trackbed.server.flows import outside
from trackbed.server.mlflow import codec, tags
from trackbed.server.mlflow.codec import Document
from trackbed.server.mlflow.tables import latest, link, run_state
from trackbed.tracking import facts, metrics, runs
from trackbed.tracking.facts_spelled import native_tag, spelled
from trackbed.tracking.runs_tables import run
from trackbed.wire.mlflow import RUN_NAME, RUN_NOTE, RUN_USER

_AT_ONCE = 500
STATUS = {
    **dict.fromkeys(["draft", "preparing", "queued", "held", "starting"], "SCHEDULED"),
    **dict.fromkeys(["running", "stopping", "paused"], "RUNNING"),
    RunState.FINISHED.value: "FINISHED", RunState.FAILED.value: "FAILED", RunState.STOPPED.value: "KILLED",
}  # fmt: skip

shown_name: ColumnElement[str] = case(
    (run.c.name != "", run.c.name), else_=run.c.project + "#" + cast(run.c.number, Text)
)
shown_status: ColumnElement[str] = func.coalesce(
    func.nullif(run_state.c.status, ""), case(STATUS, value=run.c.state, else_="RUNNING")
)
deleted_us: ColumnElement[int] = func.coalesce(run_state.c.deleted_us, 0, type_=Integer)


def selected(scope: Scope) -> Select[Any]:
    """Return the select of runs that the scope may read, with what MLflow adds to a row."""
    return (
        select(
            run, shown_name.label("shown_name"), shown_status.label("shown_status"), deleted_us.label("deleted_us")
        )
        .outerjoin(run_state, run_state.c.run_id == run.c.id)
        .where(scope_clause(run, scope))
    )  # fmt: skip


def find(tx: ReadTx, scope: Scope, run_id: str) -> Any:
    """Return the row of a run's id.

    Raises:
        NotFound: `run_unknown`, also behind a wall.
    """
    row = tx.one(selected(scope).where(run.c.id == run_id))
    if row is None:
        raise NotFound("run_unknown", ref=run_id[:200])
    return row


def writable(tx: ReadTx, scope: Scope, run_id: str, *, deleted_too: bool = False) -> Any:
    """As `find`, of a run that the scope may log into.

    Raises:
        BadInput: `mlflow_run_deleted`.
        Denied: it is somebody else's.
    """
    row = find(tx, scope, run_id)
    outside.may_write(scope, row)
    if row.deleted_us and not deleted_too:
        raise BadInput("mlflow_run_deleted", ref=row.id)
    return row


def artifact_root(row: Any) -> str:
    return f"mlflow-artifacts:/{row.project_id}/{row.id}/artifacts"


def info(row: Any) -> Document:
    return codec.some(
        run_id=row.id,
        run_uuid=row.id,
        run_name=row.shown_name,
        experiment_id=row.project_id,
        user_id=row.owner,
        status=row.shown_status,
        start_time=codec.milliseconds(row.started_us or row.created_us),
        end_time=codec.milliseconds(row.ended_us) if row.ended_us and row.shown_status != "RUNNING" else None,
        artifact_uri=artifact_root(row),
        lifecycle_stage="deleted" if row.deleted_us else "active",
    )


def views(tx: ReadTx, rows: Sequence[Any]) -> list[Document]:
    """Return whole runs."""
    ids = [row.id for row in rows]
    tagged = tags.of_many(tx, tags.RUN, ids)
    params = _params(tx, ids)
    points = latest_points(tx, ids)
    links = _links(tx, ids)
    return [
        {
            "info": info(row),
            "data": {
                "metrics": points[row.id],
                "params": codec.pairs(params[row.id]),
                "tags": codec.pairs(run_tags(row, tagged[row.id])),
            },
            **links[row.id],
        }
        for row in rows
    ]


def run_tags(row: Any, own: dict[str, str]) -> dict[str, str]:
    """Return the tags of a run: those with values, and our own labels as tags without one."""
    mirrored = {native_tag(key, value) for key, value in own.items()}
    labels: list[str] = runs.from_json(row.tags, [])
    found = {label: "" for label in labels if label not in mirrored}
    found |= {RUN_USER: row.owner} | own | {RUN_NAME: row.shown_name}
    if row.description:
        found[RUN_NOTE] = row.description
    return found


def _params(tx: ReadTx, ids: list[str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {run_id: {} for run_id in ids}
    for at in range(0, len(ids), _AT_ONCE):
        for run_id, name, value in facts.all_params_of_runs(tx, ids[at : at + _AT_ONCE]):
            found[run_id][name] = spelled(value)
    return found


def latest_points(tx: ReadTx, ids: list[str]) -> dict[str, list[Document]]:
    """Return the latest point of each metric of each run: by MLflow's rule where it came through MLflow."""
    found: dict[str, dict[str, Document]] = {run_id: {} for run_id in ids}
    for at in range(0, len(ids), _AT_ONCE):
        part = ids[at : at + _AT_ONCE]
        for run_id, key, step, ts_us, value in metrics.last_points_of(tx, part):
            found[run_id].setdefault(key, point(key, step, codec.milliseconds(ts_us), value))
        for row in tx.rows(select(latest).where(latest.c.run_id.in_(part))):
            shown = found[row.run_id].get(row.key)
            if shown is None or row.step >= shown["step"]:
                value = float("nan") if row.is_nan else row.value
                found[row.run_id][row.key] = point(row.key, row.step, row.ts_ms, value)
    return {run_id: [points[key] for key in sorted(points)] for run_id, points in found.items()}


def point(key: str, step: int, ts_ms: int, value: float) -> Document:
    return {"key": key, "value": codec.shown(value), "timestamp": ts_ms, "step": step}


def _links(tx: ReadTx, ids: list[str]) -> dict[str, Document]:
    found: dict[str, Document] = {
        run_id: {"inputs": {"dataset_inputs": [], "model_inputs": []}, "outputs": {"model_outputs": []}}
        for run_id in ids
    }
    for at in range(0, len(ids), _AT_ONCE):
        stmt = select(link).where(link.c.run_id.in_(ids[at : at + _AT_ONCE])).order_by(link.c.created_us, link.c.ref)
        for row in tx.rows(stmt):
            side, name = {
                "dataset": ("inputs", "dataset_inputs"), "model_in": ("inputs", "model_inputs"),
                "model_out": ("outputs", "model_outputs"),
            }[row.kind]  # fmt: skip
            found[row.run_id][side][name].append(msgspec.json.decode(row.document))
    return found
