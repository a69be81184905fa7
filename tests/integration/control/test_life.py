"""From submit to the end, through every cause, with a test in the place of the supervisor."""

from __future__ import annotations

import pytest
from control_world import World

from trackbed.base.errors import BadInput, Conflict, Denied, NotFound
from trackbed.base.ids import Digest
from trackbed.domain.scope import Role
from trackbed.tracking import runs
from trackbed.tracking.runs_views import detail


def test_a_run_is_submitted_started_trained_and_finished(world: World) -> None:
    reply = world.submit(name="try", params={"lr": 0.1}, run="python train.py --lr {{params.lr}}")
    assert reply.ref == "demo#1"
    assert world.state(reply.run_id) == "queued"
    assert world.plan().starts[0].run_id == reply.run_id
    attempt = world.newest(reply.run_id)
    told = world.engine.processes[attempt].assignment
    assert (told.command, told.number, told.epoch) == ("python train.py --lr 0.1", 1, 1)
    assert told.token.startswith("tba_") and told.run_ref == "demo#1"
    world.renew(attempt, "starting")
    assert world.state(reply.run_id) == "starting"
    world.renew(attempt, "running")
    assert world.state(reply.run_id) == "running"
    world.clock.advance(60)
    shown = world.app.db.read(lambda tx: detail(tx, runs.get(tx, reply.run_id)))
    assert shown.run.card_seconds == shown.attempts[0].card_seconds == pytest.approx(60, abs=1)
    assert world.exit(attempt, "done").state == "finished"
    row = world.run(reply.run_id)
    assert row.ended_us > row.started_us > 0
    assert row.card_seconds == pytest.approx(60, abs=1)
    assert world.kinds(reply.run_id) == [
        "run.submitted", "run.preparing", "run.queued", "run.starting", "attempt.starting", "attempt.running",
        "run.running", "attempt.exited", "run.finished",
    ]  # fmt: skip


def test_numbers_are_free_of_gaps_even_where_a_submit_fails(world: World) -> None:
    world.submit()
    with pytest.raises(BadInput):
        world.submit(cards=99)
    assert world.submit().ref == "demo#2"


def test_every_fault_comes_at_once_and_nothing_is_left(world: World) -> None:
    from trackbed.wire.spec import DataPin, RegisterRule

    with pytest.raises(BadInput) as refused:
        world.submit(
            cards=99, data={"corpus": DataPin(ref="missing@latest")}, register=RegisterRule(model="m", when="nonsense"),
            environment="uv.lock",
        )  # fmt: skip
    fields = {fault.field for fault in refused.value.faults}
    assert {"resources", "data.corpus", "register.when", "environment"} <= fields
    assert world.app.db.events(0, limit=50, run_id="") == world.app.db.events(0, limit=50)
    assert not [event for event in world.app.db.events(0) if event.kind.startswith("run.")]


def test_a_dry_run_resolves_and_makes_nothing(world: World) -> None:
    reply = world.submit(dry_run=True)
    assert reply.run_id == ""
    assert world.submit().ref == "demo#1"


def test_urgent_needs_a_maintainer(world: World) -> None:
    bob = world.person("bob", Role.MEMBER)
    with pytest.raises(BadInput) as refused:
        world.submit(scope=bob, priority="urgent")
    assert [fault.code for fault in refused.value.faults] == ["urgent_needs_right"]
    assert world.submit(priority="urgent").ref == "demo#1"


def test_a_viewer_submits_nothing_and_a_stranger_sees_no_space(world: World) -> None:
    with pytest.raises(Denied):
        world.submit(scope=world.person("vera", Role.VIEWER))
    with pytest.raises(NotFound):
        world.submit(scope=world.person("sid", Role.MEMBER, space_id="spc_other"))


@pytest.mark.parametrize("cause", ["killed", "node", "lost", "network", "storage"])
def test_what_is_not_the_programs_fault_is_tried_again_three_times(world: World, cause: str) -> None:
    run, attempt = world.started()
    for number in range(1, 4):
        assert world.exit(attempt, cause, signal=9).state == "queued"
        world.clock.advance(700)
        world.plan()
        attempt = world.newest(run)
        assert world.attempt(attempt).number == number + 1
        world.renew(attempt)
    assert world.exit(attempt, cause, signal=9).state == "failed"
    row = world.run(run)
    assert row.cause == cause
    assert '"retries_spent"' in row.reason


def test_a_back_off_keeps_a_run_from_starting_until_it_is_over(world: World) -> None:
    run, attempt = world.started()
    world.exit(attempt, "killed", signal=9)
    world.plan()  # the first retry is at once
    attempt = world.newest(run)
    world.renew(attempt)
    world.exit(attempt, "killed", signal=9)
    assert world.plan().starts == ()
    assert '"backoff"' in world.run(run).reason
    world.clock.advance(11)
    assert len(world.plan().starts) == 1


def test_an_error_of_the_program_is_no_reason_to_try_again(world: World) -> None:
    run, attempt = world.started()
    assert world.exit(attempt, "user_error", code=3).state == "failed"
    assert '"rank_exit"' in world.run(run).reason and '"code":3' in world.run(run).reason


def test_the_spec_may_ask_for_retries_of_errors(world: World) -> None:
    _, attempt = world.started(retries={"user_error": 1})
    assert world.exit(attempt, "user_error", code=1).state == "queued"


def test_the_next_attempt_starts_from_the_current_checkpoint_and_counts_what_is_lost(world: World) -> None:
    run, attempt = world.started()
    assert world.checkpoint(attempt, 100)
    assert world.checkpoint(attempt, 200)
    assert not world.checkpoint(attempt, 150), "late news does not move the pointer back"
    assert not world.checkpoint(attempt, 200), "said twice is said once"
    world.exit(attempt, "killed", signal=9, lost_to_step=230)
    assert world.attempt(attempt).lost_steps == 30
    world.plan()
    told = world.engine.processes[world.newest(run)].assignment
    assert told.resume is not None and (told.resume.step, told.resume.name) == (200, "step-200")


def test_stop_asks_pause_asks_and_the_evidence_decides(world: World) -> None:
    run, attempt = world.started()
    world.verb("stop", run, grace_s=7.0, message="enough")
    assert world.state(run) == "stopping"
    order = world.renew(attempt).order
    assert order is not None and (order.kind, order.grace_s, order.reason) == ("stop", 7.0, "enough")
    assert world.renew(attempt, "saving", order_seen=order.id).order is None
    assert world.exit(attempt, "stopped").state == "stopped"
    assert world.verb("stop", run).state == "stopped"


def test_a_run_that_ends_done_while_a_stop_was_asked_is_finished(world: World) -> None:
    run, attempt = world.started()
    world.verb("stop", run)
    assert world.exit(attempt, "done").state == "finished"


def test_a_paused_run_leaves_its_cards_and_goes_on_from_its_checkpoint(world: World) -> None:
    run, attempt = world.started(cards=4)
    world.checkpoint(attempt, 10)
    world.verb("pause", run)
    order = world.renew(attempt).order
    assert order is not None and order.kind == "pause"
    assert world.exit(attempt, "paused").state == "paused"
    other, _ = world.started(cards=4)
    world.verb("resume", run)
    assert world.state(run) == "queued"
    world.exit(world.newest(other), "done")
    world.plan()
    told = world.engine.processes[world.newest(run)].assignment
    assert told.resume is not None and told.resume.step == 10


def test_a_pause_can_be_taken_back_while_it_is_not_over(world: World) -> None:
    run, attempt = world.started()
    world.verb("pause", run)
    order = world.renew(attempt).order
    assert order is not None
    world.verb("resume", run)
    assert world.state(run) == "running"
    withdrawn = world.renew(attempt, order_seen=order.id).order
    assert withdrawn is not None and withdrawn.withdrawn and withdrawn.id == order.id
    assert world.exit(attempt, "done").state == "finished"


def test_a_pause_taken_back_too_late_is_a_short_interruption(world: World) -> None:
    run, attempt = world.started()
    world.verb("pause", run)
    world.verb("resume", run)
    assert world.exit(attempt, "paused").state == "queued"


def test_a_queued_run_is_stopped_at_once_and_a_held_one_does_not_start(world: World) -> None:
    first, second = world.submit().run_id, world.submit().run_id
    assert world.verb("hold", first).state == "held"
    assert world.verb("stop", second).state == "stopped"
    assert world.plan().starts == ()
    assert world.verb("release", first).state == "queued"
    assert len(world.plan().starts) == 1


def test_a_released_run_has_the_place_that_it_had(world: World) -> None:
    first = world.submit(cards=4).run_id
    world.verb("hold", first)
    world.clock.advance(1)
    second = world.submit(cards=4).run_id
    world.verb("release", first)
    world.plan()
    assert (world.state(first), world.state(second)) == ("starting", "queued")


def test_verbs_that_mean_nothing_in_a_state_say_so(world: World) -> None:
    run, attempt = world.started()
    for verb in ("hold", "release"):
        with pytest.raises(Conflict):
            world.verb(verb, run)
    world.exit(attempt, "done")
    for verb in ("stop", "pause", "resume", "retry"):
        with pytest.raises(Conflict):
            world.verb(verb, run)


def test_a_failed_run_comes_back_within_its_window_only(world: World) -> None:
    run, attempt = world.started()
    world.exit(attempt, "user_error", code=1)
    assert world.verb("retry", run).state == "queued"
    world.verb("stop", run)
    world.clock.advance(31 * 86400)
    with pytest.raises(Conflict) as refused:
        world.verb("resume", run)
    assert refused.value.code == "resume_window_over"


def test_somebody_elses_run_needs_a_maintainer(world: World) -> None:
    run, _ = world.started()
    with pytest.raises(Denied):
        world.verb("stop", run, scope=world.person("bob", Role.MEMBER))
    assert world.verb("stop", run, scope=world.person("mia", Role.MAINTAINER)).state == "stopping"


def test_urgent_makes_room_and_the_victim_keeps_its_place_and_its_retries(world: World) -> None:
    victim, attempt = world.started(cards=4)
    world.clock.advance(10)
    later = world.submit(cards=4).run_id
    urgent = world.submit(cards=4, priority="urgent").run_id
    world.plan()
    order = world.renew(attempt).order
    assert order is not None and order.kind == "preempt"
    assert '"making_room"' in world.run(urgent).reason
    assert world.plan().preemptions == (), "nobody is asked twice"
    assert world.exit(attempt, "preempted").state == "queued"
    world.plan()
    assert world.state(urgent) == "starting"
    world.exit(world.newest(urgent), "done")
    world.plan()
    assert (world.state(victim), world.state(later)) == ("starting", "queued")
    assert world.run(victim).used == "{}"


def test_stages_follow_each_other_on_one_record(world: World) -> None:
    from trackbed.wire.spec import Resources, Stage

    stages = [
        Stage(name="prep", run="python prep.py", produces={"shards": "out"}, resources=Resources(cards_per_node=0)),
        Stage(name="train", run="python train.py", needs=["prep"], inputs={"corpus": "prep.shards"}),
    ]
    run = world.submit(stages=stages).run_id
    world.plan()
    first = world.newest(run)
    world.renew(first)
    world.outputs(first, shards="b3:" + "a" * 64)
    assert world.exit(first, "done").state == "queued"
    world.plan()
    told = world.engine.processes[world.newest(run)].assignment
    assert told.stage is not None and told.stage.name == "train"
    assert told.inputs == {"corpus": "b3:" + "a" * 64}
    world.renew(world.newest(run))
    assert world.exit(world.newest(run), "done").state == "finished"


def test_a_stage_that_leaves_not_what_it_promised_has_failed(world: World) -> None:
    from trackbed.wire.spec import Stage

    stages = [
        Stage(name="prep", run="true", produces={"shards": "out"}),
        Stage(name="train", run="true", needs=["prep"]),
    ]
    run = world.submit(stages=stages).run_id
    world.plan()
    attempt = world.newest(run)
    world.renew(attempt)
    assert world.exit(attempt, "done").state == "failed"
    assert '"products_missing"' in world.run(run).reason


def test_a_time_limit_asks_the_attempt_to_leave_and_fails_the_run(world: World) -> None:
    run, attempt = world.started(time_limit_s=60.0)
    world.limits()
    assert world.renew(attempt).order is None
    world.clock.advance(61)
    world.limits()
    order = world.renew(attempt).order
    assert order is not None and order.kind == "limit"
    assert world.exit(attempt, "limit").state == "failed"
    assert world.run(run).cause == "limit"


def test_an_attempt_that_does_not_leave_in_twice_its_grace_is_ended_by_force(world: World) -> None:
    run, attempt = world.started()
    world.verb("stop", run, grace_s=10.0)
    world.clock.advance(45)
    world.limits()
    assert world.engine.killed == []
    world.clock.advance(10)
    world.limits()
    world.clock.advance(10)
    world.limits()
    assert world.engine.killed == [attempt], "once: the salvager that follows is left alone"


def test_an_exit_report_sent_twice_changes_nothing(world: World) -> None:
    run, attempt = world.started()
    world.exit(attempt, "killed", signal=9)
    before = world.run(run)
    world.exit(attempt, "killed", signal=9)
    assert world.run(run) == before


def test_a_run_is_found_by_every_kind_of_reference(world: World) -> None:
    from trackbed.tracking import runs

    made = world.submit(name="first").run_id
    again = world.submit(name="first").run_id

    def find(ref: str) -> str:
        return str(world.app.db.read(lambda tx: runs.resolve(tx, world.ann, ref)).id)

    assert find(made) == find("demo#1") == find("default/demo#1") == find(made[:14]) == find(made[4:16]) == made
    assert find("demo/first") == find("-") == again
    for wrong in ("demo#9", "nope", "demo/none", "run_zzzzzzzzzz", "'; drop table run"):
        with pytest.raises(NotFound):
            find(wrong)


def test_pages_of_runs_cover_all_and_repeat_none(world: World) -> None:
    from trackbed.tracking import runs
    from trackbed.tracking.runs_tables import run as table

    made = {world.submit(name=f"n{i % 3}").run_id for i in range(11)}
    for order in (None, table.c.name, table.c.seconds_left):
        seen: list[str] = []
        cursor = ""
        while True:
            rows, cursor, total = world.app.db.read(
                lambda tx, order=order, cursor=cursor: runs.list_runs(
                    tx, world.ann, order=order, cursor=cursor, limit=4
                )
            )
            seen += [row.id for row in rows]
            assert total == 11
            if not cursor:
                break
        assert len(seen) == 11 and set(seen) == made


def test_tags_are_changed_only_by_who_saw_the_newest_version(world: World) -> None:
    from trackbed.tracking import runs

    run = world.submit().run_id
    version = world.run(run).version
    row = world.write(
        lambda tx: runs.patch(tx, world.ann, run, {"tags": ["a", "b", "a"], "version": version}), world.ann.actor
    )
    assert row.tags == '["a","b"]'
    with pytest.raises(Conflict) as refused:
        world.write(lambda tx: runs.patch(tx, world.ann, run, {"tags": [], "version": version}), world.ann.actor)
    assert refused.value.code == "version_stale"


def test_a_reproduction_asks_for_the_same_digests(world: World) -> None:
    from trackbed.datasets.service import commit
    from trackbed.server.flows import reproduce
    from trackbed.wire.spec import DataPin, RegisterRule

    digest = Digest("b3:" + "5" * 64)
    world.write(lambda tx: commit(tx, world.ann, "stdlib", digest), world.ann.actor)
    run = world.submit(
        data={"corpus": DataPin(ref="stdlib@latest")}, seed=7, params={"lr": 0.1}, register=RegisterRule(model="m")
    ).run_id  # fmt: skip
    request = world.app.db.read(lambda tx: reproduce.reproduction(tx, world.ann, run))
    pin = request.spec.data["corpus"]
    assert pin.ref == f"stdlib@{digest}" and pin.digest == digest
    assert (request.reproduces, request.spec.seed, request.spec.register) == (run, 7, None)
