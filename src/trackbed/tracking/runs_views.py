"""Rows of runs and attempts as records of the API."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import Row

from trackbed.db import ReadTx
from trackbed.domain.states import Cause
from trackbed.tracking import anomalies, facts, fetches, keeping, runs, runs_attempts
from trackbed.tracking.facts_values import plain
from trackbed.wire.attempts import ExitReport, InputFetch
from trackbed.wire.runs import (
    AttemptView,
    CheckpointView,
    EnvironmentRecord,
    Progress,
    Reason,
    RunDetail,
    RunView,
    StageView,
    TreeFacts,
)


def view(tx: ReadTx, row: runs.RunRow, *, params: Any = None) -> RunView:
    spent = runs_attempts.spent(tx, [row.id]).get(row.id, 0.0)
    return run_view(row, params=params, spent=spent, marks=anomalies.open_kinds_of(tx, [row.id]).get(row.id, []))


def run_view(
    row: runs.RunRow,
    *,
    metrics: Mapping[str, float | str] | None = None,
    params: Any = None,
    spent: float = 0.0,
    marks: Sequence[str] = (),
) -> RunView:
    """One row of the runs table; `metrics` and `params` are the asked columns, `spent` the card-seconds not yet in it."""
    moved = row.progress_us > 0
    return RunView(
        id=row.id, ref=runs.ref_of(row), number=row.number, project=row.project, space=row.space, name=row.name,
        description=row.description, state=row.state, cause=row.cause, reason=runs.reason_of(row.reason),
        owner=row.owner, tags=runs.from_json(row.tags, []), priority=row.priority, cards=row.cards,
        outside=bool(row.outside), created_us=row.created_us, queued_us=row.queued_us, started_us=row.started_us,
        ended_us=row.ended_us, contact_us=row.contact_us, attempt=row.attempt, card_seconds=row.card_seconds + spent,
        progress=Progress(
            step=row.step, steps_total=row.steps_total, seconds_left=row.seconds_left, updated_us=row.progress_us
        ) if moved else None,
        version=row.version, metrics=dict(metrics or {}), params=dict(params or {}),
        marks=list(marks),
    )  # fmt: skip


def attempt_view(row: runs_attempts.AttemptRow, now_us: int, inputs: list[InputFetch] | None = None) -> AttemptView:
    return AttemptView(
        id=row.id, number=row.number, epoch=row.epoch, state=row.state, stage=row.stage, cause=row.cause,
        reason=runs.reason_of(row.reason), evidence=runs.from_json(row.evidence, {}),
        placement=runs.from_json(row.placement, []), created_us=row.created_us, started_us=row.started_us,
        ended_us=row.ended_us, card_seconds=runs_attempts.card_seconds(row, now_us), resumed_from_step=row.resumed_from_step,
        lost_steps=row.lost_steps, contact_us=row.contact_us, inputs=inputs or [],
    )  # fmt: skip


def checkpoint_view(row: Row[Any]) -> CheckpointView:
    return CheckpointView(
        step=row.step, name=row.name, digest=row.digest, size_bytes=row.size_bytes, attempt=row.attempt,
        state="current" if row.current else "durable", created_us=row.created_us,
    )  # fmt: skip


def dropped_view(row: Row[Any]) -> CheckpointView:
    return CheckpointView(
        step=row.step, name=row.name, digest=row.digest, size_bytes=row.size_bytes, attempt=row.attempt,
        state="dropped", created_us=row.created_us,
    )  # fmt: skip


def stage_view(row: Row[Any]) -> StageView:
    return StageView(name=row.name, state=row.state, products=runs.from_json(row.products, {}), attempt=row.attempt)


def detail(tx: ReadTx, row: runs.RunRow) -> RunDetail:
    """Everything that this part of the room knows of a run; routes add artifacts, metric keys and models."""
    fetched = fetches.of_run(tx, row.id)
    return RunDetail(
        run=view(tx, row, params=plain(facts.params_of(tx, row.id))),
        spec=runs.spec_of(row),
        tree=tree_of(row),
        environment=environment_of(row),
        attempts=[attempt_view(found, tx.now_us, fetched.get(found.id)) for found in runs_attempts.of_run(tx, row.id)],
        stages=[stage_view(found) for found in runs_attempts.stages(tx, row.id)],
        checkpoints=[checkpoint_view(found) for found in runs_attempts.checkpoints(tx, row.id)],
        checkpoints_dropped=[dropped_view(found) for found in keeping.dropped_of(tx, row.id)],
        summary=runs.from_json(row.summary, {}),
        reproduces=row.reproduces,
        nondeterminism=runs.from_json(row.nondeterminism, []),
        anomalies=anomalies.anomalies_of(tx, row.id).anomalies,
    )


def tree_of(row: runs.RunRow) -> TreeFacts | None:
    return msgspec.json.decode(row.tree, type=TreeFacts) if row.tree else None


def environment_of(row: runs.RunRow) -> EnvironmentRecord | None:
    return msgspec.json.decode(row.environment, type=EnvironmentRecord) if row.environment else None


_ORDERED = frozenset({Cause.LIMIT.value, Cause.STOPPED.value, Cause.PAUSED.value, Cause.PREEMPTED.value})


def why_ended(report: ExitReport) -> Reason | None:
    """Name what the evidence shows first: how the first rank that went wrong ended, else what could not be prepared or kept."""
    if report.cause in _ORDERED:
        return None  # the signal was ours
    first = report.evidence.get("first_rank")
    wrong = [rank for rank in report.ranks if rank.signal or rank.exit_code]
    wrong.sort(key=lambda rank: (rank.rank != first, rank.rank))
    if not wrong:
        return _why_unkept(report.evidence)
    rank = wrong[0]
    if rank.signal:
        return Reason(code="rank_signal", params={"rank": rank.rank, "signal": rank.signal})
    return Reason(code="rank_exit", params={"rank": rank.rank, "code": rank.exit_code})


def _why_unkept(evidence: Mapping[str, Any]) -> Reason | None:
    if evidence.get("code") in ("environment_drift", "environment_gone"):
        return Reason(code=evidence["code"], params=evidence.get("params", {}))
    if "code" in evidence:
        return Reason(code="not_prepared", params={"what": evidence.get("message") or evidence["code"]})
    if "missing_products" in evidence:
        products = ", ".join(map(str, evidence["missing_products"]))
        return Reason(code="products_not_left", params={"products": products})
    for kept in ("outputs_not_kept", "checkpoint_not_kept"):
        if kept in evidence:
            return Reason(code=kept, params={"what": evidence[kept]})
    if evidence.get("folder") == "missing":
        return Reason(code="folder_missing")
    return None
