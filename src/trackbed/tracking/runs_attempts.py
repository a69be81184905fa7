"""Attempts of runs: begun, renewed, ordered about, ended, replaced. One accepted owner per run.

Whatever an attempt writes is conditioned on its epoch being the run's newest (`owned`); an older one is refused with
`epoch_superseded`. An attempt that was declared gone stays what it was until the next one begins: heard of before that,
it is adopted; after that it is superseded, and only its confirmed exit is still worth something (its cards).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, insert, select, update

from trackbed.base.entropy import new_id
from trackbed.base.errors import Conflict, NotFound
from trackbed.db import ReadTx, Tx, upsert
from trackbed.domain.events import Event
from trackbed.domain.states import (
    ACTIVE,
    ATTEMPT_ENDED,
    ATTEMPT_MOVES,
    AttemptState,
    Cause,
    OrderKind,
    RunState,
    move_attempt,
)
from trackbed.tracking import runs
from trackbed.tracking.runs_tables import attempt, checkpoint, run, stage
from trackbed.wire.attempts import CheckpointReport, ExitReport, LeaseRequest, Order, ResumePin
from trackbed.wire.runs import Reason

AttemptRow = Row[Any]
LIVE = [state.value for state in AttemptState if state not in ATTEMPT_ENDED]
_PHASES = {"starting": AttemptState.STARTING, "running": AttemptState.RUNNING, "saving": AttemptState.SAVING}


@dataclass(frozen=True)
class Owned:
    """An attempt that owns its run, and the run."""

    attempt: AttemptRow
    run: runs.RunRow


def get(tx: ReadTx, attempt_id: str) -> AttemptRow:
    row = tx.one(select(attempt).where(attempt.c.id == attempt_id))
    if row is None:
        raise NotFound("attempt_unknown", attempt=attempt_id)
    return row


def of_run(tx: ReadTx, run_id: str) -> list[AttemptRow]:
    return tx.rows(select(attempt).where(attempt.c.run_id == run_id).order_by(attempt.c.number))


def live(tx: ReadTx) -> list[AttemptRow]:
    """Every attempt that has not ended, declared gone or not; oldest first."""
    return tx.rows(select(attempt).where(attempt.c.state.in_(LIVE)).order_by(attempt.c.created_us, attempt.c.id))


def spent(tx: ReadTx, run_ids: Iterable[str]) -> dict[str, float]:
    """Return the card-seconds of running attempts up to now, by run; `run.card_seconds` counts them at their end."""
    going = attempt.c.run_id.in_(list(run_ids)), attempt.c.state.in_(LIVE), attempt.c.started_us > 0
    found: dict[str, float] = {}
    for row in tx.rows(select(attempt).where(*going)):
        found[row.run_id] = found.get(row.run_id, 0.0) + card_seconds(row, tx.now_us)
    return found


def card_seconds(row: AttemptRow, now_us: int) -> float:
    """Return what an attempt has taken: up to its end, else to when it was last believed to be there."""
    if row.state not in LIVE or not row.started_us:
        return row.card_seconds
    return row.cards * max(0, (row.lost_us or now_us) - row.started_us) / 1e6


def superseded(tx: ReadTx) -> list[AttemptRow]:
    """Replaced ones whose exit nobody has confirmed."""
    stmt = select(attempt).where(attempt.c.state == AttemptState.SUPERSEDED.value, attempt.c.ended_us == 0)
    return tx.rows(stmt.order_by(attempt.c.created_us))


def owned(tx: ReadTx, attempt_id: str, epoch: int) -> Owned:
    """Return the attempt with its run if it owns it.

    Raises:
        NotFound: `attempt_unknown`.
        Conflict: `epoch_superseded`: another attempt owns the run, or the report is of another epoch.
    """
    row = get(tx, attempt_id)
    its_run = runs.get(tx, row.run_id)
    if row.epoch != epoch or its_run.epoch != epoch or row.state == AttemptState.SUPERSEDED.value:
        raise Conflict(
            "epoch_superseded", name=runs.ref_of(its_run), attempt=attempt_id, epoch=epoch, current=its_run.epoch
        )
    return Owned(row, its_run)


def begin(
    tx: Tx, its_run: runs.RunRow, attempt_id: str, placement: list[dict[str, Any]], *, resume: ResumePin | None
) -> Owned:
    """Issue the next epoch: a new attempt, the run `starting`; what was declared gone is superseded by it.

    Raises:
        Conflict: `run_moved`: the run left the queue meanwhile, or its last attempt has not ended.
    """
    if its_run.attempt_id:
        before = get(tx, its_run.attempt_id)
        if before.state in LIVE:
            if not before.lost_us:
                raise Conflict("run_moved", ref=runs.ref_of(its_run), state=its_run.state)
            _supersede(tx, before)
    spec = runs.spec_of(its_run)
    name = spec.stages[its_run.stage_index].name if spec.stages else ""
    cards = sum(len(slot["cards"]) for slot in placement)
    number, epoch = its_run.attempt + 1, its_run.epoch + 1
    tx.execute(
        insert(attempt).values(
            id=attempt_id, run_id=its_run.id, space_id=its_run.space_id, number=number, epoch=epoch,
            state=AttemptState.ASSIGNED.value, stage=name, stage_index=its_run.stage_index, created_us=tx.now_us,
            contact_us=tx.now_us, placement=runs.to_json(placement), cards=cards, node=placement[0]["node"],
            resume_name=resume.name if resume else "", resume_digest=resume.digest if resume else "",
            resumed_from_step=resume.step if resume else None,
        )
    )  # fmt: skip
    if name:
        _set_stage(tx, its_run.id, its_run.stage_index, state="running", attempt=number)
    data = {"attempt": number, "placement": placement, "stage": name, "step": resume.step if resume else None}
    moved = runs.move(
        tx, its_run, RunState.STARTING, "run.starting", data=data, attempt_id=attempt_id, attempt=number,
        epoch=epoch, reason="", cause="", not_before_us=0,
    )  # fmt: skip
    return Owned(get(tx, attempt_id), moved)


def _supersede(tx: Tx, row: AttemptRow) -> None:
    _move(tx, row, AttemptState.SUPERSEDED, "attempt.superseded", cause=Cause.LOST.value)


def _move(
    tx: Tx, row: AttemptRow, to: AttemptState, kind: str, *, data: dict[str, Any] | None = None, **columns: Any
) -> AttemptRow:
    move_attempt(AttemptState(row.state), to)
    stmt = update(attempt).where(attempt.c.id == row.id, attempt.c.state == row.state, attempt.c.epoch == row.epoch)
    if tx.execute(stmt.values(state=to.value, **columns)).rowcount != 1:
        raise Conflict("attempt_moved", attempt=row.id, state=row.state)
    tx.emit(Event(kind, row.id, row.space_id, row.run_id, row.id,
                  {"attempt": row.number, "from": row.state, "to": to.value, **(data or {})}))  # fmt: skip
    return get(tx, row.id)


def mark_submitted(tx: Tx, attempt_id: str) -> None:
    """Remember that the engine has the attempt."""
    tx.execute(update(attempt).where(attempt.c.id == attempt_id).values(submitted_us=tx.now_us))


# --- lease -----------------------------------------------------------------------------------------------------------


def renew(tx: Tx, attempt_id: str, request: LeaseRequest) -> bool:
    """Renew the lease and follow the phase; return whether the attempt (still) owns its run.

    One that was declared gone and not replaced yet is adopted: it goes on as if nothing had happened.
    """
    row = get(tx, attempt_id)
    its_run = runs.get(tx, row.run_id)
    if row.epoch != request.epoch or its_run.epoch != row.epoch or row.state in [s.value for s in ATTEMPT_ENDED]:
        _note_silent_owner(tx, row)
        return False
    heard: dict[str, Any] = {
        "contact_us": tx.now_us, "lost_us": 0, "order_seen": request.order_seen or row.order_seen,
        "boot_id": request.boot_id, "backlog_bytes": request.backlog_bytes,
    }  # fmt: skip
    tx.execute(update(attempt).where(attempt.c.id == row.id).values(**heard))
    if row.lost_us:
        its_run = adopt(tx, row, its_run)
    tx.execute(update(run).where(run.c.id == its_run.id).values(contact_us=tx.now_us))
    _follow(tx, get(tx, row.id), its_run, request)
    return True


def _note_silent_owner(tx: Tx, row: AttemptRow) -> None:
    """A replaced one was heard of: said once in the journal, by what it was last heard."""
    if row.state == AttemptState.SUPERSEDED.value and row.order_kind != OrderKind.SUPERSEDED.value:
        told = {"order_kind": OrderKind.SUPERSEDED.value, "order_us": tx.now_us, "contact_us": tx.now_us}
        tx.execute(update(attempt).where(attempt.c.id == row.id).values(**told))
        tx.emit(Event("attempt.heard_again", row.id, row.space_id, row.run_id, row.id, {"attempt": row.number}))


def adopt(tx: Tx, row: AttemptRow, its_run: runs.RunRow) -> runs.RunRow:
    """Let an attempt that was declared gone and is heard of own its run again; return the run's row."""
    tx.emit(Event("attempt.adopted", row.id, row.space_id, row.run_id, row.id, {"attempt": row.number}))
    used = runs.from_json(its_run.used, {})
    if used.get(Cause.LOST.value):  # it was not lost after all
        used[Cause.LOST.value] -= 1
        tx.execute(update(run).where(run.c.id == its_run.id).values(used=runs.to_json(used)))
    state = RunState(its_run.state)
    if state is RunState.QUEUED:
        its_run = runs.move(tx, its_run, RunState.STARTING, "run.adopted", reason="", cause="", not_before_us=0)
        return its_run
    if state is RunState.FAILED and its_run.cause == Cause.LOST.value:
        return runs.move(tx, its_run, RunState.RUNNING, "run.adopted", reason="", cause="")
    if state not in ACTIVE and row.order_kind != OrderKind.STOP.value:
        # The run was stopped, paused or held while nobody could hear: the ranks are told to leave.
        kind = OrderKind.PAUSE if state in (RunState.PAUSED, RunState.HELD) else OrderKind.STOP
        give_order(tx, row, kind, grace_s=runs.spec_of(its_run).on_preempt.grace_s)
    return its_run


def _follow(tx: Tx, row: AttemptRow, its_run: runs.RunRow, request: LeaseRequest) -> None:
    """Let attempt and run say what the supervisor says; no word of it moves a run backwards or out of `stopping`."""
    to = _PHASES.get(request.phase)
    if to is None:  # "ended": the exit report says the rest
        return
    if to is AttemptState.SAVING and row.state in (AttemptState.ASSIGNED.value, AttemptState.STARTING.value):
        row = _move(tx, row, AttemptState.RUNNING, "attempt.running", started_us=row.started_us or tx.now_us)
    if to.value != row.state and to in ATTEMPT_MOVES[AttemptState(row.state)]:
        started_us = row.started_us or (tx.now_us if to is AttemptState.RUNNING else 0)
        _move(tx, row, to, f"attempt.{to.value}", started_us=started_us)
    if its_run.state == RunState.STARTING.value and to is not AttemptState.STARTING:
        data = {"attempt": row.number}
        runs.move(tx, its_run, RunState.RUNNING, "run.running", data=data, started_us=its_run.started_us or tx.now_us)


def order_for(row: AttemptRow, seen: str) -> Order | None:
    """Return the order that the supervisor has not acted on yet."""
    if not row.order_kind or (row.order_id == seen and not row.order_withdrawn):
        return None
    if row.order_withdrawn and seen != row.order_id:
        return None  # it never began to act on it
    return Order(
        id=row.order_id, kind=row.order_kind, grace_s=row.order_grace_s, reason=row.order_reason,
        withdrawn=bool(row.order_withdrawn),
    )  # fmt: skip


def give_order(
    tx: Tx, row: AttemptRow, kind: OrderKind, *, grace_s: float, reason: str = "", for_run: str = ""
) -> None:
    """Ask the supervisor to end its ranks. The newest order counts; a weaker one never replaces a stop."""
    if row.order_kind == OrderKind.STOP.value and not row.order_withdrawn:
        return
    tx.execute(
        update(attempt).where(attempt.c.id == row.id).values(
            order_id=new_id("ord"), order_kind=kind.value, order_grace_s=grace_s, order_reason=reason,
            order_us=tx.now_us, order_for=for_run, order_withdrawn=0,
        )
    )  # fmt: skip
    data = {"attempt": row.number, "order": kind.value, "grace_s": grace_s, "for": for_run}
    tx.emit(Event("attempt.ordered", row.id, row.space_id, row.run_id, row.id, data))


def withdraw_order(tx: Tx, row: AttemptRow) -> None:
    """Take the order back; ranks that have not left yet go on."""
    tx.execute(update(attempt).where(attempt.c.id == row.id).values(order_withdrawn=1, order_for=""))
    data = {"attempt": row.number, "order": row.order_kind}
    tx.emit(Event("attempt.order_withdrawn", row.id, row.space_id, row.run_id, row.id, data))


def first_told(tx: Tx, row: AttemptRow) -> bool:
    """Note that a withdrawn order is being answered; return whether that is the first time."""
    if row.order_withdrawn != 1:
        return False
    tx.execute(update(attempt).where(attempt.c.id == row.id).values(order_withdrawn=2))
    return True


def declare_gone(tx: Tx, row: AttemptRow) -> None:
    """Note that nobody heard of the attempt for so long that another may be issued. It did not end; nobody knows."""
    tx.execute(update(attempt).where(attempt.c.id == row.id).values(lost_us=tx.now_us))
    tx.emit(
        Event(
            "attempt.gone",
            row.id,
            row.space_id,
            row.run_id,
            row.id,
            {"attempt": row.number, "contact_us": row.contact_us},
        )
    )


# --- checkpoints -----------------------------------------------------------------------------------------------------


def record_checkpoint(tx: Tx, attempt_id: str, report: CheckpointReport) -> bool:
    """Record a checkpoint whose tree is in the store; return whether it became the current one.

    The pointer moves forward only, and only for the attempt that owns the run.

    Raises:
        Conflict: `epoch_superseded`.
    """
    own = owned(tx, attempt_id, report.epoch)
    row, its_run = own.attempt, own.run
    name = report.stage or row.stage
    values = {
        "run_id": its_run.id, "attempt_id": row.id, "name": report.name, "digest": report.digest,
        "space_id": its_run.space_id, "attempt": row.number, "epoch": row.epoch, "stage": name, "step": report.step,
        "size_bytes": report.size_bytes, "created_us": report.created_us or tx.now_us, "recorded_us": tx.now_us,
    }  # fmt: skip
    made = tx.execute(
        upsert(checkpoint, values, key=["run_id", "attempt_id", "name", "digest"]).returning(checkpoint.c.name)
    )
    if made.first() is None:
        return False
    before = current_checkpoint(tx, its_run.id, name)
    moves = before is None or (before.epoch, before.step) <= (row.epoch, report.step)
    if moves:
        of_stage = (checkpoint.c.run_id == its_run.id, checkpoint.c.stage == name)
        tx.execute(update(checkpoint).where(*of_stage, checkpoint.c.current == 1).values(current=0))
        this = (
            checkpoint.c.attempt_id == row.id,
            checkpoint.c.name == report.name,
            checkpoint.c.digest == report.digest,
        )
        tx.execute(update(checkpoint).where(*of_stage, *this).values(current=1))
    runs.set_columns(tx, its_run)
    data = {"attempt": row.number, "step": report.step, "name": report.name, "digest": report.digest, "current": moves}
    tx.emit(Event("checkpoint.recorded", its_run.id, its_run.space_id, its_run.id, row.id, data))
    return moves


def current_checkpoint(tx: ReadTx, run_id: str, stage_name: str = "") -> Row[Any] | None:
    """Return the checkpoint that the next attempt of this stage starts from."""
    of_stage = (checkpoint.c.run_id == run_id, checkpoint.c.stage == stage_name, checkpoint.c.current == 1)
    return tx.one(select(checkpoint).where(*of_stage))


def checkpoint_of(tx: ReadTx, attempt_id: str, name: str, digest: str) -> Row[Any]:
    """Return one that was recorded."""
    this = (checkpoint.c.attempt_id == attempt_id, checkpoint.c.name == name, checkpoint.c.digest == digest)
    row = tx.one(select(checkpoint).where(*this))
    if row is None:
        raise NotFound("checkpoint_unknown", ref=attempt_id, which=name, steps="-")
    return row


def checkpoints(tx: ReadTx, run_id: str) -> list[Row[Any]]:
    stmt = select(checkpoint).where(checkpoint.c.run_id == run_id)
    return tx.rows(stmt.order_by(checkpoint.c.recorded_us, checkpoint.c.step))


# --- stages, outputs, end --------------------------------------------------------------------------------------------


def stages(tx: ReadTx, run_id: str) -> list[Row[Any]]:
    return tx.rows(select(stage).where(stage.c.run_id == run_id).order_by(stage.c.position))


def _set_stage(tx: Tx, run_id: str, position: int, **columns: Any) -> None:
    tx.execute(update(stage).where(stage.c.run_id == run_id, stage.c.position == position).values(**columns))


def stage_done(tx: Tx, its_run: runs.RunRow, products: dict[str, str]) -> None:
    """Note what a stage left."""
    _set_stage(tx, its_run.id, its_run.stage_index, state="done", products=runs.to_json(products))


def stage_taken(tx: Tx, its_run: runs.RunRow, position: int, products: dict[str, str]) -> None:
    """Note that an earlier run left what a stage would leave: it is done without an attempt."""
    _set_stage(tx, its_run.id, position, state="done", products=runs.to_json(products), attempt=0)


def stage_left(tx: Tx, its_run: runs.RunRow, state: str) -> None:
    """Note that the stage of this run failed, or waits for its next attempt."""
    _set_stage(tx, its_run.id, its_run.stage_index, state=state)


def stage_given(tx: Tx, run_id: str, position: int) -> None:
    """A run of its own works on a stage."""
    _set_stage(tx, run_id, position, state="running")


def stage_failed(tx: Tx, run_id: str, position: int) -> None:
    _set_stage(tx, run_id, position, state="failed")


def note_outputs(tx: Tx, row: AttemptRow, digest: str, products: dict[str, str]) -> None:
    """Remember the tree of the outputs and the stage products as reported so far."""
    known = runs.from_json(row.products, {})
    values: dict[str, Any] = {"products": runs.to_json({**known, **products})}
    if digest:
        values["outputs_digest"] = digest
    tx.execute(update(attempt).where(attempt.c.id == row.id).values(**values))


def close(tx: Tx, row: AttemptRow, report: ExitReport, cause: Cause, reason: Reason | None) -> AttemptRow:
    """Let the attempt end by the evidence of its supervisor; card-seconds run from the first rank to the last exit."""
    ended_us = min(max(report.ended_us or tx.now_us, row.created_us), tx.now_us)
    started_us = min(max(report.started_us or row.started_us or ended_us, row.created_us), ended_us)
    seconds = row.cards * (ended_us - started_us) / 1e6
    evidence = {**report.evidence, "ranks": [runs.from_json(runs.to_json(rank), {}) for rank in report.ranks]}
    data = {"cause": cause.value, "evidence": evidence, "salvaged": report.salvaged, "stop_step": report.stop_step}
    return _move(
        tx, row, AttemptState.EXITED, "attempt.exited", data=data, cause=cause.value, evidence=runs.to_json(evidence),
        reason=runs.to_json(reason) if reason else "", started_us=started_us, ended_us=ended_us, card_seconds=seconds,
        last_step=report.lost_to_step, salvaged=int(report.salvaged), lost_us=0,
        lost_steps=lost_steps(tx, row, report), contact_us=tx.now_us,
    )  # fmt: skip


def lost_steps(tx: ReadTx, row: AttemptRow, report: ExitReport) -> int:
    """Steps behind the current checkpoint, which the next attempt will do again."""
    if report.cause == Cause.DONE.value or report.lost_to_step is None:
        return 0
    current = current_checkpoint(tx, row.run_id, row.stage)
    return max(report.lost_to_step - (current.step if current else 0), 0)


def confirm_superseded(tx: Tx, row: AttemptRow, report: ExitReport) -> None:
    """Note the late exit of a replaced attempt: its processes are gone, which frees its cards; it decides nothing."""
    ended_us = min(max(report.ended_us or tx.now_us, row.created_us), tx.now_us)
    started_us = min(max(report.started_us or row.started_us or ended_us, row.created_us), ended_us)
    seconds = row.cards * (ended_us - started_us) / 1e6
    tx.execute(
        update(attempt).where(attempt.c.id == row.id).values(
            ended_us=ended_us, started_us=started_us, card_seconds=seconds, evidence=runs.to_json(report.evidence),
        )
    )  # fmt: skip
    tx.execute(update(run).where(run.c.id == row.run_id).values(card_seconds=run.c.card_seconds + seconds))
    data = {"attempt": row.number, "cause": report.cause, "evidence": report.evidence}
    tx.emit(Event("attempt.superseded_exited", row.id, row.space_id, row.run_id, row.id, data))
