"""notice: look at what runs have said since the last tick, and at the clock of those that say nothing.

Within two seconds of its arrival a NaN, a spike or a slow step is on the record. Looking happens here, off the writer
lane and away from the senders; a run whose frames come faster than they can be looked at is caught up slice by slice.
"""

import logging
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import func, select

from trackbed.db import ReadTx, Tx
from trackbed.domain.scope import Actor, ActorKind
from trackbed.domain.states import ACTIVE, RunState
from trackbed.server.app import App
from trackbed.tracking import anomalies, runs
from trackbed.tracking.anomalies import Noticed, Seen
from trackbed.tracking.ingest_tables import tail
from trackbed.tracking.runs_tables import run

ACTOR = Actor(ActorKind.SYSTEM, "notice", "notice")
STORE_EVERY_S = 5.0  # a state without news is written this often
ALL_EVERY_S = 30.0  # between two looks for runs that are over and whose frames came late
AGAIN_EVERY_S = 60.0  # between two looks at a run that could not be looked at
YOUNG_US = 3600 * 1_000_000
log = logging.getLogger("trackbed.notice")
_ACTIVE = [state.value for state in ACTIVE]


@dataclass
class _Known:
    stored: int  # the position in the database
    pos: int
    seen: Seen
    stored_s: float = 0.0


@dataclass
class Notice:
    """Remembers states between ticks; each is stored with its position, so nothing is lost with this process."""

    known: dict[str, _Known] = field(default_factory=dict[str, _Known])
    all_s: float = -ALL_EVERY_S
    again_s: dict[str, float] = field(default_factory=dict[str, float])

    def tick(self, app: App) -> None:
        now_s = app.clock.monotonic_s()
        everything = now_s - self.all_s >= ALL_EVERY_S
        if everything:
            self.all_s = now_s
        known = list(self.known)
        rows = app.db.read(lambda tx: _candidates(tx, known, everything=everything))
        for row in rows:
            if now_s < self.again_s.get(row.id, 0.0):
                continue
            try:
                self._look(app, row, now_s)
                self.again_s.pop(row.id, None)
            except Exception:  # a run that cannot be looked at must not keep the others from being looked at
                self.known.pop(row.id, None)  # what is stored is what counts
                self.again_s[row.id] = now_s + AGAIN_EVERY_S
                log.exception("run %s could not be looked at; again in %d s", row.id, AGAIN_EVERY_S)
                continue
            if row.state not in _ACTIVE:
                self.known.pop(row.id, None)

    def _look(self, app: App, row: Any, now_s: float) -> None:
        known = self.known.get(row.id)
        if known is None:
            pos, seen = app.db.read(lambda tx: anomalies.load(tx, row.id))
            known = self.known[row.id] = _Known(pos, pos, seen, now_s)
        found: list[Noticed] = []
        now_us = app.clock.now_us()
        if (row.frames or 0) > known.pos:
            batch = app.db.read(lambda tx: anomalies.fresh(tx, row.id, known.pos, row.frames))
            found.append(anomalies.look(known.seen, batch, now_us))
            known.pos = batch.pos
        silent = not row.outside and now_us - row.contact_us > app.settings.lease.suspect_s * 1e6
        active = row.state == RunState.RUNNING.value
        found.append(anomalies.look_at_clock(known.seen, now_us, since_us=app.started_us, active=active, silent=silent))
        due = now_s - known.stored_s >= STORE_EVERY_S or row.state not in _ACTIVE
        if any(found) or (due and known.pos > known.stored):
            self._store(app, row, known, found, now_s)

    def _store(self, app: App, row: Any, known: _Known, found: list[Noticed], now_s: float) -> None:
        def work(tx: Tx) -> bool:
            return anomalies.keep(tx, runs.get(tx, row.id), known.stored, known.pos, known.seen, found)

        if app.db.write(work, actor=ACTOR):
            known.stored, known.stored_s = known.pos, now_s
        else:
            self.known.pop(row.id, None)  # another server looks after it: take up what it has stored


def _candidates(tx: ReadTx, known: list[str], *, everything: bool) -> list[Any]:
    """Return active runs and those that were a moment ago; with `everything` also those that are over and left something.

    What may be left: frames that came late and that nobody has looked at, a stall that is marked as open.
    """
    joined = run.outerjoin(tail, tail.c.run_id == run.c.id)
    columns = select(run.c.id, run.c.state, run.c.outside, run.c.contact_us, tail.c.frames).select_from(joined)
    found = {row.id: row for row in tx.rows(columns.where(run.c.state.in_(_ACTIVE)))}
    ended = [run_id for run_id in known if run_id not in found]
    for at in range(0, len(ended), 500):
        found |= {row.id: row for row in tx.rows(columns.where(run.c.id.in_(ended[at : at + 500])))}
    looked, open_ = anomalies.watched, anomalies.anomaly
    unseen = columns.outerjoin(looked, looked.c.run_id == run.c.id).where(
        tail.c.frames > func.coalesce(looked.c.pos, 0)
    )
    young = run.c.created_us >= tx.now_us - YOUNG_US  # it may have begun and ended between two ticks
    found |= {row.id: row for row in tx.rows(unseen if everything else unseen.where(young))}
    if everything:
        stalled = select(open_.c.run_id).where(open_.c.kind == anomalies.STALLED, open_.c.closed_us == 0)
        found |= {row.id: row for row in tx.rows(columns.where(run.c.id.in_(stalled)))}
    return list(found.values())
