"""A small installation without HTTP and without processes: real SQLite, fake engine, fake clock; the test is the supervisor."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import select

from trackbed import access
from trackbed.access.tables import space
from trackbed.db import Tx
from trackbed.domain.lease import LeaseTimes
from trackbed.domain.scope import SYSTEM, Actor, ActorKind, Role, Scope
from trackbed.scheduling.rules import Plan
from trackbed.server.app import App, Settings
from trackbed.server.flows import end, lease, submit, verbs
from trackbed.server.loops import limits, schedule, watch
from trackbed.storage import open_store
from trackbed.testing.clock import FakeClock
from trackbed.testing.database import new_database
from trackbed.testing.engine import FakeEngine
from trackbed.tracking import runs, runs_attempts
from trackbed.wire.attempts import CheckpointReport, ExitReport, LeaseReply, LeaseRequest, OutputsReport, RankReport
from trackbed.wire.runs import SubmitReply, SubmitRequest, VerbRequest
from trackbed.wire.spec import Resources, Spec

LEASE = LeaseTimes(heartbeat_s=1.0, suspect_s=4.0, lease_s=10.0, replace_s=15.0, grace_s=5.0)


class World:
    def __init__(self, app: App, clock: FakeClock, engine: FakeEngine, ann: Scope, space_id: str) -> None:
        self.app, self.clock, self.engine, self.ann, self.space_id = app, clock, engine, ann, space_id
        self.watch, self.limiter = watch.Watch(), limits.Limits()

    # --- people ---

    def submit(
        self, *, scope: Scope | None = None, dry_run: bool = False, reproduces: str = "", **spec: Any
    ) -> SubmitReply:
        cards, nodes = spec.pop("cards", 1), spec.pop("nodes", 1)
        limit = spec.pop("time_limit_s", None)
        if not {"run", "recipe", "stages"} & set(spec):
            spec["run"] = "python train.py"
        resources = Resources(cards_per_node=cards, nodes=nodes, time_limit_s=limit)
        request = SubmitRequest(spec=Spec(resources=resources, **spec), dry_run=dry_run, reproduces=reproduces)
        return asyncio.run(submit.submit(self.app, scope or self.ann, request))

    def verb(self, verb: str, run: str, *, scope: Scope | None = None, **request: Any) -> runs.RunRow:
        who = scope or self.ann
        return self.write(lambda tx: verbs.act(self.app, tx, who, run, verb, VerbRequest(**request)), who.actor)

    # --- loops ---

    def plan(self) -> Plan:
        return schedule.tick(self.app)

    def limits(self) -> None:
        self.limiter.tick(self.app)

    def look(self) -> None:
        self.watch.tick(self.app)

    def restart(self) -> None:
        """The server's memory is gone; the database and the world are not."""
        self.watch, self.limiter = watch.Watch(), limits.Limits()
        self.app.started_us = self.clock.now_us()

    def live_through(self, seconds: float, *, renewing: tuple[str, ...] = ()) -> None:
        """Let time pass in beats of the server's loop; some supervisors renew at each."""
        for _ in range(int(seconds)):
            self.clock.advance(1.0)
            for attempt in renewing:
                self.renew(attempt)
            self.look()

    # --- supervisors ---

    def renew(self, attempt: str, phase: str = "running", *, epoch: int | None = None, **more: Any) -> LeaseReply:
        row = self.attempt(attempt)
        request = LeaseRequest(epoch=row.epoch if epoch is None else epoch, node=row.node, phase=phase, **more)  # type: ignore[arg-type]
        return self.write(lambda tx: lease.renew(self.app, tx, attempt, request)[0], self.actor_of(attempt))

    def checkpoint(self, attempt: str, step: int, *, epoch: int | None = None) -> bool:
        row = self.attempt(attempt)
        report = CheckpointReport(
            epoch=row.epoch if epoch is None else epoch, name=f"step-{step}", step=step, digest=f"b3:{step:064x}"
        )
        return self.write(lambda tx: runs_attempts.record_checkpoint(tx, attempt, report), self.actor_of(attempt))

    def exit(
        self, attempt: str, cause: str, *, code: int | None = None, signal: int | None = None, **more: Any
    ) -> end.Ended:
        row = self.attempt(attempt)
        report = ExitReport(
            epoch=row.epoch, cause=cause, started_us=row.created_us, ended_us=self.clock.now_us(),
            ranks=[RankReport(rank=0, state="exited", exit_code=code, signal=signal)], **more,
        )  # fmt: skip
        if attempt in self.engine.processes:
            process = self.engine.processes[attempt]
            process.running = process.supervised = False
            process.exit_acked = True
        return end.end_attempt(self.app, attempt, report, actor=self.actor_of(attempt))

    def outputs(self, attempt: str, *, digest: str = "", **products: str) -> None:
        report = OutputsReport(epoch=self.attempt(attempt).epoch, digest=digest, products=products)

        def work(tx: Tx) -> None:
            owned = runs_attempts.owned(tx, attempt, report.epoch)
            runs_attempts.note_outputs(tx, owned.attempt, report.digest, report.products)

        self.write(work, self.actor_of(attempt))

    def actor_of(self, attempt: str) -> Actor:
        row = self.attempt(attempt)
        return Actor(ActorKind.ATTEMPT, attempt, run_id=row.run_id, space_id=row.space_id)

    # --- looking ---

    def write(self, fn: Any, actor: Actor) -> Any:
        return self.app.db.write(fn, actor=actor)

    def run(self, run_id: str) -> runs.RunRow:
        return self.app.db.read(lambda tx: runs.get(tx, run_id))

    def state(self, run_id: str) -> str:
        return str(self.run(run_id).state)

    def attempt(self, attempt_id: str) -> runs_attempts.AttemptRow:
        return self.app.db.read(lambda tx: runs_attempts.get(tx, attempt_id))

    def attempts(self, run_id: str) -> list[runs_attempts.AttemptRow]:
        return self.app.db.read(lambda tx: runs_attempts.of_run(tx, run_id))

    def newest(self, run_id: str) -> str:
        return str(self.run(run_id).attempt_id)

    def kinds(self, run_id: str) -> list[str]:
        return [event.kind for event in self.app.db.events(0, limit=10_000, run_id=run_id)]

    def started(self, **spec: Any) -> tuple[str, str]:
        """A run that is running; its id and its attempt."""
        run_id = self.submit(**spec).run_id
        self.plan()
        attempt = self.newest(run_id)
        self.renew(attempt)
        assert self.state(run_id) == "running"
        return run_id, attempt

    def person(self, name: str, role: Role, *, space_id: str = "") -> Scope:
        made = self.write(lambda tx: access.create_person(tx, SYSTEM, name=name, admin=False), SYSTEM.actor)
        return Scope(Actor(ActorKind.PERSON, made.id, made.name), {space_id or self.space_id: role})


_names = itertools.count()


@contextmanager
def world(folder: Path, *, nodes: dict[str, int] | None = None, database: str = "sqlite") -> Iterator[World]:
    clock, engine = FakeClock(), FakeEngine(nodes=nodes or {"n1": 4})
    home = folder / f"home{next(_names)}"
    home.mkdir(parents=True)
    db = new_database(database, home, clock=clock)
    settings = Settings(home=home, lease=LEASE)
    app = App(
        db=db, store=open_store(settings.store_url), engine=engine, clock=clock, home=home, settings=settings,
        url="http://127.0.0.1:8470",
    )  # fmt: skip
    try:
        person = db.write(lambda tx: access.found(tx, admin="ann"), actor=SYSTEM.actor)
        assert person is not None
        space_id = db.read(lambda tx: str(tx.scalar(select(space.c.id))))
        ann = Scope(Actor(ActorKind.PERSON, person.id, person.name), {space_id: Role.MAINTAINER}, admin=True)
        yield World(app, clock, engine, ann, space_id)
    finally:
        db.close()
