"""The loops of an embedded server: one thread each, poked early by flows."""

import logging
import threading
from collections.abc import Callable

from trackbed.server.app import App
from trackbed.server.loops import (
    doctor,
    environments,
    groups,
    limits,
    logs,
    notice,
    schedule,
    seal,
    triggers,
    upkeep,
    watch,
)

log = logging.getLogger("trackbed.loops")


class Loops:
    """A tick that fails is logged and tried again: the next one acts on what is there then."""

    def __init__(self, app: App, ticks: dict[str, tuple[Callable[[App], object], float]]) -> None:
        self._app = app
        self._threads = [
            threading.Thread(target=self._run, args=(name, tick, every_s), name=f"loop-{name}", daemon=True)
            for name, (tick, every_s) in ticks.items()
        ]
        self._names = list(ticks)
        self._stop = threading.Event()

    def start(self) -> "Loops":
        for thread in self._threads:
            thread.start()
        return self

    def stop(self, timeout_s: float = 10.0) -> None:
        """Let each loop end its tick; returns when all have."""
        self._stop.set()
        for name in self._names:
            self._app.wake.set(name)
        for thread in self._threads:
            thread.join(timeout_s)

    def _run(self, name: str, tick: Callable[[App], object], every_s: float) -> None:
        failures = 0
        while not self._stop.is_set():
            seen = self._app.wake.count(name)
            try:
                tick(self._app)
                failures = 0
            except Exception:
                failures += 1
                log.exception("loop %s: a tick failed (%d in a row)", name, failures)
                self._stop.wait(min(0.2 * 2 ** min(failures, 8), 10.0))
            if not self._stop.is_set():
                self._app.wake.wait(name, seen, every_s)


def start(app: App) -> Loops:
    """Start all of them. Call `stop` on what this returns before the database is closed."""
    watch.adopt(app)
    watching = watch.Watch()
    ticks: dict[str, tuple[Callable[[App], object], float]] = {
        "schedule": (schedule.tick, 1.0),
        "watch": (watching.tick, 0.5),
        "limits": (limits.Limits().tick, 1.0),
        "notice": (notice.Notice().tick, 1.0),
        "doctor": (doctor.Doctor().tick, 20.0),
        "environments": (environments.Builder().tick, 5.0),
        "groups": (groups.Groups().tick, 5.0),
        "logs": (logs.Logs().tick, logs.EVERY_S),
        "upkeep": (upkeep.Upkeep().tick, upkeep.EVERY_S),
        "seal": (seal.Sealer().tick, 5.0),
        "triggers": (triggers.tick, triggers.EVERY_S),
    }
    return Loops(app, ticks).start()
