"""Any order of submits, verbs, beats, partitions, deaths, restarts and late words: one owner, no card twice, ends stay ends."""

from __future__ import annotations

import contextlib
import random
import tempfile
from pathlib import Path

import pytest
from control_world import LEASE, World
from control_world import world as open_world
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule

from trackbed.base import entropy
from trackbed.base.errors import Conflict
from trackbed.domain.states import ACTIVE, ATTEMPT_ENDED, RunState
from trackbed.scheduling import holds

ENDS = st.sampled_from(["done", "user_error", "killed", "node", "stopped", "paused", "preempted", "limit"])
VERBS = st.sampled_from(["stop", "pause", "resume", "retry", "hold", "release"])
LIVE_ENDED = {state.value for state in ATTEMPT_ENDED}


class Control(RuleBasedStateMachine):
    runs = Bundle("runs")

    @initialize()
    def begin(self) -> None:
        self.stack = contextlib.ExitStack()
        before = entropy.secrets
        entropy.secrets = random.Random(17)  # type: ignore[assignment] - ids decide ties: a story must repeat
        self.stack.callback(setattr, entropy, "secrets", before)
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory(dir=_fast())))
        self.world: World = self.stack.enter_context(open_world(folder, nodes={"a": 2, "b": 2}))
        self.finished: set[str] = set()
        self.made: list[str] = []

    def teardown(self) -> None:
        self.stack.close()

    # --- what people do ---

    @rule(target=runs, cards=st.integers(0, 2), priority=st.sampled_from(["normal", "normal", "urgent", "idle"]))
    def submit(self, cards: int, priority: str) -> str:
        self.world.clock.advance(0.001)
        run = self.world.submit(cards=cards, priority=priority).run_id
        self.made.append(run)
        return run

    @rule(run=runs, verb=VERBS)
    def act(self, run: str, verb: str) -> None:
        with contextlib.suppress(Conflict):
            self.world.verb(verb, run)

    # --- what the server does ---

    @rule()
    def plan(self) -> None:
        self.world.plan()

    @rule(seconds=st.sampled_from([1, 3, int(LEASE.replace_s) + 2]))
    def live(self, seconds: int) -> None:
        """Supervisors that live and are not cut off renew at every beat, as theirs do."""
        for _ in range(seconds):
            self.world.clock.advance(1.0)
            for attempt in self._heard():
                self._renew(attempt)
            self.world.look()
        self.world.limits()

    @rule(seconds=st.sampled_from([5, 600, 7200]))
    def be_suspended(self, seconds: int) -> None:
        self.world.clock.advance(seconds)

    @rule()
    def restart(self) -> None:
        self.world.restart()

    # --- what the world does ---

    def _heard(self) -> list[str]:
        return [
            a
            for a, p in self.world.engine.processes.items()
            if p.supervised and p.node not in self.world.engine.cut_off
        ]

    def _reachable(self, *, supervised: bool) -> list[str]:
        found = self.world.engine.processes.items()
        return [
            a
            for a, p in found
            if p.supervised is supervised and not p.exit_acked and p.node not in self.world.engine.cut_off
        ]

    def _renew(self, attempt: str) -> None:
        reply = self.world.renew(attempt, self.world.engine.processes[attempt].phase)
        if reply.verdict == "superseded":
            self._end(attempt, "lost")

    def _end(self, attempt: str, cause: str) -> None:
        self.world.exit(attempt, cause)

    @rule(node=st.sampled_from(["a", "b"]))
    def cut(self, node: str) -> None:
        self.world.engine.cut_off ^= {node}

    @precondition(lambda self: self._reachable(supervised=True))
    @rule(data=st.data(), phase=st.sampled_from(["starting", "running", "saving"]))
    def work(self, data: st.DataObject, phase: str) -> None:
        attempt = data.draw(st.sampled_from(self._reachable(supervised=True)))
        self.world.engine.processes[attempt].phase = phase
        self._renew(attempt)

    @precondition(lambda self: self._reachable(supervised=True))
    @rule(data=st.data(), cause=ENDS)
    def end(self, data: st.DataObject, cause: str) -> None:
        self._end(data.draw(st.sampled_from(self._reachable(supervised=True))), cause)

    @precondition(lambda self: any(p.supervised for p in self.world.engine.processes.values()))
    @rule(data=st.data())
    def supervisor_dies(self, data: st.DataObject) -> None:
        alive = [a for a, p in self.world.engine.processes.items() if p.supervised]
        self.world.engine.processes[data.draw(st.sampled_from(alive))].supervised = False

    @precondition(lambda self: self._salvageable())
    @rule(data=st.data(), cause=st.sampled_from(["lost", "done", "killed"]))
    def salvager_reports(self, data: st.DataObject, cause: str) -> None:
        self._end(data.draw(st.sampled_from(self._salvageable())), cause)

    def _salvageable(self) -> list[str]:
        return [a for a in self._reachable(supervised=False) if a in self.world.engine.salvaged]

    @precondition(lambda self: self.world.engine.processes)
    @rule(data=st.data(), step=st.integers(1, 1000))
    def say_something_late(self, data: st.DataObject, step: int) -> None:
        """A checkpoint of any attempt, however old: accepted from the owner of the run only."""
        attempt = data.draw(st.sampled_from(list(self.world.engine.processes)))
        row = self.world.attempt(attempt)
        newest = self.world.run(row.run_id).epoch == row.epoch
        if newest:
            self.world.checkpoint(attempt, step)
            return
        with pytest.raises(Conflict, match=r"[Ee]poch"):
            self.world.checkpoint(attempt, step)

    # --- what must always be true ---

    @invariant()
    def no_card_runs_two_attempts(self) -> None:
        if not hasattr(self, "world"):
            return
        taken = [card for process in self.world.engine.processes.values() if process.running for card in process.cards]
        assert len(taken) == len(set(taken))

    @invariant()
    def one_owner_per_run(self) -> None:
        if not hasattr(self, "world"):
            return
        for run in self.made:
            row, attempts = self.world.run(run), self.world.attempts(run)
            live = [a for a in attempts if a.state not in LIVE_ENDED]
            assert len(live) <= 1
            assert [a.epoch for a in attempts] == list(range(1, len(attempts) + 1))
            assert row.epoch == len(attempts)
            if RunState(row.state) in ACTIVE:
                assert live and live[0].id == row.attempt_id and not live[0].lost_us
            if live:
                assert live[0].epoch == row.epoch

    @invariant()
    def finished_stays_finished_and_cards_belong_to_the_living(self) -> None:
        if not hasattr(self, "world"):
            return
        for run in self.made:
            if self.world.state(run) == "finished":
                self.finished.add(run)
            assert run not in self.finished or self.world.state(run) == "finished"
        for hold in self.world.app.db.read(holds.all_holds):
            attempt = self.world.attempt(hold.attempt_id)
            assert attempt.ended_us == 0
            assert bool(hold.unknown) == bool(attempt.lost_us or attempt.state == "superseded")


def _fast() -> str | None:
    """A folder in memory where there is one: the machine commits a thousand times."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


TestControl = Control.TestCase
TestControl.settings = settings(
    max_examples=30, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True
)
