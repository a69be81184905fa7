"""stop, pause, resume, retry, hold, release, and preempt for the planner. Each is a wish: the evidence decides what became of it."""

import contextlib
from collections.abc import Callable
from typing import Any

from trackbed.base.errors import Conflict
from trackbed.db import Tx
from trackbed.domain.events import Event
from trackbed.domain.outcome import Wish
from trackbed.domain.scope import Scope
from trackbed.domain.states import ACTIVE, ATTEMPT_ENDED, AttemptState, Cause, OrderKind, RunState
from trackbed.server.app import App
from trackbed.server.flows import outside, prepare, stages
from trackbed.server.flows.lease import wake_name
from trackbed.tracking import runs, runs_attempts
from trackbed.wire.runs import Reason, VerbRequest

RESUME_WINDOW_S = 30 * 86400.0


def act(app: App, tx: Tx, scope: Scope, ref: str, verb: str, request: VerbRequest) -> runs.RunRow:
    """Do a verb on a run; a verb that has been done already changes nothing.

    Raises:
        NotFound, Denied: as `runs.resolve` and `runs.own_or_maintain`.
        Conflict: the run is in a state where the verb means nothing.
    """
    row = runs.resolve(tx, scope, ref)
    runs.own_or_maintain(scope, row)
    row = VERBS[verb](app, tx, row, request)
    if verb in ("stop", "pause", "resume"):
        _pass_on(app, tx, row, verb, request)
    tx.after_commit(lambda: app.wake.set("schedule"))
    return row


def _pass_on(app: App, tx: Tx, row: runs.RunRow, verb: str, request: VerbRequest) -> None:
    """What is asked of a run is asked of the runs that work on stages of it, where it means something to them."""
    for child in stages.working_for(tx, row):
        with contextlib.suppress(Conflict):
            VERBS[verb](app, tx, child, request)


def stop(app: App, tx: Tx, row: runs.RunRow, request: VerbRequest) -> runs.RunRow:
    """End the run. One that waits is stopped at once; one that trains is asked to save and leave."""
    state = RunState(row.state)
    if state is RunState.STOPPED:
        return row
    if state in (RunState.FINISHED, RunState.FAILED):
        raise Conflict("run_over", ref=runs.ref_of(row), state=row.state, verb="stop")
    if row.outside:
        return outside.stop(tx, row)
    if state not in ACTIVE:
        return runs.move(
            tx, row, RunState.STOPPED, "run.stopped", data=_said(request), cause=Cause.STOPPED.value, reason=""
        )
    return _ask(app, tx, row, Wish.STOP, OrderKind.STOP, request)


def pause(app: App, tx: Tx, row: runs.RunRow, request: VerbRequest) -> runs.RunRow:
    """Save and leave the cards; `resume` goes on from there."""
    state = RunState(row.state)
    if state is RunState.PAUSED or row.wish == Wish.PAUSE.value:
        return row
    if state is RunState.QUEUED and stages.working_for(tx, row):
        return row  # it waits for runs that work on stages of it: they are paused
    if row.outside or state not in ACTIVE or row.wish == Wish.STOP.value:
        raise Conflict("run_not_running", ref=runs.ref_of(row), state=row.state, verb="pause")
    return _ask(app, tx, row, Wish.PAUSE, OrderKind.PAUSE, request)


def _ask(app: App, tx: Tx, row: runs.RunRow, wish: Wish, kind: OrderKind, request: VerbRequest) -> runs.RunRow:
    attempt = runs_attempts.get(tx, row.attempt_id)
    grace_s = request.grace_s if request.grace_s is not None else runs.spec_of(row).on_preempt.grace_s
    runs_attempts.give_order(tx, attempt, kind, grace_s=max(grace_s, 0.0), reason=request.message[:2000])
    tx.after_commit(lambda: app.wake.set(wake_name(attempt.id)))
    data = {"asked": kind.value, "grace_s": grace_s, **_said(request)}
    if row.state == RunState.STOPPING.value:
        runs.set_columns(tx, row, wish=wish.value)
        tx.emit(Event("run.asked", row.id, row.space_id, row.id, attempt.id, data))
        return runs.get(tx, row.id)
    return runs.move(tx, row, RunState.STOPPING, "run.stopping", data=data, wish=wish.value)


def resume(app: App, tx: Tx, row: runs.RunRow, request: VerbRequest) -> runs.RunRow:
    """Back into the queue, to go on from the current checkpoint; a pause that is not over yet is taken back."""
    state = RunState(row.state)
    if state in (RunState.PREPARING, RunState.QUEUED, RunState.STARTING, RunState.RUNNING):
        return row
    if state is RunState.STOPPING and row.wish == Wish.PAUSE.value:
        attempt = runs_attempts.get(tx, row.attempt_id)
        runs_attempts.withdraw_order(tx, attempt)
        tx.after_commit(lambda: app.wake.set(wake_name(attempt.id)))
        return runs.move(tx, row, RunState.RUNNING, "run.resumed", data=_said(request), wish="")
    if state is RunState.PAUSED:
        return runs.to_queue(tx, row, "run.resumed", data=_said(request), used="{}", not_before_us=0)
    return _again(app, tx, row, request, "resume")


def retry(app: App, tx: Tx, row: runs.RunRow, request: VerbRequest) -> runs.RunRow:
    """A new attempt of a run that failed or was stopped."""
    if RunState(row.state) in (RunState.PREPARING, RunState.QUEUED, RunState.STARTING, RunState.RUNNING):
        return row
    return _again(app, tx, row, request, "retry")


def _again(app: App, tx: Tx, row: runs.RunRow, request: VerbRequest, verb: str) -> runs.RunRow:
    if row.outside or RunState(row.state) not in (RunState.FAILED, RunState.STOPPED):
        raise Conflict("run_not_resumable", ref=runs.ref_of(row), state=row.state, verb=verb)
    if tx.now_us - row.ended_us > RESUME_WINDOW_S * 1e6:
        raise Conflict("resume_window_over", ref=runs.ref_of(row), days=int(RESUME_WINDOW_S // 86400), verb=verb)
    row = prepare.again(app, tx, row, "run.resumed", data=_said(request))
    if not runs.spec_of(row).stages or row.state == RunState.PREPARING.value:
        return row
    for child in stages.again(app, tx, row):  # each goes on from its own checkpoint
        if RunState(child.state) in (RunState.FAILED, RunState.STOPPED):
            _again(app, tx, child, request, verb)
    return stages.go_on(app, tx, row)


def hold(app: App, tx: Tx, row: runs.RunRow, request: VerbRequest) -> runs.RunRow:
    """Keep a waiting run from starting; it keeps its place."""
    if row.state == RunState.HELD.value:
        return row
    if row.state != RunState.QUEUED.value:
        raise Conflict("run_not_waiting", ref=runs.ref_of(row), state=row.state, verb="hold")
    return runs.move(tx, row, RunState.HELD, "run.held", data=_said(request), reason=runs.to_json(Reason(code="held")))


def release(app: App, tx: Tx, row: runs.RunRow, request: VerbRequest) -> runs.RunRow:
    """Let a held run start again, from the place it had."""
    if row.state in (RunState.QUEUED.value, RunState.PREPARING.value):
        return row
    if row.state != RunState.HELD.value:
        raise Conflict("run_not_waiting", ref=runs.ref_of(row), state=row.state, verb="release")
    return prepare.released(app, tx, row, data=_said(request))


VERBS: dict[str, Callable[[App, Tx, runs.RunRow, VerbRequest], runs.RunRow]] = {
    "stop": stop, "pause": pause, "resume": resume, "retry": retry, "hold": hold, "release": release,
}  # fmt: skip


def order(app: App, tx: Tx, attempt_id: str, kind: OrderKind, *, for_run: str = "", reason: str = "") -> bool:
    """Ask an attempt to leave for the planner or for its time limit; False where it is leaving already."""
    attempt = runs_attempts.get(tx, attempt_id)
    row = runs.get(tx, attempt.run_id)
    leaving = bool(attempt.order_kind) and not attempt.order_withdrawn
    if AttemptState(attempt.state) in ATTEMPT_ENDED or leaving or RunState(row.state) not in ACTIVE:
        return False
    grace_s = runs.spec_of(row).on_preempt.grace_s
    runs_attempts.give_order(tx, attempt, kind, grace_s=grace_s, for_run=for_run, reason=reason)
    data = {"asked": kind.value, "grace_s": grace_s, "for": for_run}
    runs.move(tx, row, RunState.STOPPING, "run.stopping", data=data)
    tx.after_commit(lambda: app.wake.set(wake_name(attempt_id)))
    return True


def _said(request: VerbRequest) -> dict[str, Any]:
    return {"message": request.message[:2000]} if request.message else {}
