"""start: cards and an epoch in one transaction, then the engine. Idempotent by attempt id.

A crash between the two leaves an `assigned` attempt that no engine has seen; the watch loop hands it over again.
"""

import logging
from typing import Any

import msgspec

from trackbed.access import issue_attempt_token
from trackbed.base.entropy import new_id
from trackbed.base.errors import TrackbedError
from trackbed.db import ReadTx, Tx
from trackbed.domain.scope import Actor
from trackbed.scheduling import holds
from trackbed.scheduling.rules import Start
from trackbed.server.app import App
from trackbed.server.flows import environments, stages
from trackbed.sources import packs_sql
from trackbed.tracking import runs, runs_attempts, runs_views
from trackbed.tracking.runs_attempts import Owned
from trackbed.wire.attempts import Assignment, LeaseSettings, NodeSlot, ResumePin
from trackbed.wire.spec import Resources, Spec, Stage
from trackbed.workflow.command import render_command
from trackbed.workflow.graph import data_for, launcher_for, params_for, resources_for, tree_for

log = logging.getLogger("trackbed.start")


def start(app: App, planned: Start, nodes: dict[str, NodeSlot], *, actor: Actor) -> Assignment:
    """Issue an attempt on the planned cards and hand it to the engine.

    Raises:
        Conflict: `run_moved` or `card_held`: the world moved since it was looked at; nothing was changed.
    """
    attempt_id = new_id("att")
    assignment = app.db.write(lambda tx: issue(app, tx, planned, nodes, attempt_id), actor=actor)
    launch(app, assignment, actor=actor)
    return assignment


def issue(app: App, tx: Tx, planned: Start, nodes: dict[str, NodeSlot], attempt_id: str) -> Assignment:
    """Take the cards and the next epoch; return what the supervisor is told."""
    row = runs.get(tx, planned.run_id)
    cards = planned.by_node()
    placement = _placement(cards)
    current = runs_attempts.current_checkpoint(tx, row.id, stage_name(row))
    resume = ResumePin(name=current.name, step=current.step, digest=current.digest) if current else None
    holds.take(tx, holds.Holder(attempt_id, row.id, row.space_id), cards)
    if row.attempt_id:  # of one that was declared gone: they are unknown until somebody hears of it
        holds.set_unknown(tx, row.attempt_id, unknown=True)
    owned = runs_attempts.begin(tx, row, attempt_id, placement, resume=resume)
    slots = [_slot(nodes, node, indexes) for node, indexes in cards.items()]
    return assignment_of(app, tx, owned, slots, token=issue_attempt_token(tx, attempt_id, row.id, row.space_id))


def reissue(app: App, tx: Tx, attempt_id: str, nodes: dict[str, NodeSlot]) -> Assignment | None:
    """Return the assignment of an attempt that no engine has seen, with a fresh token; None if it was replaced."""
    attempt = runs_attempts.get(tx, attempt_id)
    row = runs.get(tx, attempt.run_id)
    if row.epoch != attempt.epoch or attempt.state != "assigned":
        return None
    placement = runs.from_json(attempt.placement, [])
    slots = [_slot(nodes, slot["node"], slot["cards"]) for slot in placement]
    token = issue_attempt_token(tx, attempt_id, row.id, row.space_id)
    return assignment_of(app, tx, Owned(attempt, row), slots, token=token)


def launch(app: App, assignment: Assignment, *, actor: Actor) -> bool:
    """Hand an attempt to the engine; False where it would not take it, which the watch loop tries again."""
    try:
        app.engine.submit(assignment)
    except (TrackbedError, OSError) as fault:
        log.warning("the engine did not take attempt %s of %s: %s", assignment.attempt_id, assignment.run_ref, fault)
        return False
    app.db.write(lambda tx: runs_attempts.mark_submitted(tx, assignment.attempt_id), actor=actor)
    return True


def stage_name(row: runs.RunRow) -> str:
    stage = stage_of(row)
    return stage.name if stage else ""


def stage_of(row: runs.RunRow) -> Stage | None:
    """The stage that the next attempt of the run works on; None for a run without stages."""
    spec = runs.spec_of(row)
    return spec.stages[row.stage_index] if spec.stages else None


def resources_of(row: runs.RunRow) -> Resources:
    """What the next attempt of the run takes."""
    return resources_for(runs.spec_of(row), stage_of(row))


def _placement(cards: dict[str, list[int]]) -> list[dict[str, Any]]:
    first = 0
    placement: list[dict[str, Any]] = []
    for node, indexes in cards.items():
        count = max(len(indexes), 1)
        placement.append({"node": node, "cards": indexes, "ranks": list(range(first, first + count))})
        first += count
    return placement


def _slot(nodes: dict[str, NodeSlot], node: str, indexes: list[int]) -> NodeSlot:
    return msgspec.structs.replace(nodes.get(node) or NodeSlot(node=node), cards=indexes)


def assignment_of(app: App, tx: ReadTx, owned: Owned, slots: list[NodeSlot], *, token: str) -> Assignment:
    """Everything that the supervisor needs, from the record alone."""
    row, attempt = owned.run, owned.attempt
    spec = runs.spec_of(row)
    stage = spec.stages[attempt.stage_index] if spec.stages else None
    params = params_for(spec, stage)
    program = stage or spec
    given = stage and msgspec.structs.replace(
        stage, params={name: value for name, value in stage.params.items() if name in params}
    )
    environment = runs_views.environment_of(row)
    pack = (
        packs_sql.ready_tree(tx, row.environment_digest, environments.pool_platform()) if row.environment_digest else ""
    )
    resume = attempt.resume_digest and ResumePin(
        name=attempt.resume_name, step=attempt.resumed_from_step, digest=attempt.resume_digest
    )
    times = app.settings.lease
    return Assignment(
        attempt_id=attempt.id, number=attempt.number, epoch=attempt.epoch, run_id=row.id, run_ref=runs.ref_of(row),
        project=row.project, project_id=row.project_id, run_name=row.name, space=row.space, owner=row.owner, server_url=app.url, token=token, nodes=slots,
        store_url=app.settings.store_url, stage=given,
        inputs=stages.inputs_of(stage, stages.products_of(tx, row)) if stage else {},
        command=render_command(program.run, params) if program.run else "", recipe=program.recipe,
        launcher=launcher_for(spec, stage), cpus_per_card=resources_for(spec, stage).cpus_per_card, env=spec.env,
        params=params, seed=spec.seed, determinism=spec.determinism, tree=tree_for(stage, row.tree_digest),
        environment=msgspec.to_builtins(environment) if environment else {}, pack=pack,
        environment_drift="flag" if app.settings.environment_drift == "flag" else "refuse", data=data_for(spec, stage),
        from_=spec.from_,
        resume=resume or None, checkpoint=spec.checkpoint, on_preempt=spec.on_preempt, hang=spec.hang, on_rank_loss=spec.on_rank_loss,
        time_limit_s=resources_for(spec, stage).time_limit_s, trial_steps=spec.trial.steps if spec.trial else 0,
        lease=LeaseSettings(
            heartbeat_s=times.heartbeat_s, lease_s=times.lease_s, fencing=spec.fencing,
            orphan_limit_s=spec.orphan_limit_s if _asked(spec) else times.orphan_limit_s,
        ),
    )  # fmt: skip


def _asked(spec: Spec) -> bool:
    return spec.orphan_limit_s != Spec().orphan_limit_s
