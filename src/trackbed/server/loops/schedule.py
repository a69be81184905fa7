"""schedule: look, plan, start, ask to leave, say why. Level-triggered: each tick plans from what is there now."""

import logging

from trackbed.base.errors import Conflict, NotFound
from trackbed.domain.scope import Actor, ActorKind
from trackbed.domain.states import OrderKind
from trackbed.scheduling.rules import Plan, plan
from trackbed.server.app import App
from trackbed.server.flows import facts, stages, start, trial, verbs
from trackbed.tracking import runs
from trackbed.wire.runs import Reason

ACTOR = Actor(ActorKind.SYSTEM, "schedule", "schedule")
log = logging.getLogger("trackbed.schedule")


def tick(app: App) -> Plan:
    """Bring the pool one step nearer to what the queue wants; return what was decided."""
    stages.gather(app, actor=ACTOR)
    trial.settle(app, actor=ACTOR)
    inventory = app.engine.inventory()
    seen = app.db.read(lambda tx: facts.observe(tx, inventory))
    decided = plan(app.clock.now_us(), seen.waiting, seen.nodes, seen.running)
    slots = facts.slots_of(inventory)
    begun: set[str] = set()
    for begin in decided.starts:
        key = seen.keys.get(begin.run_id, "")
        if key in begun:
            continue  # the next tick sees who works on it, and takes what that one leaves
        if key:
            begun.add(key)
        try:
            start.start(app, begin, slots, actor=ACTOR)
        except (Conflict, NotFound) as moved:  # the next tick sees the world as it has become
            log.info("%s did not start: %s", begin.run_id, moved)
    for leave in decided.preemptions:
        ask_to_leave(app, leave.attempt_id, leave.for_run)
    reasons = {run_id: Reason(code=why.code, params=dict(why.params)) for run_id, why in decided.reasons.items()}
    for run_id, (stage, other) in seen.elsewhere.items():
        if run_id in reasons and reasons[run_id].code == "backoff":
            reasons[run_id] = Reason(code="stage_elsewhere", params={"stage": stage, "run": other})
    for run_id in seen.kept & reasons.keys():
        del reasons[run_id]
    if reasons and app.db.read(lambda tx: runs.reasons_differ(tx, reasons)):
        app.db.write(lambda tx: runs.set_reasons(tx, reasons), actor=ACTOR)
    return decided


def ask_to_leave(app: App, attempt_id: str, for_run: str) -> None:
    app.db.write(
        lambda tx: verbs.order(app, tx, attempt_id, OrderKind.PREEMPT, for_run=for_run, reason="preempt"), actor=ACTOR
    )
