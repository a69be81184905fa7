"""logs: lines go when their time is over, debug output first; a run that writes too much of it keeps the newest."""

from dataclasses import dataclass, field

from sqlalchemy import select

from trackbed.db import ReadTx
from trackbed.domain.scope import Actor, ActorKind
from trackbed.domain.states import ACTIVE
from trackbed.server.app import App
from trackbed.tracking import logs_keep
from trackbed.tracking.logs_keep import Keeping
from trackbed.tracking.runs_tables import run

ACTOR = Actor(ActorKind.SYSTEM, "logs", "logs")
EVERY_S = 60.0
_ACTIVE = [state.value for state in ACTIVE]


@dataclass
class Logs:
    """One write a run, so that nothing else waits long."""

    keeping: Keeping = field(default_factory=Keeping)

    def tick(self, app: App) -> None:
        for run_id, level in app.db.read(lambda tx: logs_keep.due(tx, self.keeping)):
            app.db.write(
                lambda tx, run_id=run_id, level=level: logs_keep.trim_aged(tx, run_id, level), actor=ACTOR, lane="bulk"
            )
        for run_id in app.db.read(self._crowded):
            app.db.write(
                lambda tx, run_id=run_id: logs_keep.trim_crowd(tx, run_id, self.keeping), actor=ACTOR, lane="bulk"
            )

    def _crowded(self, tx: ReadTx) -> list[str]:
        active = [row.id for row in tx.rows(select(run.c.id).where(run.c.state.in_(_ACTIVE)))]
        return [
            run_id
            for at in range(0, len(active), 500)
            for run_id in logs_keep.crowded(tx, active[at : at + 500], self.keeping)
        ]
