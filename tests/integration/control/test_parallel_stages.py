"""Independent stages of a graph run at the same time, each as a run of its own; what fails, and what becomes of the others."""

import pytest
from control_world import World
from stage_bed import HERE, Bed

from trackbed.wire.spec import RegisterRule, Resources, Stage
from trackbed.workflow import children

GRAPH = [
    Stage(name="prep", run="p", produces={"out": "o"}),
    Stage(name="left", run="l", needs=["prep"], inputs={"in": "prep.out"}, produces={"out": "o"}),
    Stage(name="right", run="r", needs=["prep"], inputs={"in": "prep.out"}, produces={"out": "o"}, resources=Resources(cards_per_node=2)),
    Stage(name="join", run="j", needs=["left", "right"], inputs={"a": "left.out", "b": "right.out"}, produces={"out": "o"}),
]  # fmt: skip


@pytest.fixture
def bed(world: World) -> Bed:
    return Bed(world)


def begun(bed: Bed, **spec: object) -> tuple[str, str]:
    """A run whose first stage is done: two are due at once. Returns it and the run that was given one of them."""
    run = bed.world.submit(stages=GRAPH, tree=bed.tree(), installed=HERE, name="g", **spec).run_id
    bed.step(run)
    found = bed.world.app.db.read(lambda tx: children.of_run(tx, run))
    assert list(found) == [2]
    bed.world.plan()
    return run, found[2].child_id


def test_two_stages_run_at_the_same_time_each_with_its_own_cards(bed: Bed) -> None:
    run, beside = begun(bed)
    assert sorted(bed.workers(run)) == sorted([run, beside])
    told = {one: bed.world.engine.processes[bed.world.newest(one)].assignment for one in (run, beside)}
    assert {one: sum(len(slot.cards) for slot in told[one].nodes) for one in told} == {run: 1, beside: 2}
    assert told[run].inputs == told[beside].inputs != {}, "both are given what prep left"
    views = bed.stages(run)
    assert (views["right"].state, views["right"].run_id, views["join"].state) == ("running", beside, "waiting")
    bed.end(run)
    bed.world.plan()
    row = bed.world.run(run)
    assert row.state == "queued" and '"stage_elsewhere"' in row.reason, "it waits for the one beside"
    bed.end(beside)
    assert bed.finish(run) == ["join"]
    assert {view.state for view in bed.stages(run).values()} == {"done"}
    assert {"stage.given", "stage.joined"} <= set(bed.world.kinds(run))
    again = bed.world.submit(stages=GRAPH, tree=bed.tree(), installed=HERE, name="g").run_id
    assert bed.world.state(again) == "finished", "what was left beside is found again too"


def test_when_one_fails_the_other_is_let_run_and_nothing_new_begins(bed: Bed) -> None:
    run, beside = begun(bed)
    bed.end(beside, "user_error")
    bed.world.plan()
    assert bed.world.state(run) == "starting" and bed.stages(run)["right"].state == "failed"
    bed.end(run)
    bed.world.plan()
    row = bed.world.run(run)
    assert row.state == "failed" and '"stage_failed"' in row.reason and '"right"' in row.reason
    assert bed.stages(run)["left"].state == "done", "what was done is kept"
    bed.world.verb("retry", run)
    assert bed.workers(run) == [beside], "a retry begins with what is not done, in the run that it belongs to"
    bed.end(beside)
    assert bed.finish(run) == ["join"]


def test_a_retry_of_the_one_beside_alone_is_seen_too(bed: Bed) -> None:
    run, beside = begun(bed)
    bed.end(beside, "user_error")
    bed.world.plan()
    bed.world.verb("retry", beside)
    bed.world.plan()
    bed.end(beside)
    assert bed.finish(run) == ["left", "join"]


def test_stop_and_pause_mean_all_of_it(bed: Bed) -> None:
    run, beside = begun(bed)
    bed.world.verb("pause", run)
    assert [bed.world.state(one) for one in (run, beside)] == ["stopping", "stopping"]
    for one in (run, beside):
        bed.world.exit(bed.world.newest(one), "paused")
    assert [bed.world.state(one) for one in (run, beside)] == ["paused", "paused"]
    bed.world.verb("resume", run)
    assert sorted(bed.workers(run)) == sorted([run, beside])
    bed.end(run)
    bed.world.verb("stop", run)
    assert (bed.world.state(run), bed.world.state(beside)) == ("stopped", "stopping")
    bed.world.exit(bed.world.newest(beside), "stopped")
    bed.world.plan()
    bed.world.verb("retry", run)
    assert bed.finish(run) == ["right", "join"]


def test_a_model_is_registered_by_the_run_itself_after_all_else(bed: Bed) -> None:
    stages = [Stage(name=name, run=name, produces={"out": "o"}) for name in ("a", "b", "last")]
    run = bed.world.submit(stages=stages, tree=bed.tree(), installed=HERE, register=RegisterRule(model="m")).run_id
    beside = bed.world.app.db.read(lambda tx: children.of_run(tx, run))
    assert list(beside) == [1], "the last stays, and waits for the others"
    bed.step(run)
    assert bed.world.state(run) == "queued"
    bed.end(beside[1].child_id)
    bed.world.plan()
    told = bed.end(run)
    assert told.stage and told.stage.name == "last" and bed.world.state(run) == "finished"


def test_a_pool_with_one_card_runs_them_one_after_another(bed: Bed) -> None:
    run = bed.world.submit(stages=[Stage(name=f"s{at}", run="x", produces={"out": "o"}) for at in range(3)], tree=bed.tree(), installed=HERE, cards=4).run_id  # fmt: skip
    assert len(bed.workers(run)) == 1
    assert sorted(bed.finish(run)) == ["s0", "s1", "s2"]
