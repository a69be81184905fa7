"""The store itself: a supervisor's right to use it directly, and an admin's upkeep."""

import asyncio
import dataclasses
import time
from typing import Any

from litestar import get, post, put

from trackbed.base.errors import BadInput, Conflict
from trackbed.db import Tx
from trackbed.domain.events import Event
from trackbed.domain.scope import Permission, Scope
from trackbed.server.app import App
from trackbed.server.flows import upkeep
from trackbed.server.flows.collect import collect_store
from trackbed.server.routes.attempts import own
from trackbed.storage.backends.keys import S3Keys
from trackbed.storage.chunks import ChunkStore
from trackbed.storage.domains import domain_url
from trackbed.storage.verify import verify
from trackbed.tracking import runs_attempts
from trackbed.wire.store import (
    BrokenView,
    CollectReply,
    CollectRequest,
    S3Grant,
    StoreGrant,
    StoreSettings,
    StoreView,
    VerifyReply,
    VerifyRequest,
)

ADMIN = {"permission": Permission.ADMIN}
SIGNED_IN = {"permission": Permission.SIGNED_IN}
GRANT_S = 3600.0


@get("/api/v1/attempts/{attempt:str}/grant", opt={"permission": Permission.ATTEMPT})
async def grant(trackbed_app: App, who: Scope, attempt: str) -> StoreGrant:
    """Let the supervisor of a live attempt read and write the store directly for an hour; each time is on record."""
    own(who, attempt)

    def work(tx: Tx) -> str:
        row = runs_attempts.get(tx, attempt)
        data = {"attempt": row.number, "seconds": int(GRANT_S)}
        tx.emit(Event("attempt.store_granted", row.id, row.space_id, row.run_id, row.id, data))
        return str(row.space_id)

    space_id = await trackbed_app.db.awrite(work, actor=who.actor)
    return await asyncio.to_thread(_grant, trackbed_app, space_id)


@get("/api/v1/store", opt=SIGNED_IN)
async def store_view(trackbed_app: App) -> StoreView:
    """The store: where, how full, hours left, what collecting did last and does next."""
    return await trackbed_app.db.aread(lambda tx: upkeep.view(trackbed_app, tx))


@put("/api/v1/store/settings", opt=ADMIN)
async def set_settings(trackbed_app: App, who: Scope, data: StoreSettings) -> StoreSettings:
    """Change how the store is looked after; all fields, those left out get their defaults."""
    made = await trackbed_app.db.awrite(lambda tx: upkeep.set_settings(tx, data), actor=who.actor)
    trackbed_app.wake.set("upkeep")
    return made


@post("/api/v1/store/verify", opt=ADMIN, status_code=200)
async def verify_store(trackbed_app: App, data: VerifyRequest) -> VerifyReply:
    """Read the store through; nothing is changed."""
    if not 0 <= data.share <= 1:
        raise BadInput("storage_share_bad", share=data.share)
    stores = await asyncio.to_thread(trackbed_app.chunk_stores)
    if not stores:
        raise Conflict("storage_not_collected")
    total = VerifyReply(clean=True)
    for store in stores.values():
        report = await asyncio.to_thread(verify, store, share=data.share)
        told = dataclasses.asdict(report)
        told["broken"] = [BrokenView(what=one.what, code=one.code, why=one.why) for one in report.broken]
        total = total.plus(VerifyReply(clean=report.clean, **told))
    return total


@post("/api/v1/store/gc", opt=ADMIN, status_code=200)
async def collect(trackbed_app: App, who: Scope, data: CollectRequest) -> CollectReply:
    """Collect what nothing names, or tell what would be."""
    if data.grace_s < 0:
        raise BadInput("storage_grace_bad", grace=data.grace_s)
    if not await trackbed_app.db.awrite(lambda tx: upkeep.lead(tx, lasts_s=upkeep.WORK_S), actor=who.actor):
        raise Conflict("storage_gc_running", where=trackbed_app.settings.store_url)
    begun_s = time.monotonic()
    report = await asyncio.to_thread(collect_store, trackbed_app, data)
    seconds = time.monotonic() - begun_s
    await trackbed_app.db.awrite(lambda tx: upkeep.note_gc(tx, report, seconds=seconds), actor=who.actor)
    return report


def _grant(app: App, space_id: str) -> StoreGrant:
    """The keys of the one domain of a space."""
    store = app.domains.own(space_id) if app.domains is not None else app.store
    if not isinstance(store, ChunkStore):
        return StoreGrant(url=app.settings.store_url, expires_s=GRANT_S)
    domain = app.domains.id_of(space_id) if app.domains is not None else ""
    keys, s3 = store.keys, S3Keys.from_environment() if app.settings.store_url.startswith("s3:") else None
    return StoreGrant(
        url=domain_url(app.settings.store_url, domain),
        store_id=keys.store_id.hex(),
        secrets={str(generation): secret.hex() for generation, secret in keys.secrets().items()},
        s3=S3Grant(key_id=s3.key_id, secret=s3.secret, token=s3.token) if s3 else None,
        expires_s=GRANT_S,
        rate=app.settings.store_rate,
    )


routes: list[Any] = [grant, store_view, set_settings, verify_store, collect]
