"""Runs over MLflow: made, read, updated, hidden, brought back. One that MLflow makes is an outside run."""

from typing import Any

from sqlalchemy import update as sql_update

from trackbed.base.errors import BadInput
from trackbed.db import ReadTx, Tx, upsert
from trackbed.domain.events import Event
from trackbed.domain.scope import Scope
from trackbed.domain.states import TERMINAL, Cause, RunState
from trackbed.server.flows import outside
from trackbed.server.mlflow import experiments, recording, run_views, tags
from trackbed.server.mlflow.codec import Asked, Document
from trackbed.server.mlflow.routing import reads, writes
from trackbed.server.mlflow.tables import run_state
from trackbed.tracking import facts
from trackbed.tracking import runs as room
from trackbed.tracking.runs_tables import run
from trackbed.wire.mlflow import ENDS, RUN_NAME, read_status
from trackbed.wire.runs import OutsideRunRequest

DELETED_LABEL = "deleted"
MOST_NAME = 65536


def create(tx: Tx, scope: Scope, asked: Asked) -> Document:
    """Begin a run in a project."""
    found = experiments.active(
        experiments.find_or_make(tx, scope, asked.text("experiment_id") or experiments.DEFAULT_ID)
    )
    tagged = tags.given(asked.records("tags"))
    name = asked.text("run_name") or tagged.get(RUN_NAME, "")
    started_us = min(max(asked.whole("start_time"), 0) * 1000, tx.now_us)
    request = OutsideRunRequest(project=found.project, name=name[:MOST_NAME], started_us=started_us)
    row = outside.begin(tx, scope, request, space=found.space)
    recording.put_tags(tx, row, {key: value for key, value in tagged.items() if key != RUN_NAME})
    return {"run": run_views.views(tx, [run_views.find(tx, scope, row.id)])[0]}


def get(tx: ReadTx, scope: Scope, asked: Asked) -> Document:
    row = run_views.find(tx, scope, asked.need("run_id", "run_uuid"))
    return {"run": run_views.views(tx, [row])[0]}


def update(tx: Tx, scope: Scope, asked: Asked) -> Document:
    """Rename a run, or say how it is; of an outside run that is the evidence of its end."""
    row = run_views.writable(tx, scope, asked.need("run_id", "run_uuid"))
    status = read_status(asked)
    if asked.text("run_name"):
        recording.set_name(tx, row, asked.text("run_name")[:MOST_NAME])
    if status:
        _settle(tx, room.get(tx, row.id), status, asked.whole("end_time") * 1000)
    return {"run_info": run_views.info(run_views.find(tx, scope, row.id))}


def _settle(tx: Tx, row: room.RunRow, status: str, end_us: int) -> None:
    """Follow what the client says of its run.

    The end of a submitted run comes from its supervisor's evidence; what a rank says of it is an event. A run that ended
    stays ended: what a client says later is shown to MLflow's clients, and changes no state of ours.
    """
    if not row.outside:
        data = {"what": "mlflow status", "rank": 0, "data": {"status": status}}
        tx.emit(Event("run.noted", row.id, row.space_id, row.id, data=data))
        return
    state = RunState(row.state)
    if status in ENDS and (state not in TERMINAL or row.cause == Cause.LOST.value):
        _say(tx, row.id, status="")
        ended = outside.finish(tx, row, ENDS[status])
        if (row.started_us or row.created_us) <= end_us <= tx.now_us:
            tx.execute(sql_update(run).where(run.c.id == ended.id).values(ended_us=end_us))
        return
    if status == "RUNNING" and state is RunState.FAILED:
        outside.reopen(tx, row)
        _say(tx, row.id, status="")
        return
    _say(tx, row.id, status="" if run_views.STATUS[row.state] == status else status)
    tx.emit(Event("run.mlflow_status", row.id, row.space_id, row.id, data={"status": status, "state": row.state}))


def _say(tx: Tx, run_id: str, **columns: Any) -> None:
    tx.execute(upsert(run_state, {"run_id": run_id, **columns}, key=["run_id"], update=list(columns)))


def delete(tx: Tx, scope: Scope, asked: Asked) -> Document:
    """Hide a run from MLflow's searches; it keeps its number and everything it logged, with a label that says so."""
    row = run_views.writable(tx, scope, asked.need("run_id"), deleted_too=True)
    if not row.deleted_us:
        _say(tx, row.id, deleted_us=tx.now_us)
        facts.change_tags(tx, row.id, [([DELETED_LABEL], [])])
        tx.emit(Event("run.deleted", row.id, row.space_id, row.id, data={"ref": room.ref_of(row)}))
    return {}


def restore(tx: Tx, scope: Scope, asked: Asked) -> Document:
    row = run_views.writable(tx, scope, asked.need("run_id"), deleted_too=True)
    if not row.deleted_us:
        raise BadInput("mlflow_run_active", ref=row.id)
    _say(tx, row.id, deleted_us=0)
    facts.change_tags(tx, row.id, [([], [DELETED_LABEL])])
    tx.emit(Event("run.restored", row.id, row.space_id, row.id, data={"ref": room.ref_of(row)}))
    return {}


routes: list[Any] = [
    writes("POST", "runs/create", create),
    reads("GET", "runs/get", get),
    writes("POST", "runs/update", update),
    writes("POST", "runs/delete", delete),
    writes("POST", "runs/restore", restore),
]
