"""The key of a stage: equal for equal parts, different for any other; and the reason names what differs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from trackbed.wire.spec import CheckpointPolicy, DataPin, FromPin, RegisterRule, Resources, Spec, Stage, Uses
from trackbed.workflow import cache
from trackbed.workflow.cache import Earlier

SPEC = Spec(params={"lr": 0.1, "n": 1}, data={"corpus": DataPin(ref="c@1", digest="b3:c1")}, env={"A": "1"}, seed=7)
STAGE = Stage(name="prep", run="python prep.py", produces={"shards": "out/"}, params={"n": 2})


def parts(spec: Spec = SPEC, stage: Stage = STAGE, **more: Any) -> cache.Parts:
    given = {"tree": "b3:t", "environment": "b3:e", "inputs": {"raw": "b3:i"}, "program": "1.0", **more}
    return cache.parts_of(spec, stage, **given)


def spec_with(**changes: Any) -> cache.Parts:
    return parts(msgspec.structs.replace(SPEC, **changes))


def stage_with(**changes: Any) -> cache.Parts:
    return parts(stage=msgspec.structs.replace(STAGE, **changes))


CHANGED: dict[str, tuple[cache.Parts, list[str]]] = {
    "files": (parts(tree="b3:u"), ["files"]),
    "environment": (parts(environment="b3:f"), ["environment"]),
    "an input": (parts(inputs={"raw": "b3:j"}), ["inputs.raw"]),
    "the name of an input": (parts(inputs={"row": "b3:i"}), ["inputs.raw", "inputs.row"]),
    "seed": (spec_with(seed=8), ["seed"]),
    "determinism": (spec_with(determinism="recorded"), ["determinism"]),
    "a param": (spec_with(params={"lr": 0.2, "n": 1}), ["params.lr"]),
    "a number that becomes text": (spec_with(params={"lr": "0.1", "n": 1}), ["params.lr"]),
    "one param more": (spec_with(params={**SPEC.params, "b": None}), ["params.b"]),
    "a param of the stage": (stage_with(params={"n": 3}), ["params.n"]),
    "the version of the data": (spec_with(data={"corpus": DataPin(ref="c@2", digest="b3:c2")}), ["data.corpus"]),
    "a variable": (spec_with(env={"A": "2"}), ["env.A"]),
    "what it starts from": (spec_with(from_=FromPin(kind="model", ref="m@1", digest="b3:m")), ["from"]),
    "the command": (stage_with(run="python prep.py -v"), ["run"]),
    "cards": (stage_with(resources=Resources(cards_per_node=2)), ["cards_per_node"]),
    "nodes": (stage_with(resources=Resources(nodes=2)), ["nodes"]),
    "threads": (stage_with(resources=Resources(cpus_per_card=2)), ["cpus_per_card"]),
    "kind of card": (stage_with(resources=Resources(kind="x")), ["kind"]),
    "launcher": (stage_with(launcher="none"), ["launcher"]),
    "where a product lies": (stage_with(produces={"shards": "out2/"}), ["produces.shards"]),
    "how often it saves": (spec_with(checkpoint=CheckpointPolicy(every_steps=5)), ["checkpoint"]),
    "its name": (stage_with(name="prepare"), ["stage"]),
}


@pytest.mark.parametrize("what", CHANGED)
def test_whatever_a_product_depends_on_makes_another_key(what: str) -> None:
    changed, named = CHANGED[what]
    assert cache.key_of(changed) != cache.key_of(parts())
    assert cache.differences(changed, parts()) == named


def test_all_changes_have_keys_of_their_own() -> None:
    keys = {cache.key_of(changed) for changed, _ in CHANGED.values()}
    assert len(keys) == len(CHANGED)


def test_what_no_product_depends_on_changes_nothing() -> None:
    other = spec_with(
        name="again", project="p", description="d", tags=["t"], priority="high", retries={"node": 1},
        register=RegisterRule(model="m"), orphan_limit_s=1.0, fencing="strict",
    )  # fmt: skip
    limited = stage_with(resources=Resources(time_limit_s=5.0, only=["n1"], card_memory_bytes=9))
    assert cache.key_of(other) == cache.key_of(limited) == cache.key_of(parts())
    assert cache.key_of(spec_with(params={"n": 1, "lr": 0.1})) == cache.key_of(parts()), "the order of names is none"


def test_what_a_stage_says_it_does_not_use_changes_nothing() -> None:
    lean = msgspec.structs.replace(STAGE, uses=Uses(files=["prep.py"], params=["n"], data=[], tree="b3:cut"))
    other = msgspec.structs.replace(SPEC, params={"lr": 9, "n": 1}, data={})
    assert cache.key_of(parts(stage=lean)) == cache.key_of(parts(other, lean, tree="b3:u"))


def test_a_miss_names_what_differs_from_the_nearest_earlier_result() -> None:
    far = Earlier("run_a", "demo#1", spec_with(seed=1, env={}, params={}))
    near = Earlier("run_b", "demo#2", spec_with(params={"lr": 0.2, "n": 1}))
    why = cache.why_missed(parts(), [far, near])
    assert (why.code, why.params["run"], why.params["differs"]) == ("cache_differs", "demo#2", "params.lr: 0.2 → 0.1")
    assert cache.why_missed(parts(), []).code == "cache_first"
    files = cache.why_missed(parts(tree="b3:u"), [Earlier("run_c", "demo#3", parts())])
    assert files.params["differs"] == "files"


def test_a_long_list_of_differences_says_how_many_more_there_are() -> None:
    many = spec_with(params={f"p{at}": at for at in range(10)})
    why = cache.why_missed(many, [Earlier("run_a", "demo#1", parts())])
    assert why.params["differs"].endswith("+5") and len(why.params["parts"]) == 11
