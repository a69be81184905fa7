"""What supervisors say, each for its own attempt: lease, checkpoints, outputs, exit."""

import asyncio
import contextlib
from typing import Any

from litestar import post

from trackbed.base.errors import Conflict, Denied, NotFound
from trackbed.base.ids import Digest
from trackbed.db import Tx
from trackbed.domain.scope import Permission, Scope
from trackbed.server.app import App
from trackbed.server.flows import end as ending
from trackbed.server.flows import keep
from trackbed.server.flows import lease as leases
from trackbed.tracking import artifacts, fetches, keeping, runs_attempts
from trackbed.tracking.runs_views import checkpoint_view, dropped_view
from trackbed.wire.attempts import CheckpointReport, ExitReport, InputsReport, LeaseReply, LeaseRequest, OutputsReport
from trackbed.wire.runs import CheckpointView

ATTEMPT = {"permission": Permission.ATTEMPT}


def own(who: Scope, attempt_id: str) -> None:
    """Raise unless the token is that of this very attempt."""
    if who.actor.id != attempt_id:
        raise Denied("attempt_not_yours", attempt=attempt_id)


@post("/api/v1/attempts/{attempt:str}/lease", opt=ATTEMPT, status_code=200)
async def lease(trackbed_app: App, who: Scope, attempt: str, data: LeaseRequest) -> LeaseReply:
    """Renew at once; then hold the answer until there is an order, the attempt is replaced, or the time is over."""
    own(who, attempt)
    name = leases.wake_name(attempt)
    seen = trackbed_app.wake.count(name)
    reply, may_hold = await trackbed_app.db.awrite(
        lambda tx: leases.renew(trackbed_app, tx, attempt, data), actor=who.actor
    )
    hold_s = leases.wait_s(trackbed_app, data)
    if not may_hold or hold_s <= 0:
        return reply
    now = await trackbed_app.wake.until(name, seen, hold_s)
    if now == seen:
        return reply
    return await trackbed_app.db.aread(lambda tx: leases.look(trackbed_app, tx, attempt, data))


@post("/api/v1/attempts/{attempt:str}/checkpoints", opt=ATTEMPT, status_code=200)
async def checkpoint(trackbed_app: App, who: Scope, attempt: str, data: CheckpointReport) -> CheckpointView:
    """Record a durable checkpoint; the pointer moves only to what is there, and only for the owner of the run."""
    own(who, attempt)
    try:
        await _there(trackbed_app, data.digest)
    except NotFound:
        told = await trackbed_app.db.aread(lambda tx: keeping.dropped_one(tx, attempt, data.name, data.digest))
        if told is None:
            raise
        return dropped_view(told)  # said twice, and let go in between

    def work(tx: Tx) -> tuple[CheckpointView, str]:
        runs_attempts.record_checkpoint(tx, attempt, data)
        row = runs_attempts.checkpoint_of(tx, attempt, data.name, data.digest)
        return checkpoint_view(row), row.run_id

    view, run_id = await trackbed_app.db.awrite(work, actor=who.actor)
    await asyncio.to_thread(keep.prune, trackbed_app, run_id)
    return view


@post("/api/v1/attempts/{attempt:str}/inputs", opt=ATTEMPT, status_code=204)
async def inputs(trackbed_app: App, who: Scope, attempt: str, data: InputsReport) -> None:
    """Record what a node had to fetch before it could start, and how long that took."""
    own(who, attempt)

    def work(tx: Tx) -> None:
        fetches.note(tx, runs_attempts.owned(tx, attempt, data.epoch).attempt, data.node_rank, data.inputs)

    await trackbed_app.db.awrite(work, actor=who.actor)


@post("/api/v1/attempts/{attempt:str}/outputs", opt=ATTEMPT, status_code=204)
async def outputs(trackbed_app: App, who: Scope, attempt: str, data: OutputsReport) -> None:
    """Record what lay in the output folder; all of it is in the store."""
    own(who, attempt)
    for digest in [data.digest, *data.products.values()]:
        if digest:
            await _there(trackbed_app, digest)

    def work(tx: Tx) -> None:
        owned = runs_attempts.owned(tx, attempt, data.epoch)
        runs_attempts.note_outputs(tx, owned.attempt, data.digest, data.products)
        artifacts.record_outputs(tx, owned.run, owned.attempt.number, data)

    await trackbed_app.db.awrite(work, actor=who.actor)


@post("/api/v1/attempts/{attempt:str}/exit", opt=ATTEMPT, status_code=204)
async def exit_attempt(trackbed_app: App, who: Scope, attempt: str, data: ExitReport) -> None:
    """The last word. A replaced attempt's exit is noted (its cards are free now) and then refused."""
    own(who, attempt)
    ended = await asyncio.to_thread(ending.end_attempt, trackbed_app, attempt, data, actor=who.actor)
    if not ended.owner:
        raise Conflict("epoch_superseded", name=ended.ref, attempt=attempt, epoch=data.epoch, current=ended.epoch)
    with contextlib.suppress(KeyError):
        trackbed_app.wake.forget(leases.wake_name(attempt))


async def _there(app: App, digest: str) -> None:
    if not await asyncio.to_thread(app.store.has_tree, Digest(digest)):
        raise NotFound("run_tree_missing", digest=digest)


routes: list[Any] = [lease, checkpoint, inputs, outputs, exit_attempt]
