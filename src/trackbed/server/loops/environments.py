"""environments: builds the packs that runs wait for, one at a time. It holds no cards and runs none of what it installs.

A build that is cut off (the server ends) is put back; a builder that fell silent loses its claim to the next one.
"""

import logging
import shutil
import time
from pathlib import Path
from typing import Any

from trackbed.base.entropy import new_id
from trackbed.base.errors import TrackbedError, Unavailable
from trackbed.db import Tx
from trackbed.domain.events import Event
from trackbed.domain.scope import Actor, ActorKind
from trackbed.server.app import App
from trackbed.server.flows import environments, prepare
from trackbed.sources import packs, packs_sql
from trackbed.sources.locks import parse
from trackbed.sources.service import load_environment
from trackbed.tracking import runs
from trackbed.wire.runs import Reason

ACTOR = Actor(ActorKind.SYSTEM, "environments", "environments")
_BEAT_S = 5.0
_LOG_BYTES = 64 * 1024  # of the end of a build's log stay on the record
_TOLD_LINES = 15
_TRIES, _PAUSE_US = 3, 10_000_000  # where the index does not answer
log = logging.getLogger("trackbed.environments")


class _Stopped(Exception):
    pass


class Builder:
    """One a server process."""

    def __init__(self) -> None:
        self._id = new_id("bld")

    def tick(self, app: App) -> bool:
        """Build one pack, if one is wanted; whether there was one."""
        platforms = [environments.pool_platform()]
        row = app.db.write(lambda tx: packs_sql.claim(tx, self._id, platforms), actor=ACTOR)
        if row is None:
            return False
        folder = app.home / "environments" / f"{row.environment[3:19]}-{row.platform}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, mode=0o700)
        try:
            self._build(app, row, folder)
        except _Stopped:
            app.db.write(lambda tx: packs_sql.close(tx, row, "wanted"), actor=ACTOR)
        except (TrackbedError, OSError) as fault:
            _failed(app, row, fault, _end_of(folder / "log"))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        app.wake.set("environments")  # there may be another
        return True

    def _build(self, app: App, row: Any, folder: Path) -> None:
        record = app.db.read(lambda tx: load_environment(tx, row.environment))
        lock, told, beaten_s = parse(record.lock), folder / "log", time.monotonic()
        log.info("building environment %s for %s (try %d)", row.environment[:15], row.platform, row.tries)

        def beat() -> None:
            nonlocal beaten_s
            if app.stopping.is_set():
                raise _Stopped
            if time.monotonic() - beaten_s >= _BEAT_S:
                beaten_s = time.monotonic()
                if not app.db.write(lambda tx: packs_sql.beat(tx, row, _end_of(told)), actor=ACTOR):
                    raise _Stopped

        facts = packs.build(lock, packs.interpreter_for(lock.python), folder / "pack", log=told, beat=beat)
        beat()
        kept = app.store.put_tree(folder / "pack", on_progress=lambda _done, _all: beat())
        text = _end_of(told)

        def done(tx: Tx) -> None:
            values = {"tree_digest": kept.digest, "size_bytes": kept.size_bytes, "python": facts.python,
                      "notes": runs.to_json(facts.notes), "log": text, "reason": ""}  # fmt: skip
            if not packs_sql.close(tx, row, "ready", **values):
                return
            data = {"platform": row.platform, "size_bytes": kept.size_bytes, "packages": len(facts.packages)}
            tx.emit(Event("environment.ready", row.environment, data=data))
            for waiting in environments.waiting_for(tx, row.environment):
                prepare.prepared(app, tx, waiting)
            tx.after_commit(lambda: app.wake.set("schedule"))

        app.db.write(done, actor=ACTOR)


def _failed(app: App, row: Any, fault: TrackbedError | OSError, text: str) -> None:
    """End the build and what waits for it; where only the index was away, try again after a pause."""
    code = fault.code if isinstance(fault, TrackbedError) else "environment_uv_refused"
    params = fault.params if isinstance(fault, TrackbedError) else {"what": str(fault)}
    log.warning("environment %s was not built: %s", row.environment[:15], fault)
    if isinstance(fault, Unavailable) and row.tries < _TRIES:
        later = app.clock.now_us() + _PAUSE_US * 2 ** (row.tries - 1)
        app.db.write(lambda tx: packs_sql.close(tx, row, "wanted", not_before_us=later, log=text), actor=ACTOR)
        return
    reason = Reason(code=code, params=params)
    shown = "\n".join(text.strip().splitlines()[-_TOLD_LINES:])
    ended = Reason(code="environment_build_failed", params={"what": str(fault), "log": shown})

    def work(tx: Tx) -> None:
        if packs_sql.close(tx, row, "failed", reason=runs.to_json(reason), log=text):
            count = environments.fail_waiting(tx, row.environment, ended)
            tx.emit(
                Event(
                    "environment.failed", row.environment, data={"platform": row.platform, "code": code, "runs": count}
                )
            )

    app.db.write(work, actor=ACTOR)


def _end_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _LOG_BYTES))
            return file.read().decode("utf-8", "replace").replace("\x00", "")
    except OSError:
        return ""
