"""doctor: looks at the server's own node now and then, keeps the history, and says when a verdict changes."""

import logging
import secrets
from dataclasses import dataclass, field

from trackbed.domain.scope import Actor, ActorKind
from trackbed.server.app import App
from trackbed.sources import doctor, doctor_sql
from trackbed.storage.open import open_backend
from trackbed.wire.doctor import NodeCheck

ACTOR = Actor(ActorKind.SYSTEM, "doctor", "doctor")
FIRST_S = 60.0  # not while a server starts
log = logging.getLogger("trackbed.doctor")


@dataclass
class Doctor:
    """One a server process; it remembers what it saw last."""

    memory: doctor.Memory = field(default_factory=doctor.Memory)
    _next_s: float | None = None

    def tick(self, app: App) -> None:
        now_s = app.clock.monotonic_s()
        if self._next_s is None:
            self._next_s = now_s + FIRST_S
        if now_s >= self._next_s:
            self._next_s = now_s + app.settings.doctor_every_s
            look(app, self.memory)


def look(app: App, memory: doctor.Memory) -> list[NodeCheck]:
    """Look at this node once and return what stands on the record now. Blocks for about a second."""
    inventory = app.engine.inventory()
    node = inventory[0].name if inventory else "local"
    cards = tuple(card.kind for facts in inventory for card in facts.cards)
    ground = doctor.Ground(app.home, app.url, lambda data: _round_trip(app, data), cards)
    looks = doctor.examine(ground, memory)
    for one in looks:
        if one.verdict != "ok":
            log.warning("node %s: %s is %s %s", node, one.check, one.verdict, one.params)
    app.db.write(lambda tx: doctor_sql.note(tx, node, looks), actor=ACTOR)
    return app.db.read(doctor_sql.newest)


def _round_trip(app: App, data: bytes) -> bytes:
    """Through the store's backend, past the chunks: a look must leave nothing behind."""
    backend, name = open_backend(app.settings.store_url), f"doctor/{secrets.token_hex(8)}"
    backend.put(name, data)
    try:
        return backend.get(name)
    finally:
        backend.delete(name)
