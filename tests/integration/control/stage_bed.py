"""Stage graphs on the small installation: trees of real bytes, and a program that leaves a digest of all that it was given."""

from __future__ import annotations

import hashlib
import json
import os
import random
from typing import Any

import msgspec
from control_world import World

from trackbed.base.ids import Digest
from trackbed.formats.tree import Entry, encode_listing
from trackbed.server.flows.detail import detail
from trackbed.sources.environment import digest_of
from trackbed.tracking import runs
from trackbed.wire.attempts import Assignment
from trackbed.wire.runs import EnvironmentRecord, RunDetail, StageView, TreeFacts
from trackbed.workflow import children


def environment(python: str) -> EnvironmentRecord:
    record = EnvironmentRecord(python=python, platform="linux-x86_64")
    return msgspec.structs.replace(record, digest=digest_of(record))


HERE = environment("CPython 3.11")


class Bed:
    def __init__(self, world: World) -> None:
        self.world, self.store = world, world.app.store

    # --- content ---

    def tree_of(self, files: dict[str, str]) -> str:
        entries: list[Entry] = []
        for path, text in sorted(files.items()):
            digest, size = self.store.put_blob(text.encode())
            entries.append(Entry(path=path.encode(), size=size, digest=digest))
        return str(self.store.put_listing(encode_listing(entries)))

    def tree(self, **files: str) -> TreeFacts:
        return TreeFacts(digest=self.tree_of(files or {"prep.py": "1"}))

    def files_of(self, digest: str) -> dict[str, str]:
        if not digest:
            return {}
        return {os.fsdecode(one.path): str(one.digest) for one in self.store.read_listing(Digest(digest))}

    # --- what a program does ---

    def leave(self, given: dict[str, Any], product: str) -> str:
        """The product of a program that reads everything it is given: a tree that is another whenever that is."""
        text = json.dumps([given, product], sort_keys=True)
        return self.tree_of({"made": hashlib.sha256(text.encode()).hexdigest()})

    def given(self, told: Assignment) -> dict[str, Any]:
        return seen(
            stage=told.stage.name if told.stage else "", files=self.files_of(told.tree), params=told.params,
            data={name: pin.digest for name, pin in told.data.items()},
            inputs={name: self.files_of(digest) for name, digest in told.inputs.items()}, seed=told.seed,
            determinism=told.determinism, command=told.command, env=told.env, launcher=told.launcher,
            cards=sum(len(slot.cards) for slot in told.nodes), environment=told.environment["digest"],
        )  # fmt: skip

    def step(self, run: str, cause: str = "done") -> Assignment | None:
        """Let the next attempt of the run run and end; None where the run has none."""
        before = self.world.run(run).attempt
        self.world.plan()
        if self.world.run(run).attempt == before:
            return None
        return self.end(run, cause)

    def end(self, run: str, cause: str = "done") -> Assignment:
        """Let the newest attempt of the run run and end."""
        attempt = self.world.newest(run)
        told = self.world.engine.processes[attempt].assignment
        self.world.renew(attempt)
        if told.stage is not None:
            given = self.given(told)
            half = "" if cause == "done" else "half"
            self.world.outputs(attempt, **{name: self.leave(given, name + half) for name in told.stage.produces})
        self.world.exit(attempt, cause)
        self.world.clock.advance(1)
        return told

    def workers(self, run: str) -> list[str]:
        """The run and the runs of its stages that have an attempt now."""
        world = self.world
        world.plan()
        beside = world.app.db.read(lambda tx: [one.child_id for one in children.of_run(tx, run).values()])
        return [one for one in [run, *beside] if world.state(one) in ("starting", "running")]

    def finish(self, run: str, dice: random.Random | None = None, failing: float = 0.0) -> list[str]:
        """Let everything that is left of the run run, in any order; return the names of the stages that were run.

        Some fail by chance: then the run is retried once it has failed.
        """
        ran: list[str] = []
        while self.world.state(run) != "finished":
            at_work = self.workers(run)
            if self.world.state(run) == "failed":
                assert not at_work or run not in at_work
                self.world.verb("retry", run)
                continue
            if self.world.state(run) == "finished":
                break
            assert at_work, (self.world.state(run), self.world.run(run).reason)
            cause = "user_error" if dice is not None and dice.random() < failing else "done"
            told = self.end(dice.choice(at_work) if dice is not None else at_work[0], cause)
            self.world.plan()
            if cause == "done":
                ran.append(told.stage.name if told.stage else "")
        return ran

    # --- looking ---

    def detail(self, run: str) -> RunDetail:
        world = self.world
        return world.app.db.read(lambda tx: detail(world.app, tx, world.ann, runs.resolve(tx, world.ann, run)))

    def stages(self, run: str) -> dict[str, StageView]:
        return {view.name: view for view in self.detail(run).stages}


def seen(**everything: Any) -> dict[str, Any]:
    return everything
