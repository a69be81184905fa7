"""Parameters: every fault at once, and one digest for what the numbers depend on."""

from typing import Any

import pytest

from trackbed.base.errors import BadInput
from trackbed.engine import recipes
from trackbed.engine.checkpoint.rhythm import Rhythm
from trackbed.engine.config import Circumstances, digest_of, faults_of, resolve


def test_the_defaults_of_the_recipe_are_right_for_two_ranks() -> None:
    config = resolve("pretrain", {}, Circumstances(seed=17, world_size=2))
    assert 1_000_000 <= config.numbers.shape.parameters <= 3_000_000
    assert config.micro_batch * 2 == config.numbers.batch
    assert len(config.recipe_digest) == 64


def test_all_wrong_parameters_are_named_in_one_message() -> None:
    with pytest.raises(BadInput) as caught:
        resolve("pretrain", {"lr": "3e-4", "stepz": 1, "precision": "fp8", "batch": True, "seq": 0}, Circumstances())
    assert {(fault.field, fault.code) for fault in caught.value.faults} == {
        ("params.lr", "recipe_param_kind"),
        ("params.stepz", "recipe_param_unknown"),
        ("params.precision", "recipe_param_choice"),
        ("params.batch", "recipe_param_kind"),
        ("params.seq", "recipe_param_range"),
    }
    assert "steps" in caught.value.text()
    assert "{" not in caught.value.text()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, None, [0.1], {"a": 1}])
def test_a_learning_rate_that_is_no_finite_positive_number_is_refused(value: Any) -> None:
    assert [fault.field for fault in faults_of("pretrain", {"lr": value}, world_size=1)] == ["params.lr"]


def test_what_does_not_fit_together_is_named_too() -> None:
    params = {"batch": 7, "heads": 5, "warmup": 1000}
    found = faults_of("pretrain", params, world_size=2)
    assert [fault.code for fault in found] == ["recipe_heads_uneven", "recipe_batch_uneven", "recipe_warmup_long"]
    assert [f.code for f in faults_of("pretrain", {"batch": 8, "micro_batch": 3}, world_size=2)] == [
        "recipe_micro_batch_uneven"
    ]


def test_a_short_training_gets_a_short_warm_up_by_itself() -> None:
    assert resolve("pretrain", {"steps": 8}, Circumstances()).numbers.warmup == 2


def test_an_unknown_recipe_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadInput, match="pretrain"):
        resolve("pretrian", {}, Circumstances())


def test_the_specs_rhythm_counts_unless_the_parameter_is_given() -> None:
    by_time = Rhythm(seconds=30.0)
    assert resolve("pretrain", {}, Circumstances(rhythm=by_time)).rhythm == by_time
    assert resolve("pretrain", {"checkpoint_every": 7}, Circumstances(rhythm=by_time)).rhythm == Rhythm(steps=7)
    assert resolve("pretrain", {}, Circumstances()).rhythm == Rhythm(steps=50)


def test_the_digest_of_the_numbers_moves_with_the_numbers_only() -> None:
    def digest(around: Circumstances, **params: Any) -> str:
        return digest_of(resolve("pretrain", params, around).numbers.document())

    base = digest(Circumstances(seed=1))
    assert base == digest(Circumstances(seed=1, world_size=2), micro_batch=2, checkpoint_every=3, eval_samples=9)
    assert base != digest(Circumstances(seed=2))
    assert base != digest(Circumstances(seed=1), lr=0.001)


def test_every_parameter_says_what_it_is_about() -> None:
    for name in recipes.names():
        assert all(param.about for param in recipes.load(name).params.values())
