"""Stages of a run: in the order of their needs, checked, never repeated needlessly, and with the reason on the record."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from control_world import World
from stage_bed import HERE, Bed, environment

from trackbed.base.errors import BadInput
from trackbed.base.messages import render
from trackbed.server.flows import reproduce, submit
from trackbed.wire.spec import RegisterRule, Stage, Uses

PREP = Stage(name="prep", run="prep", produces={"shards": "out"})
TRAIN = Stage(name="train", run="train", needs=["prep"], inputs={"corpus": "prep.shards"}, produces={"model": "model"})
EVAL = Stage(name="eval", run="eval", needs=["train"], inputs={"model": "train.model"}, produces={"report": "r"})


@pytest.fixture
def bed(world: World) -> Bed:
    return Bed(world)


def start(bed: Bed, *stages: Stage, **more: Any) -> str:
    asked = {"stages": list(stages or (PREP, TRAIN, EVAL)), "tree": bed.tree(), "installed": HERE, **more}
    return bed.world.submit(**asked).run_id


def test_stages_run_in_the_order_of_their_needs_whatever_the_file_says(bed: Bed) -> None:
    run = start(bed, EVAL, TRAIN, PREP)
    assert bed.finish(run) == ["prep", "train", "eval"]
    assert [view.state for view in bed.detail(run).stages] == ["done", "done", "done"]
    assert bed.stages(run)["train"].needs == ["prep"]


def test_a_retry_starts_at_the_first_unfinished_stage_and_keeps_partial_products_apart(bed: Bed) -> None:
    run = start(bed)
    bed.step(run)
    shards = bed.stages(run)["prep"].products
    bed.step(run, "user_error")
    assert bed.world.state(run) == "failed"
    failed = bed.stages(run)
    assert failed["train"].state == "failed" and failed["train"].products == {}
    bed.world.verb("retry", run)
    assert bed.finish(run) == ["train", "eval"]
    assert bed.stages(run)["prep"].products == shards
    left = bed.world.attempts(run)
    assert left[1].products not in ("{}", left[2].products), "what the failed attempt left stays on its own record"


def test_a_run_with_all_the_same_is_finished_at_once_and_names_where_it_came_from(bed: Bed) -> None:
    first = start(bed)
    bed.finish(first)
    again = start(bed, name="another", tags=["x"])
    assert bed.world.state(again) == "finished" and bed.world.attempts(again) == []
    before, after = bed.stages(first), bed.stages(again)
    assert {name: view.products for name, view in after.items()} == {n: view.products for n, view in before.items()}
    for view in after.values():
        assert (view.cache, view.from_run, view.state) == ("hit", first, "done")
        assert view.reason is not None and view.reason.params["run"] == "demo#1"
        assert "demo#1" in render(f"reason.{view.reason.code}", view.reason.params)
    assert bed.world.kinds(again).count("stage.taken") == 3


def test_a_changed_param_runs_its_stage_and_what_follows_from_it_only(bed: Bed) -> None:
    lean = [
        PREP,
        Stage(name="train", run="train {{params.lr}}", needs=["prep"], inputs=TRAIN.inputs, produces=TRAIN.produces),
        EVAL,
    ]
    lean = [
        Stage(**{**{f: getattr(s, f) for f in s.__struct_fields__}, "uses": Uses(params=["lr"] if s.name == "train" else [])})
        for s in lean
    ]  # fmt: skip
    bed.finish(start(bed, *lean, params={"lr": 0.1}))
    run = start(bed, *lean, params={"lr": 0.2})
    assert bed.finish(run) == ["train", "eval"]
    why = bed.stages(run)["train"].reason
    assert why is not None and why.code == "cache_differs"
    assert (why.params["run"], why.params["differs"]) == ("demo#1", "params.lr: 0.1 → 0.2")
    follows = bed.stages(run)["eval"].reason
    assert follows is not None and follows.params["differs"] == "inputs.model"


def test_a_changed_file_is_felt_by_the_stages_that_use_it(bed: Bed) -> None:
    def stages() -> list[Stage]:
        return [
            Stage(name="prep", run="prep", produces={"shards": "out"}, uses=Uses(files=["prep.py", "lib"])),
            Stage(name="train", run="t", needs=["prep"], produces={"m": "m"}, uses=Uses(files=["train.py", "*.txt"])),
        ]

    files = {"prep.py": "1", "lib/a.py": "1", "train.py": "1", "note.txt": "1", "README": "1"}
    run = start(bed, *stages(), tree=bed.tree(**files))
    told = bed.step(run)
    assert told is not None and set(bed.files_of(told.tree)) == {"prep.py", "lib/a.py"}, "nothing else is there"
    bed.finish(run)
    for changed, ran in (("README", []), ("train.py", ["train"]), ("note.txt", ["train"]), ("lib/a.py", ["prep"])):
        run = start(bed, *stages(), tree=bed.tree(**{**files, changed: "2"}))
        assert bed.finish(run) == ran, changed


def test_files_that_are_not_in_the_tree_are_told(bed: Bed) -> None:
    with pytest.raises(BadInput) as refused:
        start(bed, Stage(name="prep", run="p", uses=Uses(files=["prep.py", "pre.py", "x/*"])))
    assert [(one.code, one.field, one.params["name"]) for one in refused.value.faults] == [
        ("spec_uses_no_file", "stages[0].uses.files", "pre.py"), ("spec_uses_no_file", "stages[0].uses.files", "x/*"),
    ]  # fmt: skip


def test_a_cut_tree_that_comes_with_the_spec_is_not_believed(bed: Bed) -> None:
    told = bed.step(start(bed, Stage(name="p", run="p", uses=Uses(files=["prep.py"], tree="b3:" + "f" * 64))))
    assert told is not None and set(bed.files_of(told.tree)) == {"prep.py"}
    told = bed.step(start(bed, Stage(name="p", run="p", uses=Uses(params=[], tree="b3:" + "f" * 64))))
    assert told is not None and set(bed.files_of(told.tree)) == {"prep.py"}


def test_no_cache_runs_everything_and_what_it_leaves_may_be_taken_later(bed: Bed) -> None:
    first = start(bed, cache=False)
    assert bed.finish(first) == ["prep", "train", "eval"]
    second = start(bed, cache=False)
    assert bed.finish(second) == ["prep", "train", "eval"]
    third = start(bed)
    assert bed.finish(third) == []
    reason = bed.stages(second)["prep"].reason
    assert reason is not None and reason.code == "cache_off"


def test_a_reproduction_takes_nothing(bed: Bed) -> None:
    run = start(bed)
    bed.finish(run)
    request = bed.world.app.db.read(lambda tx: reproduce.reproduction(tx, bed.world.ann, run))
    import asyncio

    again = asyncio.run(submit.submit(bed.world.app, bed.world.ann, request)).run_id
    assert bed.finish(again) == ["prep", "train", "eval"]


def test_what_cannot_be_known_to_be_the_same_is_run(bed: Bed) -> None:
    for more, code in (
        ({"installed": None}, "cache_unpinned"), ({"stages": [Stage(name="say", run="s")]}, "cache_no_products"),
        ({"stages": [PREP], "register": RegisterRule(model="m", path="shards")}, "cache_registers"),
        ({"installed": environment("CPython 3.12")}, "cache_first"),
    ):  # fmt: skip
        for again in (0, 1):
            run = start(bed, **more)
            first = bed.detail(run).stages[0]
            assert first.reason is not None
            if code == "cache_first":
                assert first.cache == ("hit" if again else "miss")
            else:
                assert (first.cache, first.reason.code) == ("off", code)
            if bed.world.state(run) != "finished" and more.get("installed", HERE) is not None:
                bed.finish(run)
            elif bed.world.state(run) != "finished":
                bed.world.verb("stop", run)


def test_products_that_are_no_longer_in_the_store_are_made_again(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    bed.finish(start(bed, PREP))
    has = bed.store.has_tree
    gone = bed.stages("demo#1")["prep"].products["shards"]
    monkeypatch.setattr(bed.store, "has_tree", lambda digest: digest != gone and has(digest))
    run = start(bed, PREP)
    reason = bed.stages(run)["prep"].reason
    assert reason is not None and reason.code == "cache_gone"
    assert bed.finish(run) == ["prep"]


def test_nothing_is_taken_across_the_wall_of_a_space(bed: Bed) -> None:
    from trackbed import access

    bed.finish(start(bed, PREP))
    world = bed.world
    made = world.write(lambda tx: access.create_space(tx, world.ann, name="other", accepted=True), world.ann.actor)
    assert made is not None
    run = start(bed, PREP, space="other")
    reason = bed.stages(run)["prep"].reason
    assert reason is not None and reason.code == "cache_first"


def test_runs_of_a_matrix_do_what_they_have_in_common_once(bed: Bed) -> None:
    shared = Stage(name="prep", run="prep", produces={"shards": "out"}, uses=Uses(params=[]))
    train = Stage(name="train", run="t {{params.lr}}", needs=["prep"], inputs=TRAIN.inputs, produces={"m": "m"})
    reply = bed.world.submit(
        stages=[shared, train], tree=bed.tree(), installed=HERE, matrix={"lr": [1, 2, 3]}
    )  # fmt: skip
    ids = [one.run_id for one in reply.runs]
    ran: list[str] = []
    while any(bed.world.state(run) != "finished" for run in ids):
        bed.world.plan()
        run = next(run for run in ids if bed.world.state(run) == "starting")
        told = bed.end(run)
        ran.append(told.stage.name if told.stage else "")
    assert ran == ["prep", "train", "train", "train"]
    (by,) = [run for run in ids if bed.stages(run)["prep"].cache == "miss"]
    assert {bed.stages(run)["prep"].from_run for run in ids if run != by} == {by}


def test_a_stage_that_is_being_run_elsewhere_is_waited_for_and_done_here_if_that_fails(bed: Bed) -> None:
    world = bed.world
    first, second = start(bed, PREP), start(bed, PREP)
    other = start(bed, PREP, params={"a": 1})
    world.plan()
    world.plan()
    assert sorted(map(world.state, (first, second))) == ["queued", "starting"]
    assert world.state(other) == "starting", "there are cards; only what is the very same waits"
    busy, waits = (first, second) if world.state(first) == "starting" else (second, first)
    assert '"stage_elsewhere"' in world.run(waits).reason
    bed.end(busy, "user_error")
    world.plan()
    assert world.state(waits) == "starting"
    world.verb("retry", busy)
    world.plan()
    assert world.state(busy) == "queued", "now the other way round"
    bed.end(waits)
    assert world.state(busy) == world.state(waits) == "finished"
    assert bed.stages(busy)["prep"].from_run == waits


def test_a_run_that_may_be_heard_of_again_is_left_alone(world_of: Any) -> None:
    """Its attempt was declared gone while it worked on the stage that another run now leaves."""
    bed = Bed(world_of(a=1, b=1))
    world = bed.world
    slow = start(bed, PREP)
    world.plan()
    silent = world.newest(slow)
    world.renew(silent)
    world.engine.cut_off = {world.attempt(silent).node}
    world.live_through(40)
    assert world.state(slow) == "queued" and world.attempt(silent).lost_us
    world.verb("hold", slow)
    quick = start(bed, PREP)
    world.plan()
    world.verb("release", slow)
    world.plan()
    assert '"stage_elsewhere"' in world.run(slow).reason
    attempt = world.newest(quick)
    told = world.engine.processes[attempt].assignment
    world.outputs(attempt, shards=bed.leave(bed.given(told), "shards"))
    assert world.exit(attempt, "done").state == "finished"
    assert world.state(slow) == "queued", "its own attempt may still come back and end it"
    world.renew(silent)
    world.outputs(silent, shards=bed.leave(bed.given(told), "shards"))
    assert world.exit(silent, "done").state == "finished"


def test_a_model_is_registered_from_a_stage_that_was_taken(bed: Bed) -> None:
    last = Stage(name="eval", run="eval", needs=["train"], inputs={"model": "train.model"})
    more = {"stages": [PREP, TRAIN, last], "register": RegisterRule(model="m", path="model")}
    bed.finish(start(bed, **more))
    run = start(bed, **more)
    assert bed.finish(run) == ["eval"]
    assert bed.detail(run).models == ["m@2"]


def test_a_matrix_makes_all_of_its_runs_or_none(bed: Bed) -> None:
    reply = bed.world.submit(run="t {{params.lr}}", matrix={"lr": [1, 2], "seed": [3, 4]}, tags=["a"])
    assert [(one.ref, one.values) for one in reply.runs] == [
        ("demo#1", {"lr": 1, "seed": 3}), ("demo#2", {"lr": 1, "seed": 4}),
        ("demo#3", {"lr": 2, "seed": 3}), ("demo#4", {"lr": 2, "seed": 4}),
    ]  # fmt: skip
    assert reply.group == "matrix:demo#1" and reply.run_id == reply.runs[0].run_id
    for one in reply.runs:
        found = bed.detail(one.run_id)
        assert (found.spec.params, found.spec.seed, found.spec.matrix) == (
            {"lr": one.values["lr"]},
            one.values["seed"],
            {},
        )
        assert found.run.tags == ["a", "matrix:demo#1"]
    with pytest.raises(BadInput) as refused:
        bed.world.submit(run="t", matrix={"a": list(range(17)), "b": list(range(16))})
    (fault,) = refused.value.faults
    assert (fault.code, fault.params) == ("spec_matrix_too_many", {"count": 272, "most": 256})
    assert bed.world.submit(run="t", seed=1).ref == "demo#5", "nothing was made"
    dry = bed.world.submit(run="t", matrix={"a": [1, 2]}, dry_run=True)
    assert [one.values for one in dry.runs] == [{"a": 1}, {"a": 2}]


def test_branches_share_a_stage_only_where_their_code_is_equal_by_content(bed: Bed) -> None:
    """Whatever the branch, commit or owner is called: what counts is the bytes, and no attempt shares a working folder."""
    lines = {"main": {"a.py": "one"}, "side": {"a.py": "two"}, "copy": {"a.py": "one"}}
    runs: dict[str, str] = {}
    done: dict[str, list[str]] = {}
    for branch, files in lines.items():
        tree = msgspec.structs.replace(bed.tree(**files), branch=branch, commit=branch.encode().hex().ljust(40, "0"))
        runs[branch] = start(bed, tree=tree)
        done[branch] = bed.finish(runs[branch]) if bed.world.state(runs[branch]) != "finished" else []
    assert done == {"main": ["prep", "train", "eval"], "side": ["prep", "train", "eval"], "copy": []}
    assert {view.cache for view in bed.stages(runs["side"]).values()} == {"miss"}
    assert {view.from_run for view in bed.stages(runs["copy"]).values()} == {runs["main"]}
    products = {b: [view.products for view in bed.stages(run).values()] for b, run in runs.items()}
    assert products["copy"] == products["main"]
    folders = [attempt.id for run in runs.values() for attempt in bed.world.attempts(run)]
    assert len(set(folders)) == len(folders) == 6
