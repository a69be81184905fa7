"""What differs is told by name; groups are runs that differ in nothing but the seed; verdicts need a spread."""

import random
from typing import Any

import pytest

from trackbed.tracking.compare import Record, compare, rows, verdict
from trackbed.tracking.metrics_state import State
from trackbed.wire.compare import ComparedRun
from trackbed.wire.runs import EnvironmentRecord, Package, TreeFacts
from trackbed.wire.spec import DataPin, Resources, Spec


def record(
    number: int, *, loss: float = 1.0, seed: int = 0, files: Any = None, tree: str = "b3:1", **spec: Any
) -> Record:
    made = Spec(run="python train.py", seed=seed, **spec)
    state = State(count=2, last=loss + 0.5, last_step=9, min=loss, argmin=7, max=3.0, argmax=0)
    return Record(
        head=ComparedRun(id=f"run_{number}", ref=f"demo#{number}", seed=seed),
        spec=made, params=made.params, tree=TreeFacts(digest=tree), files=files,
        environment=EnvironmentRecord(python="CPython 3.11", packages=[Package(name="numpy", version="2.1")]),
        metrics={"loss": state, "system/cpu": State(count=1)}, definitions={"loss": {"goal": "min", "unit": "nats"}},
    )  # fmt: skip


def test_runs_that_are_the_same_differ_in_nothing_and_match_in_everything() -> None:
    found = compare([record(1), record(2)])
    assert not (found.params or found.data or found.code or found.environment or found.settings)
    assert found.matched == ["code", "environment", "data", "from", "params", "seed", "resources", "kind"]
    assert found.groups == 1


def test_every_difference_is_named_with_the_value_of_each_run() -> None:
    pin = DataPin(ref="corpus@1", dataset="corpus", version=1, digest="b3:abc")
    one = record(1, params={"lr": 0.1, "net": {"depth": 2, "width": 8}}, data={"corpus": pin})
    two = record(
        2, params={"lr": 0.1, "net": {"depth": 4, "width": 8}, "new": None}, tree="b3:2", env={"A": "1"}, seed=3,
        resources=Resources(cards_per_node=4),
    )  # fmt: skip
    found = compare([one, two])
    assert [(part.name, part.values) for part in found.params] == [("net.depth", [2, 4]), ("new", [None, None])]
    assert [(part.name, part.values) for part in found.data] == [("corpus", ["corpus@1 b3:abc", None])]
    assert [part.name for part in found.settings] == ["env.A", "resources.cards_per_node"]
    assert [part.name for part in found.code] == ["tree"]
    assert found.matched == ["environment", "from", "kind"]


@pytest.mark.parametrize(("one", "two"), [(1, 1.0), (True, 1), ("1", 1), ([1], [2])])
def test_values_of_different_types_are_different(one: Any, two: Any) -> None:
    assert len(compare([record(1, params={"a": one}), record(2, params={"a": two})]).params) == 1


def test_nan_is_not_a_difference_to_itself() -> None:
    assert compare([record(1, params={"a": float("nan")}), record(2, params={"a": float("nan")})]).params == []


def test_files_are_told_by_path_and_many_are_counted() -> None:
    one = record(1, files={"same.py": "aa", "a.py": "bb", "gone.py": "cc"})
    two = record(2, tree="b3:2", files={"same.py": "aa", "a.py": "dd"} | {f"n{at:04}": "ee" for at in range(600)})
    found = compare([one, two])
    assert [(part.name, part.values) for part in found.files[:2]] == [("a.py", ["bb", "dd"]), ("gone.py", ["cc", None])]
    assert (len(found.files), found.files_left_out) == (500, 102)


def test_repeats_are_a_group_with_mean_and_spread_and_a_verdict_against_the_first() -> None:
    old = [record(n, seed=n, loss=1.0 + n * 0.01, params={"lr": 1}) for n in range(4)]
    new = [record(n + 4, seed=n, loss=0.8 + n * 0.01, params={"lr": 2}) for n in range(4)]
    found = compare([*old, *new])
    assert [run.group for run in found.runs] == [0, 0, 0, 0, 1, 1, 1, 1]
    (column,) = found.metrics
    assert (column.key, column.unit) == ("loss", "nats")
    assert [(one.n, one.verdict) for one in column.groups] == [(4, ""), (4, "better")]
    assert column.groups[0].mean == pytest.approx(1.015)
    assert column.groups[0].deviation == pytest.approx(0.0129, abs=1e-4)


def test_a_metric_that_a_run_did_not_log_is_empty_there() -> None:
    other = record(2)
    silent = Record(head=other.head, spec=other.spec, params={})
    (column,) = compare([record(1), silent]).metrics
    assert column.runs[1] is None


def test_chance_alone_is_seldom_called_a_difference() -> None:
    chance, clear = random.Random(0), 0
    for _ in range(500):
        one, two = ([chance.gauss(1, 0.1) for _ in range(5)] for _ in range(2))
        clear += verdict(one, two, "min") in ("better", "worse")
    assert clear < 0.1 * 500
    assert verdict([1.0, 1.1, 0.9], [0.5, 0.6, 0.4], "min") == "better"
    assert verdict([1.0, 1.1, 0.9], [0.5, 0.6, 0.4], "max") == "worse"
    assert verdict([1.0], [0.5], "min") == "one_run"
    assert verdict([1.0], [1.0], "min") == "equal"


def test_asked_metrics_come_alone_and_in_the_asked_order() -> None:
    one = record(1)
    more = Record(
        head=one.head,
        spec=one.spec,
        params={},
        metrics={"a": State(count=1), "b": State(count=1), "system/x": State(count=1)},
    )
    assert [column.key for column in compare([more, record(2)], ["system/x", "b", "none"]).metrics] == ["system/x", "b"]


def test_the_table_for_a_file_has_one_value_a_run_in_every_row() -> None:
    table = list(rows(compare([record(1, params={"lr": 1}), record(2, params={"lr": 2}, loss=0.5)])))
    assert table[0] == ["part", "name", "demo#1", "demo#2"]
    assert {len(row) for row in table} == {4}
    assert ["params", "lr", 1, 2] in table
    assert ["best", "loss", 1.0, 0.5] in table
    assert ["group_verdict", "loss", "", "one_run"] in table
