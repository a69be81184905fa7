"""Frames in: the only way for points, lines, params and tags of ranks and outside runs."""

import asyncio
from typing import Any

from litestar import Request, post

from trackbed.base.errors import BadInput
from trackbed.base.ids import FileDigest
from trackbed.db import ReadTx, Tx
from trackbed.domain.scope import ActorKind, Permission, Scope
from trackbed.server.app import App
from trackbed.server.flows import outside
from trackbed.server.flows.points import keep_points
from trackbed.server.mlflow import relayed
from trackbed.server.news import tell
from trackbed.tracking import runs, runs_attempts
from trackbed.tracking.ingest import Ingested, Prepared, ingest, prepare
from trackbed.tracking.ingest_summary import Known
from trackbed.wire.series import FramesReceipt

MOST_BYTES = 80 * 2**20  # a batch of the sender is at most 1 MiB, or one frame of at most 64 MiB


@post(
    "/api/v1/runs/{run:str}/frames",
    opt={"permission": Permission.WRITE, "attempt": True},
    status_code=200,
    request_max_body_size=MOST_BYTES,
)
async def frames(request: Request[Any, Any, Any], trackbed_app: App, who: Scope, run: str) -> FramesReceipt:
    """Keep frames that are new, and answer when they are durable, item by item with a count."""
    app = trackbed_app
    row, attempt = await app.db.aread(lambda tx: _of(tx, who, run))
    body = await request.body()
    prepared = await asyncio.to_thread(prepare, body)
    if not prepared.batch.items:
        raise BadInput("frames_none", bytes=len(body))
    digests = [FileDigest(digest) for digest in prepared.digests]
    missing = (
        frozenset(await asyncio.to_thread(lambda: app.store_of(row.space_id).missing(digests)))
        if digests
        else frozenset[str]()
    )

    def work(tx: Tx, sealed: Known | None) -> tuple[runs.RunRow, Ingested]:
        job = runs.get(tx, row.id)
        child = relayed.child_of(tx, job, prepared.batch) if attempt is not None else None
        own = attempt if child is None else None
        done = _keep(tx, child or job, prepared, attempt=own, missing=missing, sealed=sealed)
        relayed.take(tx, who, child or job, done)
        return child or job, done

    into, done = await keep_points(app, work, actor=who.actor)
    tell(app, into, done)
    return done.receipt


def _of(tx: ReadTx, who: Scope, ref: str) -> tuple[runs.RunRow, int | None]:
    """Return the run and, for an attempt, the number that its frames must carry."""
    row = runs.resolve(tx, who, ref)
    outside.may_write(who, row)
    if who.actor.kind is ActorKind.ATTEMPT:
        return row, runs_attempts.get(tx, who.actor.id).number
    return row, None


def _keep(
    tx: Tx,
    row: runs.RunRow,
    prepared: Prepared,
    *,
    attempt: int | None,
    missing: frozenset[str],
    sealed: Known | None,
) -> Ingested:
    row = outside.heard(tx, row)
    done = ingest(tx, row, prepared, attempt=attempt, missing=missing, sealed=sealed)
    if done.finish is not None and attempt is None:
        said = done.finish
        outside.finish(tx, runs.get(tx, row.id), said["status"], exit_code=said["exit_code"], reason=said["reason"])
    return done


routes: list[Any] = [frames]
