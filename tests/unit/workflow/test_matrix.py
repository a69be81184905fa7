"""A matrix: one run for each combination."""

from __future__ import annotations

from trackbed.wire.spec import Spec
from trackbed.workflow import matrix, spec


def test_every_combination_occurs_once_the_last_name_first() -> None:
    asked = Spec(run="x", params={"lr": 1, "b": 2}, matrix={"lr": [0.1, 0.2], "seed": [1, 2]})
    made = [matrix.with_values(asked, values) for values in matrix.combinations(asked)]
    assert [(one.params["lr"], one.seed) for one in made] == [(0.1, 1), (0.1, 2), (0.2, 1), (0.2, 2)]
    assert all(one.params["b"] == 2 and one.matrix == {} for one in made)
    assert matrix.count(asked) == 4


def test_a_spec_without_a_matrix_is_one_run() -> None:
    assert matrix.combinations(Spec(run="x")) == [{}] and matrix.count(Spec(run="x")) == 1


def test_a_param_that_stands_in_the_matrix_only_may_be_used_in_the_command() -> None:
    loaded = spec.read("run: t --lr {{params.lr}}\nmatrix: {lr: [1, 2]}\n")
    assert loaded.faults == [] and loaded.spec.matrix == {"lr": [1, 2]}


def test_no_fault_is_told_once_for_each_combination() -> None:
    (fault,) = spec.read("run: t --lr {{params.rl}}\nmatrix: {lr: [1, 2, 3], b: [1, 2]}\n").faults
    assert fault.code == "spec_param_undefined"
