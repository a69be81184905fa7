"""upkeep: measure the disk of the store, free what runs let go, collect when it is time. One server of all does it.

The database says who (a lease), the store itself keeps two collections apart (a lock object). Marking reads every manifest:
it takes at most a tenth of the time of this thread, whatever is dropped.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row

from trackbed.base.errors import TrackbedError
from trackbed.base.ids import Digest
from trackbed.db import Tx
from trackbed.domain.events import Event
from trackbed.domain.scope import Actor, ActorKind
from trackbed.server.app import App
from trackbed.server.flows import upkeep
from trackbed.server.flows.collect import collect_store, named
from trackbed.storage.chunks import ChunkStore
from trackbed.storage.release import RELEASE_GRACE_S, ReleaseReport, release
from trackbed.tracking import keeping
from trackbed.wire.store import CollectReply, CollectRequest

ACTOR = Actor(ActorKind.SYSTEM, "upkeep", "upkeep")
EVERY_S = 30.0
LEASE_S = 120.0
MEASURE_S = 300.0
SHARE = 10  # a release of one minute is followed by ten of pause
log = logging.getLogger("trackbed.upkeep")


@dataclass
class Upkeep:
    """Remembers when it measured and released; everything that matters is in the database and in the store."""

    measured_s: float = float("-inf")
    release_s: float = float("-inf")
    grace_s: float = RELEASE_GRACE_S

    def tick(self, app: App) -> None:
        if not app.db.write(lambda tx: upkeep.lead(tx, lasts_s=LEASE_S), actor=ACTOR):
            return
        now_s = app.clock.monotonic_s()
        if now_s - self.measured_s >= MEASURE_S:
            self.measured_s = now_s
            self.measure(app)
        if not app.chunk_stores():
            return
        if now_s >= self.release_s and app.db.read(keeping.waiting):
            self.release(app)
        if app.db.read(upkeep.gc_due):
            self.collect(app)

    def measure(self, app: App) -> None:
        asked = app.db.read(upkeep.settings)
        try:
            room = upkeep.room_of(app, asked)
        except (TrackbedError, OSError) as fault:
            log.warning("the place of the store was not measured: %s", fault)
            return
        app.db.write(lambda tx: (upkeep.begin_counting(tx), upkeep.note_room(tx, room)), actor=ACTOR)

    def release(self, app: App) -> ReleaseReport | None:
        """Free the private packs of dropped checkpoints: marked now, gone after the short grace."""
        begun_s = app.clock.monotonic_s()
        self._hold(app)
        report = ReleaseReport()
        try:
            for store, digests in _by_domain(app, app.db.read(keeping.waiting)):
                report += release(store, digests, lambda store=store: named(app, store), grace_s=self.grace_s)
        except (TrackbedError, OSError) as fault:
            log.warning("dropped checkpoints were not freed yet: %s", fault)
            self.release_s = app.clock.monotonic_s() + self.grace_s
            return None
        lasted_s = app.clock.monotonic_s() - begun_s
        self.release_s = app.clock.monotonic_s() + max(self.grace_s if report.waiting else 0.0, SHARE * lasted_s)

        def work(tx: Tx) -> None:
            keeping.freed(tx, report.done)
            if report.packs_freed:
                data = {"packs": report.packs_freed, "bytes": report.bytes_freed, "checkpoints": len(report.done)}
                tx.emit(Event("store.checkpoints_freed", "store", data=data))

        app.db.write(work, actor=ACTOR)
        return report

    def collect(self, app: App) -> None:
        asked = app.db.read(upkeep.settings)
        begun_s = app.clock.monotonic_s()
        self._hold(app)
        report: CollectReply | None = None
        failed = why = ""
        try:
            report = collect_store(app, CollectRequest(dry_run=asked.gc_dry_run, grace_s=asked.gc_grace_s))
        except TrackbedError as fault:
            failed, why = fault.code, fault.text()
        except OSError as fault:
            failed, why = "storage_io", str(fault)
        if failed:
            log.warning("the store was not collected: %s", why)
        seconds = app.clock.monotonic_s() - begun_s
        app.db.write(lambda tx: upkeep.note_gc(tx, report, seconds=seconds, failed=failed, why=why), actor=ACTOR)

    def _hold(self, app: App) -> None:
        app.db.write(lambda tx: upkeep.lead(tx, lasts_s=upkeep.WORK_S), actor=ACTOR)


def _by_domain(app: App, rows: list[Row[Any]]) -> Iterator[tuple[ChunkStore, list[Digest]]]:
    """Dropped checkpoints with the store that they lie in."""
    found: dict[int, tuple[ChunkStore, list[Digest]]] = {}
    for row in rows:
        store = app.domains.own(row.space_id) if app.domains is not None else app.chunk_stores()[""]
        found.setdefault(id(store), (store, []))[1].append(Digest(row.digest))
    yield from found.values()
