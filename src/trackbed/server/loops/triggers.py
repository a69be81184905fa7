"""triggers: start what was pushed, follow it to its end, tell the forge; and see new versions of datasets."""

import logging
from typing import Any

import msgspec
from sqlalchemy import Row

from trackbed.db import ReadTx, Tx
from trackbed.domain.scope import Actor, ActorKind
from trackbed.server.app import App
from trackbed.server.flows import fire
from trackbed.workflow import triggers

ACTOR = Actor(ActorKind.SYSTEM, "triggers", "triggers")
EVERY_S = 2.0
_EVENTS = 500  # of the journal in one look
log = logging.getLogger("trackbed.triggers")


def tick(app: App) -> None:
    """One look at what waits. What is acted on is moved on in its own transaction, so a restart repeats nothing but it."""
    _new_versions(app)
    for row in app.db.read(lambda tx: triggers.in_state(tx, "waiting")):
        fire.fire(app, row)
    for row in app.db.read(_to_follow):
        fire.look(app, row)


def _to_follow(tx: ReadTx) -> list[Row[Any]]:
    return [*triggers.in_state(tx, "started", limit=1000), *triggers.untold(tx)]


def _new_versions(app: App) -> None:
    position = app.db.read(triggers.position)
    if position is None:  # triggers begin with what comes after the first start
        head = app.db.head()
        app.db.write(lambda tx: triggers.move_to(tx, head), actor=ACTOR)
        return
    events = app.db.events(position, limit=_EVENTS)
    if not events:
        return
    committed = [one for one in events if one.kind == "dataset.committed"]

    def work(tx: Tx) -> None:
        for one in committed:
            data = msgspec.json.decode(one.data)
            for rule in triggers.for_dataset(tx, one.space_id, data["dataset"]):
                triggers.receive_version(tx, rule, data["dataset"], data["version"])
        triggers.move_to(tx, events[-1].id)

    if committed or len(events) >= _EVENTS or events[-1].id - position > _EVENTS:
        app.db.write(work, actor=ACTOR)
