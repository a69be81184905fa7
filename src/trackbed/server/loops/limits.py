"""limits: what must not last for ever. Time limits, graces that are over, outside runs that fell silent."""

import logging
from dataclasses import dataclass, field
from typing import Any

from trackbed.base.errors import TrackbedError
from trackbed.db import ReadTx
from trackbed.domain.scope import Actor, ActorKind
from trackbed.domain.states import OrderKind
from trackbed.server.app import App
from trackbed.server.flows import outside, verbs
from trackbed.server.flows.start import resources_of
from trackbed.tracking import runs, runs_attempts

ACTOR = Actor(ActorKind.SYSTEM, "limits", "limits")
KILL_WAIT_S = 30.0  # after twice the grace: the supervisor should have ended everything long ago
AGAIN_S = 600.0  # before the same attempt is ended by force again
log = logging.getLogger("trackbed.limits")


@dataclass
class Limits:
    """Remembers whom it ended by force: the one who does a dead supervisor's last work must not be ended too."""

    forced: dict[str, float] = field(default_factory=dict[str, float])

    def tick(self, app: App) -> None:
        over, stuck, silent = app.db.read(_look)
        for attempt_id in over:
            app.db.write(lambda tx, a=attempt_id: verbs.order(app, tx, a, OrderKind.LIMIT, reason="limit"), actor=ACTOR)
        now_s = app.clock.monotonic_s()
        self.forced = {attempt: at_s for attempt, at_s in self.forced.items() if attempt in stuck}
        for attempt_id in stuck:
            if now_s - self.forced.get(attempt_id, -AGAIN_S) >= AGAIN_S:
                self.forced[attempt_id] = now_s
                _end_by_force(app, attempt_id)
        for run_id in silent:
            app.db.write(lambda tx, r=run_id: outside.give_up(tx, runs.get(tx, r)), actor=ACTOR)


def _end_by_force(app: App, attempt_id: str) -> None:
    log.warning("attempt %s did not leave in twice its grace; it is ended by force", attempt_id)
    try:
        app.engine.kill(attempt_id)
    except (TrackbedError, OSError) as fault:
        log.warning("attempt %s could not be ended: %s", attempt_id, fault)


def _look(tx: ReadTx) -> tuple[list[str], list[str], list[str]]:
    over: list[str] = []
    stuck: list[str] = []
    for attempt in runs_attempts.live(tx):
        if not attempt.node:
            continue
        if attempt.order_kind and not attempt.order_withdrawn:
            if tx.now_us > attempt.order_us + int((2 * attempt.order_grace_s + KILL_WAIT_S) * 1e6):
                stuck.append(attempt.id)
        elif _limit_over(attempt, runs.get(tx, attempt.run_id), tx.now_us):
            over.append(attempt.id)
    return over, stuck, [row.id for row in outside.silent_ones(tx)]


def _limit_over(attempt: Any, row: runs.RunRow, now_us: int) -> bool:
    limit_s = resources_of(row).time_limit_s
    return limit_s is not None and attempt.started_us > 0 and now_us > attempt.started_us + int(limit_s * 1e6)
