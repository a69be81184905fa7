"""outside: runs that nobody submitted. Their spool is the sign of life, their client the evidence of their end."""

import re

from sqlalchemy import select, update

from trackbed.access import ensure_project, next_run_number
from trackbed.access.rules import DEFAULT_SPACE
from trackbed.base.entropy import new_id
from trackbed.base.errors import NotFound
from trackbed.db import ReadTx, Tx
from trackbed.domain.events import Event
from trackbed.domain.scope import Permission, Scope
from trackbed.domain.states import TERMINAL, AttemptState, Cause, RunState
from trackbed.tracking import runs
from trackbed.tracking.runs_tables import attempt, run
from trackbed.wire.runs import OutsideRunRequest, Reason
from trackbed.wire.spec import Resources, Spec

MOST_NAME = 65536
_CHILD = "job"  # how the create keys of runs begin that a job made
_RUN_ID = re.compile(r"run_[0-9a-z]{6,40}")
SILENT_S = 7 * 86400.0
_STATES = {
    "finished": (RunState.FINISHED, Cause.DONE, "run.finished"),
    "stopped": (RunState.STOPPED, Cause.STOPPED, "run.stopped"),
    "killed": (RunState.STOPPED, Cause.STOPPED, "run.stopped"),
}


def begin(tx: Tx, scope: Scope, request: OutsideRunRequest, *, space: str = DEFAULT_SPACE) -> runs.RunRow:
    """Make a run that is running already, with attempt 1 on no cards; the same key of the same person gives the same run."""
    project = ensure_project(tx, scope, space, request.project)
    if request.key:
        known = tx.one(
            select(run).where(
                run.c.space_id == project.space_id, run.c.owner_id == scope.actor.id, run.c.create_key == request.key
            )
        )
        if known is not None:
            return known
    spec = Spec(
        project=project.name, space=project.space, name=request.name, tags=request.tags, params=request.params,
        resources=Resources(cards_per_node=0),
    )  # fmt: skip
    row = runs.create(
        tx,
        runs.NewRun(
            id=new_id("run"), space_id=project.space_id, project_id=project.id,
            number=next_run_number(tx, project.id), owner_id=scope.actor.id, owner=scope.actor.name, spec=spec,
            outside=True, create_key=request.key, created_us=min(request.started_us or tx.now_us, tx.now_us),
        ),
    )  # fmt: skip
    return _first_attempt(tx, row)


def child(tx: Tx, job: runs.RunRow, ident: str, *, name: str | None, started_us: int = 0) -> runs.RunRow:
    """Return a run that a job made beside its own, of the same owner and project; with a `name` it is made if it is not there.

    Raises:
        NotFound: `run_unknown`: it is not there, or not of this job.
    """
    key = f"{_CHILD}/{job.id}/{ident}"
    known = tx.one(select(run).where(run.c.id == ident))
    if known is not None and known.create_key == key:
        return known
    if known is not None or name is None or not _RUN_ID.fullmatch(ident):
        raise NotFound("run_unknown", ref=ident[:200])
    spec = Spec(project=job.project, space=job.space, name=name[:MOST_NAME], resources=Resources(cards_per_node=0))
    row = runs.create(
        tx,
        runs.NewRun(
            id=ident, space_id=job.space_id, project_id=job.project_id, number=next_run_number(tx, job.project_id),
            owner_id=job.owner_id, owner=job.owner, spec=spec, outside=True, create_key=key,
            created_us=min(max(started_us, job.created_us), tx.now_us),
        ),
    )  # fmt: skip
    tx.emit(
        Event(
            "run.child_began",
            job.id,
            job.space_id,
            job.id,
            data={"ref": runs.ref_of(job), "child": runs.ref_of(row), "id": row.id},
        )
    )
    return _first_attempt(tx, row)


def _first_attempt(tx: Tx, row: runs.RunRow) -> runs.RunRow:
    first = new_id("att")
    tx.execute(
        attempt.insert().values(
            id=first, run_id=row.id, space_id=row.space_id, number=1, epoch=1, state=AttemptState.RUNNING.value,
            created_us=row.created_us, started_us=row.created_us, contact_us=tx.now_us,
        )
    )  # fmt: skip
    runs.set_columns(tx, row, attempt_id=first, attempt=1, epoch=1)
    return runs.get(tx, row.id)


def heard(tx: Tx, row: runs.RunRow) -> runs.RunRow:
    """Note that frames of an outside run came; one that was given up for silence is running again."""
    if not row.outside:
        return row
    if row.state == RunState.FAILED.value and row.cause == Cause.LOST.value:
        row = reopen(tx, row)
    runs.note_contact(tx, row.id)
    return row


def reopen(tx: Tx, row: runs.RunRow) -> runs.RunRow:
    """Let a failed run go on: its client is there again."""
    row = runs.move(tx, row, RunState.RUNNING, "run.reopened", cause="", reason="")
    _set_attempt(tx, row, state=AttemptState.RUNNING.value, cause="", ended_us=0)
    return row


def finish(tx: Tx, row: runs.RunRow, status: str, *, exit_code: int = 0, reason: str = "") -> runs.RunRow:
    """End an outside run by what its client says. Said twice, or after a person stopped it, it changes nothing."""
    if not row.outside or (RunState(row.state) in TERMINAL and row.cause != Cause.LOST.value):
        return row
    row = heard(tx, row)
    state, cause, kind = _STATES.get(status, (RunState.FAILED, Cause.USER_ERROR, "run.failed"))
    why = Reason(code="client_said", params={"status": status, "code": exit_code, "what": reason[:2000]})
    _end_attempt(tx, row, cause, {"exit_code": exit_code, "reason": reason[:2000]})
    return runs.move(
        tx, row, state, kind, data={"cause": cause.value, "exit_code": exit_code}, cause=cause.value,
        reason=runs.to_json(why) if state is RunState.FAILED else "", seconds_left=None,
    )  # fmt: skip


def stop(tx: Tx, row: runs.RunRow) -> runs.RunRow:
    """A person closes the record; the process, if there still is one, is not ours to end."""
    _end_attempt(tx, row, Cause.STOPPED, {})
    return runs.move(tx, row, RunState.STOPPED, "run.stopped", cause=Cause.STOPPED.value)


def give_up(tx: Tx, row: runs.RunRow) -> runs.RunRow:
    """Fail a run that was silent for too long; its own spool reopens it."""
    _end_attempt(tx, row, Cause.LOST, {})
    why = runs.to_json(Reason(code="silent", params={"since_us": row.contact_us}))
    return runs.move(tx, row, RunState.FAILED, "run.failed", data={"cause": "lost"}, cause=Cause.LOST.value, reason=why)


def silent_ones(tx: ReadTx, limit_s: float = SILENT_S) -> list[runs.RunRow]:
    last = tx.now_us - int(limit_s * 1e6)
    outside = (run.c.outside == 1, run.c.state == RunState.RUNNING.value, run.c.contact_us < last)
    return tx.rows(select(run).where(*outside).limit(500))


def _end_attempt(tx: Tx, row: runs.RunRow, cause: Cause, evidence: dict[str, object]) -> None:
    _set_attempt(tx, row, state=AttemptState.EXITED.value, cause=cause.value, ended_us=tx.now_us,
                 evidence=runs.to_json(evidence))  # fmt: skip
    data = {"attempt": row.attempt, "cause": cause.value, "evidence": evidence}
    tx.emit(Event("attempt.exited", row.attempt_id, row.space_id, row.id, row.attempt_id, data))


def _set_attempt(tx: Tx, row: runs.RunRow, **columns: object) -> None:
    tx.execute(update(attempt).where(attempt.c.id == row.attempt_id).values(**columns))


def may_write(scope: Scope, row: runs.RunRow) -> None:
    """Raise unless the scope may log into the run: its own attempt, that of the job which made it, its owner, a maintainer."""
    job = scope.actor.run_id
    if job and (job == row.id or (row.create_key or "").startswith(f"{_CHILD}/{job}/")):
        return
    if scope.actor.id == row.owner_id:
        scope.require(Permission.WRITE, row.space_id, what=runs.ref_of(row))
        return
    runs.own_or_maintain(scope, row)
