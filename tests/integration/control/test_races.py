"""Sixteen at once, on either database: numbers without gaps, one attempt a run, one holder a card."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from control_world import World

from trackbed.base.errors import Conflict
from trackbed.domain.scope import SYSTEM
from trackbed.scheduling import holds
from trackbed.scheduling.rules import Start
from trackbed.server.flows import start


def test_sixteen_planners_start_one_run_once(world: World) -> None:
    run = world.submit(cards=2).run_id
    planned = Start(run, (("n1", 0), ("n1", 1)))

    def begin(_: int) -> bool:
        try:
            start.start(world.app, planned, {}, actor=SYSTEM.actor)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        won = list(pool.map(begin, range(16)))
    assert won.count(True) == 1
    assert len(world.attempts(run)) == 1
    assert len(world.app.db.read(holds.all_holds)) == 2


def test_a_card_is_given_to_one_of_many_runs(world: World) -> None:
    made = [world.submit(cards=1).run_id for _ in range(8)]

    def begin(run: str) -> bool:
        try:
            start.start(world.app, Start(run, (("n1", 3),)), {}, actor=SYSTEM.actor)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(begin, made))
    assert won.count(True) == 1
    assert sorted(world.state(run) for run in made) == ["queued"] * 7 + ["starting"]


def test_sixteen_submits_get_numbers_without_gaps(world: World) -> None:
    with ThreadPoolExecutor(16) as pool:
        refs = list(pool.map(lambda _: world.submit().ref, range(48)))
    assert sorted(refs, key=lambda ref: int(ref.split("#")[1])) == [f"demo#{n}" for n in range(1, 49)]


def test_stop_and_exit_at_once_leave_one_end(world: World) -> None:
    for _ in range(10):
        run, attempt = world.started()
        with ThreadPoolExecutor(2) as pool:
            stopping = pool.submit(world.verb, "stop", run)
            ending = pool.submit(world.exit, attempt, "done")
            ending.result()
            try:
                stopping.result()
            except Conflict as refused:
                assert refused.code in ("run_over", "run_moved")  # noqa: PT017 - either order is right
        assert world.state(run) == "finished"
        assert world.kinds(run).count("run.finished") == 1
