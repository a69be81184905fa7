"""A finished run registers what it made, by its rule and by hand, with everything it was made from."""

from __future__ import annotations

from pathlib import Path

import pytest
from control_world import World

from trackbed.base.errors import BadInput, NotFound
from trackbed.registry.service import show
from trackbed.server.flows.register import register_by_hand
from trackbed.server.flows.when import first_unmet, parse
from trackbed.wire.spec import RegisterRule


def outputs(world: World, folder: Path) -> str:
    (folder / "model").mkdir(parents=True)
    (folder / "model" / "weights.bin").write_bytes(b"\x00\x01" * 100)
    (folder / "report.txt").write_text("fine")
    return str(world.app.store.put_tree(folder).digest)


def test_a_finished_run_registers_its_model_with_provenance(world: World, tmp_path: Path) -> None:
    run, attempt = world.started(register=RegisterRule(model="demo-gpt"), params={"lr": 0.1}, seed=3)
    world.checkpoint(attempt, 50)
    world.outputs(attempt, digest=outputs(world, tmp_path / "out"))
    assert world.exit(attempt, "done").state == "finished"
    model = world.app.db.read(lambda tx: show(tx, world.ann, "demo-gpt"))
    made = model.versions[0]
    assert (made.version, made.run_id, made.run_ref) == (1, run, "demo#1")
    assert made.provenance["seed"] == 3 and made.provenance["params"] == {"lr": 0.1}
    assert made.provenance["checkpoint"][0]["step"] == 50
    paths = [entry.path for entry in world.app.store.read_listing(made.digest)]
    assert paths == [b"weights.bin"], "the tree of a model begins at its own folder"
    assert "run.registered" in world.kinds(run)


def test_a_condition_that_does_not_hold_registers_nothing_and_says_so(world: World, tmp_path: Path) -> None:
    run, attempt = world.started(register=RegisterRule(model="demo-gpt", when="metrics.'eval/loss' < 3.0"))
    world.outputs(attempt, digest=outputs(world, tmp_path / "out"))
    assert world.exit(attempt, "done").state == "finished"
    assert "run.not_registered" in world.kinds(run)
    with pytest.raises(NotFound):
        world.app.db.read(lambda tx: show(tx, world.ann, "demo-gpt"))


def test_a_run_that_left_nothing_is_finished_all_the_same(world: World) -> None:
    run, attempt = world.started(register=RegisterRule(model="demo-gpt"))
    assert world.exit(attempt, "done").state == "finished"
    assert "run.nothing_to_register" in world.kinds(run)


def test_an_output_can_be_registered_by_hand_twice_as_one_version(world: World, tmp_path: Path) -> None:
    run, attempt = world.started()
    world.outputs(attempt, digest=outputs(world, tmp_path / "out"))
    world.exit(attempt, "done")
    first = register_by_hand(world.app, world.ann, "by-hand", run, "model")
    again = register_by_hand(world.app, world.ann, "by-hand", run, "model")
    assert (first.version, again.version) == (1, 1)
    one_file = register_by_hand(world.app, world.ann, "by-hand", run, "report.txt")
    assert one_file.version == 2
    with pytest.raises(NotFound) as refused:
        register_by_hand(world.app, world.ann, "by-hand", run, "nothing")
    assert refused.value.code == "output_missing"


def test_conditions_are_comparisons_joined_by_and() -> None:
    text = "metrics.'eval/loss' < 3.0 and metrics.accuracy >= 0.9"
    assert [(one.key, one.operator, one.value) for one in parse(text)] == [
        ("eval/loss", "<", 3.0),
        ("accuracy", ">=", 0.9),
    ]
    assert first_unmet(text, {"eval/loss": 2.0, "accuracy": 0.95}) is None
    unmet = first_unmet(text, {"eval/loss": 2.0, "accuracy": 0.5})
    assert unmet is not None and unmet.key == "accuracy"
    missing = first_unmet(text, {"accuracy": 1.0})
    assert missing is not None and missing.key == "eval/loss"
    assert first_unmet("metrics.x < 1", {"x": float("nan")}) is not None
    assert parse("metrics.损失 < 1e-3")[0].value == 1e-3
    assert parse("") == ()


@pytest.mark.parametrize(
    "text", ["loss < 3", "metrics.loss <", "metrics.a < 1 or metrics.b < 2", "metrics.a < 1 and", "nonsense"]
)
def test_what_is_no_condition_is_refused_with_the_place(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse(text)
    assert refused.value.code == "when_wrong"
