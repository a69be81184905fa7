"""`checkpoint.keep` on a real database: what is let go, what is held by others, and what the pages say."""

from __future__ import annotations

from typing import Any

from control_world import World

from trackbed.server.flows import keep
from trackbed.tracking import keeping, runs_attempts
from trackbed.wire.spec import CheckpointPolicy, FromPin, Keep


def policy(**fields: Any) -> CheckpointPolicy:
    return CheckpointPolicy(keep=Keep(**fields))


def steps(world: World, run_id: str) -> list[int]:
    return [row.step for row in world.app.db.read(lambda tx: runs_attempts.checkpoints(tx, run_id))]


def save(world: World, attempt: str, *at: int) -> None:
    for step in at:
        world.checkpoint(attempt, step)
        keep.prune(world.app, str(world.attempt(attempt).run_id))


def test_without_a_policy_all_stay(world: World) -> None:
    run_id, attempt = world.started()
    save(world, attempt, 1, 2, 3, 4)
    assert steps(world, run_id) == [1, 2, 3, 4]


def test_the_older_ones_are_let_go_with_an_event_each_and_the_pointer_stands(world: World) -> None:
    run_id, attempt = world.started(checkpoint=policy(last=2))
    save(world, attempt, 1, 2, 3, 4)
    assert steps(world, run_id) == [3, 4]
    current = world.app.db.read(lambda tx: runs_attempts.current_checkpoint(tx, run_id))
    assert current is not None and current.step == 4
    assert world.kinds(run_id).count("checkpoint.dropped") == 2
    waiting = world.app.db.read(keeping.waiting)
    assert [row.step for row in waiting] == [1, 2]


def test_a_fork_holds_what_it_starts_from_and_so_does_a_living_attempt(world: World) -> None:
    run_id, attempt = world.started(checkpoint=policy(last=1))
    save(world, attempt, 1)
    ref = f"{run_id}@1"
    fork = world.submit(from_=FromPin(kind="checkpoint", ref=ref)).run_id
    save(world, attempt, 2)
    assert steps(world, run_id) == [1, 2], "the fork names it"
    world.exit(attempt, "preempted")
    world.plan()
    again = world.newest(run_id)
    assert world.attempt(again).resumed_from_step == 2
    world.renew(again)
    save(world, again, 3)
    assert steps(world, run_id) == [1, 2, 3], "the attempt that runs started from it"
    world.exit(again, "preempted")
    world.plan()
    newest = world.newest(run_id)
    world.renew(newest)
    save(world, newest, 4)
    assert steps(world, run_id) == [1, 3, 4]
    assert world.run(fork).id == fork


def test_saved_again_after_it_was_let_go_it_is_a_checkpoint_again(world: World) -> None:
    run_id, attempt = world.started(checkpoint=policy(last=1))
    save(world, attempt, 5, 6)
    assert steps(world, run_id) == [6]
    world.exit(attempt, "killed")
    world.clock.advance(700)
    world.plan()
    again = world.newest(run_id)
    world.renew(again)
    save(world, again, 7)
    assert steps(world, run_id) == [6, 7]  # 6: its attempt runs
