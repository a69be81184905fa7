"""Replay of samples: a command that gives the same is equal, and one that does not says where."""

import sys

import pytest

from trackbed.base.errors import Damaged
from trackbed.client import samples
from trackbed.client.samples import Sample

DOUBLE = [sys.executable, "-c", "import json, sys; print(json.dumps([2 * x for x in json.load(sys.stdin)]))"]


def test_a_command_that_gives_the_same_is_equal() -> None:
    assert samples.replay(Sample(name="a", step=1, inputs=[1, 2], outputs=[2, 4]), DOUBLE).verdict == "equal"


def test_the_first_difference_is_named() -> None:
    found = samples.replay(Sample(name="a", step=1, inputs=[1, 2], outputs=[2, 5]), DOUBLE)
    assert (found.verdict, found.what) == ("differs", "$[1]: 5 → 4")


def test_a_command_that_fails_says_why_and_masked_inputs_are_not_run() -> None:
    broken = [sys.executable, "-c", "import sys; sys.exit('no model')"]
    found = samples.replay(Sample(name="a", step=1, inputs=[], outputs=[]), broken)
    assert found.verdict == "failed" and "no model" in found.what
    assert samples.replay(Sample(name="a", step=1, masked=["text"]), broken).verdict == "masked"
    assert samples.replay(Sample(name="a", step=1), ["/no/such/program"]).verdict == "failed"


@pytest.mark.parametrize(
    ("kept", "found", "tolerance", "where"),
    [
        (1, 1.0, 0.0, ""), (1.0, 1.05, 0.1, ""), (1.0, 1.05, 0.01, "$: 1.0 → 1.05"), ({"a": 1}, {"b": 1}, 0.0, "$.a"),
        ([1], [1, 2], 0.0, "$: 1 → 2"), (True, 1, 0.0, "$: True → 1"), ({"a": [1, "x"]}, {"a": [1, "y"]}, 0.0, "$.a[1]: 'x' → 'y'"),
    ],
)  # fmt: skip
def test_documents_differ_where_they_differ(kept: object, found: object, tolerance: float, where: str) -> None:
    assert samples.difference(kept, found, tolerance) == where


def test_a_file_that_is_no_sample_is_refused() -> None:
    with pytest.raises(Damaged):
        samples.read("samples/x.json", b"[]")
