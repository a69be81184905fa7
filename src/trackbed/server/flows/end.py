"""end: from the evidence of an attempt to what follows for its run, in one transaction.

    exit report ─► attempt exited(cause) ─► cards free ─► next stage | finished | queue with back-off | paused | stopped | failed

A late exit of a replaced attempt frees its cards and decides nothing else. Sending a report twice changes nothing.
"""

from dataclasses import dataclass, replace
from typing import Any

from trackbed.access import revoke_attempt_token
from trackbed.base.errors import BadInput
from trackbed.db import ReadTx, Tx
from trackbed.domain.outcome import Next, Wish, after_attempt
from trackbed.domain.scope import Actor
from trackbed.domain.states import ACTIVE, ATTEMPT_ENDED, AttemptState, Cause, RunState
from trackbed.scheduling import holds
from trackbed.server.app import App
from trackbed.server.flows import keep, stages
from trackbed.server.flows.register import Made, prepare_model, register_by_rule
from trackbed.server.flows.start import stage_of
from trackbed.tracking import runs, runs_attempts, runs_views
from trackbed.wire.attempts import ExitReport
from trackbed.wire.runs import Reason

KINDS = {
    RunState.FINISHED: "run.finished", RunState.FAILED: "run.failed", RunState.STOPPED: "run.stopped",
    RunState.PAUSED: "run.paused", RunState.QUEUED: "run.requeued",
}  # fmt: skip


@dataclass(frozen=True)
class Ended:
    """`owner`: the attempt owned its run; a replaced one is told `epoch_superseded` after its exit was noted."""

    owner: bool
    ref: str
    state: str
    epoch: int  # of the run


def end_attempt(app: App, attempt_id: str, report: ExitReport, *, actor: Actor) -> Ended:
    """As `end`, with the model of a run that finishes by it put into the store before. Blocks; not for the event loop."""
    made = prepare_model(app, attempt_id, report.cause)
    named = replace(actor, name=actor.name or app.db.read(lambda tx: _name(tx, attempt_id)))
    ended = app.db.write(lambda tx: end(app, tx, attempt_id, report, made=made), actor=named)
    keep.prune(app, app.db.read(lambda tx: str(runs_attempts.get(tx, attempt_id).run_id)))
    return ended


def _name(tx: ReadTx, attempt_id: str) -> str:
    """`demo#17/2`: what the journal and a model's page call an attempt."""
    attempt = runs_attempts.get(tx, attempt_id)
    return f"{runs.ref_of(runs.get(tx, attempt.run_id))}/{attempt.number}"


def end(app: App, tx: Tx, attempt_id: str, report: ExitReport, *, made: Made | None = None) -> Ended:
    """Take the last word of a supervisor (or of the salvager of a dead one). `made`: the tree to register, if any."""
    attempt = runs_attempts.get(tx, attempt_id)
    row = runs.get(tx, attempt.run_id)
    if attempt.epoch != report.epoch or row.epoch != attempt.epoch or attempt.state == AttemptState.SUPERSEDED.value:
        return _late(tx, attempt, row, report)
    if AttemptState(attempt.state) in ATTEMPT_ENDED:
        return Ended(True, runs.ref_of(row), row.state, row.epoch)
    if attempt.lost_us:
        row = runs_attempts.adopt(tx, attempt, row)
    cause, reason = _judged(row, attempt, report)
    attempt = runs_attempts.close(tx, attempt, report, cause, reason)
    holds.free(tx, attempt.id)
    revoke_attempt_token(tx, attempt.id)
    runs.set_columns(tx, row, card_seconds=row.card_seconds + attempt.card_seconds, contact_us=tx.now_us)
    row = runs.get(tx, row.id)
    if RunState(row.state) in ACTIVE:
        if cause is Cause.PAUSED and attempt.order_withdrawn and not row.wish:
            cause = Cause.PREEMPTED  # it left before it heard that the pause was taken back: it goes on
        row = follow(app, tx, row, cause, reason, attempt=attempt)
        if row.state == RunState.FINISHED.value:
            register_by_rule(app, tx, row, made)
    tx.after_commit(lambda: app.wake.set("schedule"))
    tx.after_commit(lambda: app.wake.set(f"order:{attempt_id}"))
    return Ended(True, runs.ref_of(row), row.state, row.epoch)


def _late(tx: Tx, attempt: runs_attempts.AttemptRow, row: runs.RunRow, report: ExitReport) -> Ended:
    if attempt.epoch == report.epoch and not attempt.ended_us:
        runs_attempts.confirm_superseded(tx, attempt, report)
        holds.free(tx, attempt.id)
        revoke_attempt_token(tx, attempt.id)
    return Ended(False, runs.ref_of(row), row.state, row.epoch)


def _judged(row: runs.RunRow, attempt: runs_attempts.AttemptRow, report: ExitReport) -> tuple[Cause, Reason | None]:
    """The cause as reported, unless a stage that says it is done did not leave what it promised."""
    try:
        cause = Cause(report.cause)
    except ValueError:
        known = ", ".join(cause.value for cause in Cause)
        raise BadInput("cause_unknown", cause=report.cause, known=known) from None
    stage = stage_of(row)
    if cause is Cause.DONE and stage is not None:
        made = runs.from_json(attempt.products, {})
        missing = sorted(name for name in stage.produces if not made.get(name))
        if missing:
            return Cause.USER_ERROR, Reason(
                code="products_missing", params={"stage": stage.name, "products": ", ".join(missing)}
            )
    why = runs_views.why_ended(report)
    if why is not None and why.code == "products_not_left" and stage is not None:
        why = Reason(code="products_missing", params={"stage": stage.name, **why.params})
    return cause, why


def follow(
    app: App,
    tx: Tx,
    row: runs.RunRow,
    cause: Cause,
    reason: Reason | None,
    *,
    attempt: runs_attempts.AttemptRow | None = None,
) -> runs.RunRow:
    """Move a run whose attempt ended (or, without one, was declared gone) to what follows."""
    spec = runs.spec_of(row)
    used: dict[str, int] = runs.from_json(row.used, {})
    following: int | None = None
    if spec.stages and cause is Cause.DONE and attempt is not None:
        stages.done(app, tx, row, attempt, runs.from_json(attempt.products, {}))
        following = stages.due(app, tx, row)
    after = after_attempt(
        cause, wish=Wish(row.wish), retries=spec.retries, used=used, more_stages=following is not None
    )
    data: dict[str, Any] = {"cause": cause.value, "attempt": row.attempt}
    columns: dict[str, Any] = {"cause": "", "reason": "", "seconds_left": None}
    if spec.stages and cause is not Cause.DONE:
        runs_attempts.stage_left(tx, row, "failed" if after.state is RunState.FAILED else "waiting")
    if after.next_stage and following is not None:
        columns |= {"stage_index": following, "used": "{}"}
        data["stage"] = spec.stages[following].name
    if after.counted:
        columns["used"] = runs.to_json({**used, cause.value: used.get(cause.value, 0) + 1})
        columns["not_before_us"] = tx.now_us + int(after.delay_s * 1e6) if after.delay_s else 0
        data |= {"retry": used.get(cause.value, 0) + 1, "budget": after.budget, "delay_s": after.delay_s}
    if after.state is RunState.QUEUED:
        kind = "run.next_stage" if after.next_stage else "run.preempted" if cause is Cause.PREEMPTED else "run.requeued"
        for name in ("cause", "reason"):  # `to_queue` clears them
            columns.pop(name)
        return runs.to_queue(tx, row, kind, keep_place=True, data=data, **columns)
    columns["cause"] = cause.value
    if after.state is RunState.FAILED:
        why = _why_failed(cause, reason, after, used)
        columns["reason"] = runs.to_json(why) if why else ""
    if after.state is RunState.STOPPED:
        columns["cause"] = Cause.STOPPED.value
    return runs.move(tx, row, after.state, KINDS[after.state], data=data, wish="", **columns)


def _why_failed(cause: Cause, reason: Reason | None, after: Next, used: dict[str, int]) -> Reason | None:
    if after.budget:
        return Reason(code="retries_spent", params={"cause": cause.value, "retries": used.get(cause.value, 0)})
    return reason or Reason(code="ended_by", params={"cause": cause.value})


def gone(app: App, tx: Tx, attempt_id: str) -> None:
    """Declare an attempt gone that nobody heard of for too long: its cards are unknown, its run is retried elsewhere.

    The attempt is not over: nobody knows. It is adopted if it is heard of before the next one begins.
    """
    attempt = runs_attempts.get(tx, attempt_id)
    row = runs.get(tx, attempt.run_id)
    if AttemptState(attempt.state) in ATTEMPT_ENDED or attempt.lost_us or row.epoch != attempt.epoch:
        return
    runs_attempts.declare_gone(tx, attempt)
    holds.set_unknown(tx, attempt.id, unknown=True)
    if RunState(row.state) in ACTIVE:
        follow(app, tx, row, Cause.LOST, Reason(code="silent", params={"since_us": attempt.contact_us}))
    tx.after_commit(lambda: app.wake.set("schedule"))
