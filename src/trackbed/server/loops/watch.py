"""watch: compare what the record says of attempts with what the engine sees, and act on the difference.

A dead supervisor is salvaged by evidence at once. An attempt that nobody hears of is declared gone only when its lease
is over in time that this server served, and the engine cannot see it either.
"""

import logging
from dataclasses import dataclass, field
from typing import Any

from trackbed.base.errors import TrackbedError
from trackbed.clusters.engine import Observation, Phase
from trackbed.db import ReadTx
from trackbed.domain.lease import Contact, Silence, judge
from trackbed.domain.scope import Actor, ActorKind
from trackbed.domain.states import AttemptState, Cause
from trackbed.server.app import App
from trackbed.server.flows import end, facts, start
from trackbed.tracking import runs, runs_attempts
from trackbed.wire.attempts import ExitReport

ACTOR = Actor(ActorKind.SYSTEM, "watch", "watch")
LAUNCH_S = 10.0  # what the planner is just handing over is not handed over again
PAUSE_S = (1.0, 60.0)  # between two salvages of one attempt: first and longest
log = logging.getLogger("trackbed.watch")


@dataclass
class _Tries:
    count: int = 0
    next_s: float = 0.0


@dataclass
class Watch:
    """Remembers silences and tries; everything that matters is in the database."""

    silence: Silence = field(default_factory=Silence)
    tries: dict[str, _Tries] = field(default_factory=dict[str, _Tries])

    def tick(self, app: App) -> None:
        live, replaced = app.db.read(lambda tx: (_watched(tx), runs_attempts.superseded(tx)))
        now_s = app.clock.monotonic_s()
        silent = self.silence.observe(now_s, {row.id: row.contact_us for row in live})
        rows = {row.id: row for row in [*live, *replaced]}
        self.tries = {attempt: tries for attempt, tries in self.tries.items() if attempt in rows}
        if not rows:
            return
        for seen in app.engine.observe(list(rows)):
            row = rows[seen.attempt_id]
            fresh = row.created_us >= app.started_us and app.clock.now_us() < row.created_us + int(LAUNCH_S * 1e6)
            action = decide(row, seen, judge(silent.get(row.id, 0.0), app.settings.lease), fresh=fresh)
            self._do(app, action, row, now_s)

    def _do(self, app: App, action: str, row: Any, now_s: float) -> None:
        tries = self.tries.setdefault(row.id, _Tries())
        if not action or (action != "gone" and now_s < tries.next_s):
            return
        tries.count += 1
        tries.next_s = now_s + min(PAUSE_S[0] * 2 ** min(tries.count - 1, 10), PAUSE_S[1])
        try:
            _ACTIONS[action](app, row)
        except (TrackbedError, OSError) as fault:
            log.warning("%s of attempt %s failed: %s", action, row.id, fault)


def _watched(tx: ReadTx) -> list[runs_attempts.AttemptRow]:
    """Live attempts of submitted runs; those of outside runs have no engine."""
    return [row for row in runs_attempts.live(tx) if row.node]


def decide(row: Any, seen: Observation, contact: Contact, *, fresh: bool = False) -> str:
    """Return what to do about an attempt: launch, salvage, gone, vanished, or nothing. Pure.

    `fresh`: this server issued it a moment ago and may be handing it over right now.
    """
    if seen.phase is Phase.LOST:
        missing = seen.evidence.get("folder") == "missing"
        if missing and row.state == AttemptState.ASSIGNED.value and not row.lost_us:
            return "" if fresh else "launch"
        if contact is Contact.GONE and not row.lost_us and row.state != AttemptState.SUPERSEDED.value:
            return "gone"
        if missing and seen.evidence.get("alive") is False:
            return "vanished"
        return "" if missing else "salvage"
    if seen.phase is Phase.EXITED and contact is Contact.GONE and not row.lost_us:
        return "gone"  # its last word was answered by a record that we do not have
    return ""


def _launch(app: App, row: Any) -> None:
    nodes = facts.slots_of(app.engine.inventory())
    assignment = app.db.write(lambda tx: start.reissue(app, tx, row.id, nodes), actor=ACTOR)
    if assignment is not None:
        start.launch(app, assignment, actor=ACTOR)


def _salvage(app: App, row: Any) -> None:
    log.info("the supervisor of attempt %s is dead; its last work is done by another", row.id)
    app.engine.salvage(row.id)


def _gone(app: App, row: Any) -> None:
    log.warning("attempt %s was not heard of for too long; it is declared gone", row.id)
    app.db.write(lambda tx: end.gone(app, tx, row.id), actor=ACTOR)


def _vanished(app: App, row: Any) -> None:
    """Its folder was removed and no process of it runs: that is an exit, and nobody else can report it."""
    log.warning("the folder of attempt %s was removed and none of its processes runs", row.id)
    told = ExitReport(
        epoch=row.epoch, cause=Cause.LOST.value, evidence={"folder": "missing"}, ended_us=app.clock.now_us(), salvaged=True
    )  # fmt: skip
    end.end_attempt(app, row.id, told, actor=ACTOR)


_ACTIONS = {"launch": _launch, "salvage": _salvage, "gone": _gone, "vanished": _vanished}


def adopt(app: App) -> int:
    """At the start of a server: say in the log which attempts go on without it. Nothing is moved."""
    live = app.db.read(_watched)
    for row in live:
        its_run = app.db.read(lambda tx, row=row: runs.get(tx, row.run_id))
        log.info("attempt %d of %s goes on (%s)", row.number, runs.ref_of(its_run), row.state)
    return len(live)
