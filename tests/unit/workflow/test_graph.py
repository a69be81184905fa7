"""Which stage is next, and what it is given."""

from __future__ import annotations

import random

import pytest

from trackbed.wire.spec import DataPin, Resources, Spec, Stage, Uses
from trackbed.workflow import graph


def test_a_stage_is_next_when_all_its_needs_are_done() -> None:
    stages = [Stage(name="eval", needs=["train"]), Stage(name="train", needs=["prep"]), Stage(name="prep")]
    assert graph.order(stages) == [2, 1, 0]
    assert graph.next_stage(stages, set()) == 2
    assert graph.next_stage(stages, {"prep"}) == 1
    assert graph.next_stage(stages, {"prep", "train", "eval"}) is None


def test_of_several_that_may_run_the_first_of_the_file_does() -> None:
    stages = [Stage(name="c", needs=["a"]), Stage(name="a"), Stage(name="b")]
    assert graph.order(stages) == [1, 0, 2]


def test_the_order_holds_every_stage_behind_all_that_it_needs() -> None:
    for seed in range(200):
        dice = random.Random(seed)
        names = [f"s{at}" for at in range(dice.randint(1, 12))]
        stages = [Stage(name=name, needs=dice.sample(names[:at], dice.randint(0, at))) for at, name in enumerate(names)]
        dice.shuffle(stages)
        order = graph.order(stages)
        assert sorted(order) == list(range(len(stages)))
        done: set[str] = set()
        for at in order:
            assert set(stages[at].needs) <= done
            done.add(stages[at].name)


def test_a_stage_is_given_what_it_says_it_uses_and_nothing_else() -> None:
    spec = Spec(params={"a": 1, "b": 2}, data={"x": DataPin(ref="x"), "y": DataPin(ref="y")})
    every, some = Stage(name="s", params={"b": 3}), Stage(name="s", params={"b": 3}, uses=Uses(params=["b"], data=[]))
    assert graph.params_for(spec, every) == {"a": 1, "b": 3} and set(graph.data_for(spec, every)) == {"x", "y"}
    assert graph.params_for(spec, some) == {"b": 3} and graph.data_for(spec, some) == {}
    assert graph.tree_for(Stage(name="s", uses=Uses(files=["a"], tree="b3:1")), "b3:2") == "b3:1"
    assert graph.tree_for(some, "b3:2") == "b3:2"
    assert graph.resources_for(spec, Stage(name="s", resources=Resources(cards_per_node=0))).cards_per_node == 0


@pytest.mark.parametrize(
    ("path", "names", "given"),
    [
        ("prep.py", ["prep.py"], True), ("lib/a/b.py", ["lib/"], True), ("lib/a.py", ["./lib"], True),
        ("library.py", ["lib"], False), ("a.py", ["*.py"], True), ("lib/a.py", ["*.py"], False),
        ("lib/a.py", ["lib/*.py"], True), ("lib", ["lib/a.py"], False), ("x", [], False), ("any/thing", ["."], True),
    ],
)  # fmt: skip
def test_files_are_named_by_path_folder_or_pattern(path: str, names: list[str], given: bool) -> None:
    assert graph.is_named(path, names) is given
