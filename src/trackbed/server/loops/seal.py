"""seal: points of runs that ended, and of long ones that go on, move from the database into objects of the store.

Reading, packing and storing happen here, off the writer lane; what the lane is given is one row and then deletions of at most
2 MiB, all of the bulk class, so that control never waits for them.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

from trackbed.base import faults
from trackbed.base.errors import Conflict
from trackbed.base.ids import FileDigest
from trackbed.db import ReadTx, Tx
from trackbed.domain.scope import Actor, ActorKind
from trackbed.server.app import App
from trackbed.tracking import metrics_sealing as sealing
from trackbed.tracking import runs
from trackbed.tracking.metrics_sealed import seals_of

ACTOR = Actor(ActorKind.SYSTEM, "seal", "seal")
BATCH_BYTES = 16 * 2**20  # objects that are put into the store together
BATCH = 64
LOOK_AGAIN_S = 600.0  # between looks at all runs, for spools that came long after the end
log = logging.getLogger("trackbed.seal")


@dataclass
class Sealer:
    """Remembers which runs were going on (those that are so no longer have just ended), and whose frames may go soon."""

    going: set[str] = field(default_factory=set[str])
    ended: dict[str, float] = field(default_factory=dict[str, float])
    looked_s: float | None = None
    sweeps: dict[str, float] = field(default_factory=dict[str, float])  # run → not before

    def tick(self, app: App) -> None:
        now_s = app.clock.monotonic_s()
        if self.looked_s is None:  # a former life was cut short
            self.sweeps = dict.fromkeys(app.db.read(sealing.unswept), now_s)
        for run_id in [run_id for run_id, at_s in self.sweeps.items() if at_s <= now_s]:
            if not app.stopping.is_set():
                _sweep(app, run_id)
                del self.sweeps[run_id]
        for run_id in self._due(app):
            if app.stopping.is_set():
                return
            while seal_some(app, [run_id]) and not app.stopping.is_set():
                self.sweeps.setdefault(run_id, now_s + sealing.LINGER_S)
            merge_some(app, run_id)

    def _due(self, app: App) -> list[str]:
        now_s = app.clock.monotonic_s()
        if self.looked_s is None or now_s - self.looked_s >= LOOK_AGAIN_S:
            self.looked_s = now_s
            self.going = set(app.db.read(sealing.going))
            return app.db.read(sealing.due)
        before, self.going = self.going, set(app.db.read(sealing.going))
        self.ended |= dict.fromkeys(before - self.going, now_s)
        asked = sorted(self.going | self.ended.keys())
        rested = now_s - 2 * sealing.REST_S
        self.ended = {run_id: at_s for run_id, at_s in self.ended.items() if at_s > rested}
        return app.db.read(lambda tx: sealing.due(tx, asked))


def seal_some(app: App, run_ids: list[str]) -> list[sealing.Sealing]:
    """Seal at most an object of each run; return what was sealed."""
    done: list[sealing.Sealing] = []
    for batch in _batches(app, run_ids):
        done += _store(app, batch)
    return done


def merge_some(app: App, run_id: str) -> None:
    """Make few objects out of many small ones."""
    while small := sealing.small_ones(app.db.read(lambda tx: seals_of(tx, run_id))):
        if app.stopping.is_set() or not _store(app, [sealing.merge(run_id, app.curves.reader, small)]):
            return


def _batches(app: App, run_ids: list[str]) -> Iterator[list[sealing.Sealing]]:
    batch: list[sealing.Sealing] = []
    for run_id in run_ids:
        loose = app.db.read(lambda tx, one=run_id: _take(tx, one))
        if loose is None:
            continue
        batch.append(sealing.build(run_id, loose))
        if len(batch) >= BATCH or sum(len(one.body) for one in batch) >= BATCH_BYTES:
            yield batch
            batch = []
    if batch:
        yield batch


def _take(tx: ReadTx, run_id: str) -> sealing.Loose | None:
    return sealing.take(tx, run_id, most=sealing.OBJECT_POINTS) if sealing.due(tx, [run_id]) else None


def _store(app: App, batch: list[sealing.Sealing]) -> list[sealing.Sealing]:
    """Blobs first, then rows; then the frames may go."""
    faults.point("seal.blob")
    spaces = app.db.read(lambda tx: {one.run_id: str(runs.get(tx, one.run_id).space_id) for one in batch})
    for space_id in dict.fromkeys(spaces.values()):
        mine = [(FileDigest(one.digest), one.body) for one in batch if spaces[one.run_id] == space_id]
        app.store_of(space_id).put_blobs(mine)
    faults.point("seal.row")

    def keep(tx: Tx) -> list[sealing.Sealing]:
        kept: list[sealing.Sealing] = []
        for one in batch:
            try:
                sealing.keep(tx, one)
            except Conflict:
                log.info("points of %s were sealed by another server meanwhile", one.run_id)
            else:
                kept.append(one)
        return kept

    done = app.db.write(keep, actor=ACTOR, lane="bulk")
    faults.point("seal.sweep")
    return done


def _sweep(app: App, run_id: str) -> None:
    while app.db.write(lambda tx: sealing.sweep(tx, run_id, sealing.SLICE_BYTES), actor=ACTOR, lane="bulk"):
        faults.point("seal.swept")
