"""One accepted owner: silence, absence, adoption, replacement, and late words of the replaced."""

from __future__ import annotations

from typing import Any

import pytest
from control_world import LEASE, World

from trackbed.base.errors import Conflict

GONE_S = int(LEASE.replace_s)


def test_a_dead_supervisor_is_salvaged_at_once_by_evidence(world: World) -> None:
    _run, attempt = world.started()
    world.engine.processes[attempt].supervised = False
    world.look()
    assert world.engine.salvaged == [attempt]
    assert world.exit(attempt, "lost", salvaged=True).state == "queued"
    assert world.attempt(attempt).salvaged == 1


def test_an_attempt_that_no_engine_has_seen_is_handed_over_again_with_a_fresh_token(world: World) -> None:
    world.engine.refuse_submits = 1
    run = world.submit().run_id
    world.plan()
    attempt = world.newest(run)
    assert attempt not in world.engine.processes
    world.look()
    assert attempt not in world.engine.processes, "the planner may be handing it over this very moment"
    world.clock.advance(11)
    world.look()
    assert attempt in world.engine.processes
    assert world.attempts(run)[0].id == attempt and len(world.attempts(run)) == 1


def test_silence_of_an_attempt_that_the_engine_sees_ends_nothing(world: World) -> None:
    run, _attempt = world.started()
    world.live_through(10 * GONE_S)
    assert world.state(run) == "running"


def cut_off(world: World) -> tuple[str, str]:
    run, attempt = world.started()
    world.engine.cut_off = {world.attempt(attempt).node}
    return run, attempt


def test_a_node_that_fell_silent_is_replaced_elsewhere_and_its_cards_stay_unknown(world_of: Any) -> None:
    world: World = world_of(a=1, b=1)
    run, attempt = cut_off(world)
    world.live_through(GONE_S - 2)
    assert world.state(run) == "running"
    world.live_through(4)
    assert world.state(run) == "queued"
    world.plan()
    replacement = world.newest(run)
    assert world.attempt(replacement).node != world.attempt(attempt).node
    assert world.attempt(attempt).state == "superseded"
    world.engine.cut_off = set()
    assert world.submit().run_id and world.plan().starts == (), "the silent node's card is unknown, never free"


def test_one_that_is_heard_of_before_it_was_replaced_goes_on(world: World) -> None:
    run, attempt = cut_off(world)
    world.live_through(GONE_S + 2)
    assert world.state(run) == "queued"
    world.engine.cut_off = set()
    assert world.renew(attempt).verdict == "held"
    assert world.state(run) == "running"
    assert world.run(run).used == '{"lost":0}'
    assert world.plan().starts == ()
    assert world.exit(attempt, "done").state == "finished"


def test_one_that_ended_while_nobody_could_hear_it_completes_the_record(world: World) -> None:
    _run, attempt = cut_off(world)
    world.live_through(GONE_S + 2)
    assert world.exit(attempt, "done").state == "finished"


def test_one_that_is_heard_of_after_it_was_replaced_owns_nothing(world_of: Any) -> None:
    world: World = world_of(a=1, b=1)
    run, attempt = cut_off(world)
    world.live_through(GONE_S + 2)
    world.plan()
    replacement = world.newest(run)
    world.renew(replacement)
    world.engine.cut_off = set()
    assert world.renew(attempt).verdict == "superseded"
    with pytest.raises(Conflict) as refused:
        world.checkpoint(attempt, 999)
    assert refused.value.code == "epoch_superseded"
    ended = world.exit(attempt, "done")
    assert not ended.owner and ended.state == "running"
    assert world.attempt(attempt).state == "superseded"
    assert {"attempt.heard_again", "attempt.superseded", "attempt.superseded_exited"} <= set(world.kinds(run))
    assert world.submit().run_id and len(world.plan().starts) == 1, "its confirmed exit frees the card"


def test_a_replaced_attempt_whose_supervisor_died_is_salvaged_for_its_cards(world_of: Any) -> None:
    world: World = world_of(a=1, b=1)
    _, attempt = cut_off(world)
    world.live_through(GONE_S + 2)
    world.plan()
    world.engine.processes[attempt].supervised = False
    world.engine.cut_off = set()
    world.live_through(70)
    assert attempt in world.engine.salvaged


def test_the_servers_own_absence_expires_nothing(world: World) -> None:
    run, _attempt = cut_off(world)
    world.live_through(GONE_S - 5)
    world.clock.advance(3600)  # the server is suspended
    world.look()
    assert world.state(run) == "running"
    world.restart()
    world.clock.advance(3600)
    world.live_through(int(LEASE.lease_s + LEASE.suspect_s) - 2)
    assert world.state(run) == "running", "after a start none expires before a full lease and suspect time"
    world.live_through(GONE_S)
    assert world.state(run) == "queued"


def test_a_clock_that_jumps_expires_nothing(world: World) -> None:
    run, attempt = world.started()
    for jump in (3600, -7200, 40 * 86400):
        world.clock.jump(jump)
        world.live_through(3, renewing=(attempt,))
        assert world.state(run) == "running"


def test_a_run_that_was_stopped_while_its_node_was_silent_tells_it_to_leave(world: World) -> None:
    run, attempt = cut_off(world)
    world.live_through(GONE_S + 2)
    assert world.verb("stop", run).state == "stopped"
    world.engine.cut_off = set()
    order = world.renew(attempt).order
    assert order is not None and order.kind == "stop"
    assert world.state(run) == "stopped"
    world.exit(attempt, "stopped")
    assert world.state(run) == "stopped"
    assert world.submit(cards=4).run_id and len(world.plan().starts) == 1


def test_orders_reach_a_supervisor_that_waits_for_them(world: World) -> None:
    from trackbed.server.flows.lease import wake_name

    run, attempt = world.started()
    seen = world.app.wake.count(wake_name(attempt))
    world.verb("pause", run)
    assert world.app.wake.count(wake_name(attempt)) == seen + 1


def test_an_outside_run_is_given_up_after_a_week_and_reopened_by_its_own_spool(world: World) -> None:
    from trackbed.server.flows import outside
    from trackbed.tracking import runs
    from trackbed.wire.runs import OutsideRunRequest

    def begin(key: str) -> str:
        asked = OutsideRunRequest(project="demo", name="o", key=key, params={"lr": 0.1})
        return str(world.write(lambda tx: outside.begin(tx, world.ann, asked), world.ann.actor).id)

    run = begin("k1")
    assert begin("k1") == run and begin("k2") != run
    world.clock.advance(8 * 86400)
    world.limits()
    assert (world.state(run), world.run(run).cause) == ("failed", "lost")
    world.write(lambda tx: outside.heard(tx, runs.get(tx, run)), world.ann.actor)
    assert world.state(run) == "running"
    world.write(lambda tx: outside.finish(tx, runs.get(tx, run), "finished"), world.ann.actor)
    world.write(lambda tx: outside.finish(tx, runs.get(tx, run), "failed"), world.ann.actor)
    assert (world.state(run), world.run(run).cause) == ("finished", "done")
