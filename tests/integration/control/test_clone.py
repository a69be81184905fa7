"""A run made from another: pinned as the record has it, other values on top, linked; and what a dry run expects."""

import asyncio

import pytest
from control_world import World
from stage_bed import HERE, Bed

from trackbed.base.errors import BadInput, Conflict, NotFound
from trackbed.base.ids import Digest
from trackbed.client.submit import again
from trackbed.datasets.service import commit
from trackbed.server.flows import clone, submit
from trackbed.server.flows.detail import detail
from trackbed.server.flows.lineage import of_run
from trackbed.tracking import runs
from trackbed.wire.runs import RunDetail, SubmitReply, SubmitRequest
from trackbed.wire.spec import DataPin, RegisterRule, Resources, Spec
from trackbed.wire.trial import TrialRequest
from trackbed.workflow.spec import load


def first(world: World) -> str:
    bed = Bed(world)
    world.write(lambda tx: commit(tx, world.ann, "corpus", Digest(f"b3:{1:064x}")), world.ann.actor)
    return world.submit(
        name="one", params={"lr": 0.1, "n": 2}, data={"corpus": DataPin(ref="corpus@latest")}, tree=bed.tree(),
        installed=HERE, register=RegisterRule(model="m"), run="python train.py --lr {{params.lr}}", cards=2,
    ).run_id  # fmt: skip


def send(world: World, ref: str, *sets: str, **how: object) -> SubmitReply:
    found = world.app.db.read(lambda tx: clone.clone(tx, world.ann, ref, **how))
    made = again(found, sets)
    if made.loaded.faults:
        raise BadInput("spec_wrong", faults=made.loaded.faults, count=1)
    return asyncio.run(submit.submit(world.app, world.ann, made.request))


def record(world: World, run: str) -> RunDetail:
    return world.app.db.read(lambda tx: detail(world.app, tx, world.ann, runs.resolve(tx, world.ann, run)))


def test_a_clone_is_the_same_but_for_what_was_changed(world: World) -> None:
    one = first(world)
    world.write(lambda tx: commit(tx, world.ann, "corpus", Digest(f"b3:{2:064x}")), world.ann.actor)
    two = send(world, one, "params.lr=0.2", "tags=[again]")
    before, after = record(world, one), record(world, two.run_id)
    assert after.spec.params == {"lr": 0.2, "n": 2} and after.spec.register == before.spec.register
    assert after.spec.data["corpus"].digest == before.spec.data["corpus"].digest, "not what is latest by now"
    assert (after.tree, after.environment, after.spec.resources) == (before.tree, before.environment, before.spec.resources)  # fmt: skip
    assert after.like and (after.like.ref, after.like.kind) == (before.run.ref, "clone")
    assert [(c.field, c.before, c.after) for c in after.like.changes] == [("params.lr", 0.1, 0.2)]
    edges = world.app.db.read(lambda tx: of_run(tx, world.ann, runs.get(tx, two.run_id))).edges
    assert ("like", f"run:{one}", f"run:{two.run_id}") in [(e.kind, e.source, e.target) for e in edges]
    assert "run.made_from" in world.kinds(two.run_id)


def test_a_fork_begins_from_a_checkpoint(world: World) -> None:
    one = first(world)
    with pytest.raises(NotFound, match="checkpoint"):
        send(world, one, fork=True)
    world.plan()
    attempt = world.newest(one)
    world.renew(attempt)
    world.checkpoint(attempt, 10)
    world.checkpoint(attempt, 20)
    made = record(world, send(world, one, "params.lr=0.01", fork=True).run_id)
    assert made.spec.from_ and (made.spec.from_.run_id, made.spec.from_.step) == (one, 20)
    assert made.like and made.like.kind == "fork"
    other = record(world, send(world, one, fork=True, checkpoint="10").run_id)
    assert other.spec.from_ and other.spec.from_.step == 10
    twice = record(world, send(world, other.run.id, "params.n=3").run_id)
    assert twice.spec.from_ and twice.spec.from_.step == 10, "a clone of a fork begins where that one began"


def test_a_wrong_edit_is_told_by_field_and_an_outside_run_cannot_be_cloned(world: World) -> None:
    one = first(world)
    with pytest.raises(BadInput) as wrong:
        send(world, one, "seed=lucky")
    assert wrong.value.faults[0].field == "seed"
    with pytest.raises(BadInput, match="spec"):
        send(world, one, "data.corpus=nothing@9")
    with pytest.raises(NotFound):
        send(world, "demo#99")


def test_the_form_of_the_file_reads_back_as_the_same_spec(world: World) -> None:
    one = first(world)
    found = world.app.db.read(lambda tx: clone.clone(tx, world.ann, one))
    assert load(found.text) == found.request.spec
    assert "cards: 2" in found.text and "corpus@1" in found.text


def test_a_dry_run_says_when_it_would_start_and_what_it_would_cost(world: World) -> None:
    now = world.submit(dry_run=True, cards=2, time_limit_s=1800).estimate
    assert now and now.starts_now and now.card_hours_most == 1.0
    world.submit(cards=4, time_limit_s=600)
    world.plan()
    later = world.submit(dry_run=True, cards=1).estimate
    assert later and not later.starts_now and later.reason and later.reason.code == "cards_busy"
    assert later.not_before_s is not None and 600 <= later.not_before_s <= 800, "the limit and the grace after it"
    assert later.card_hours_most is None
    assert (
        world.submit(dry_run=True, cards=1, matrix={"seed": [1, 2, 3]}, time_limit_s=3600).estimate.card_hours_most == 3
    )  # type: ignore[union-attr]


def test_a_trial_holds_its_run_until_it_has_ended(world: World) -> None:
    def ask(**how: object) -> SubmitReply:
        spec = Spec(run="python t.py", resources=Resources(cards_per_node=4), matrix={"seed": [1, 2]})
        return asyncio.run(submit.submit(world.app, world.ann, SubmitRequest(spec=spec, trial=TrialRequest(**how))))  # type: ignore[arg-type]

    reply = ask(then_queue=True)
    ids = [one.run_id for one in reply.runs]
    assert [world.state(one) for one in ids] == ["held", "held"] and world.run(reply.trial_id).cards == 1
    world.plan()
    world.plan()
    assert all('"trial_waits"' in world.run(one).reason for one in ids), "the loop does not overwrite why"
    attempt = world.newest(reply.trial_id)
    world.renew(attempt)
    world.exit(attempt, "done")
    world.plan()
    assert sorted(world.state(one) for one in ids) == ["queued", "starting"] or [world.state(one) for one in ids] == [
        "queued",
        "queued",
    ]
    assert "trial.ended" in world.kinds(ids[0]) and record(world, ids[1]).trial.state == "good"  # type: ignore[union-attr]

    other = ask(then_queue=True)
    world.verb("stop", other.trial_id)
    world.plan()
    held = world.run(other.run_id)
    assert held.state == "held" and '"trial_stopped"' in held.reason
    with pytest.raises(BadInput) as wrong:
        ask(steps=0)
    assert wrong.value.faults[0].field == "trial.steps"
    with pytest.raises(Conflict):
        send(world, other.trial_id)
