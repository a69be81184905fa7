"""Comparing real records: scope, the table that is made when a group has ended."""

import asyncio
from typing import Any

import pytest

from trackbed.base.errors import BadInput, NotFound
from trackbed.domain.scope import Role
from trackbed.server.flows.compare import compare
from trackbed.server.loops.groups import Groups
from trackbed.tracking import compare_groups, runs


def ask(world: Any, *refs: str, scope: Any = None) -> Any:
    return asyncio.run(compare(world.app, scope or world.ann, refs))


def tables(world: Any, run_id: str) -> list[Any]:
    return world.app.db.read(lambda tx: compare_groups.made_of(tx, world.ann, runs.get(tx, run_id)))


def test_two_runs_of_the_record_differ_in_their_params(world: Any) -> None:
    one = world.submit(params={"lr": 0.1}, seed=1)
    two = world.submit(params={"lr": 0.2}, seed=1)
    found = ask(world, one.ref, two.ref)
    assert [run.ref for run in found.runs] == [one.ref, two.ref]
    assert [(part.name, part.values) for part in found.params] == [("lr", [0.1, 0.2])]
    assert "params" not in found.matched
    assert "seed" in found.matched


def test_one_run_or_the_same_twice_or_too_many_are_refused(world: Any) -> None:
    one = world.submit()
    with pytest.raises(BadInput) as wrong:
        ask(world, one.ref, one.run_id)
    assert wrong.value.code == "compare_few"
    with pytest.raises(NotFound):
        ask(world, one.ref, "demo#99")


def test_a_run_behind_a_wall_is_not_compared(world: Any) -> None:
    one, two = world.submit(), world.submit()
    stranger = world.person("eve", Role.MAINTAINER, space_id="spc_other")
    with pytest.raises(NotFound):
        ask(world, one.ref, two.ref, scope=stranger)


def test_when_the_last_run_of_a_matrix_has_ended_the_table_is_made_once_and_again_after_a_retry(world: Any) -> None:
    reply = world.submit(matrix={"seed": [1, 2]}, cards=1, name="sweep")
    ids = [one.run_id for one in reply.runs]
    loop = Groups()
    world.plan()
    attempts = [world.newest(run_id) for run_id in ids]
    for attempt in attempts:
        world.renew(attempt)
    world.exit(attempts[0], "done", code=0)
    loop.tick(world.app)
    assert tables(world, ids[0]) == []
    world.clock.advance(5.0)
    world.exit(attempts[1], "user_error", code=1)
    loop.tick(world.app)
    (made,) = tables(world, ids[0])
    assert made.tag == reply.group
    assert [run.seed for run in made.comparison.runs] == [1, 2]
    assert made.comparison.groups == 1
    loop.tick(world.app)
    Groups().tick(world.app)
    assert world.kinds(ids[0]).count("run.compared") == 1
    world.verb("retry", ids[1])
    world.plan()
    again = world.newest(ids[1])
    world.renew(again)
    world.clock.advance(5.0)
    world.exit(again, "done", code=0)
    loop.tick(world.app)
    assert world.kinds(ids[0]).count("run.compared") == 2
    assert [run.state for run in tables(world, ids[0])[0].comparison.runs] == ["finished", "finished"]


def test_runs_that_share_no_group_have_no_table(world: Any) -> None:
    run_id, attempt = world.started(tags=["matrix"])
    world.exit(attempt, "done", code=0)
    Groups().tick(world.app)
    assert tables(world, run_id) == []
