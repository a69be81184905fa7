"""A good spec becomes the record it says; the JSON Schema and the page are made from the same table."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from ruamel.yaml import YAML

from trackbed.base.errors import BadInput, Fault
from trackbed.wire.spec import DataPin, FromPin, RegisterRule, Resources, Spec, Stage
from trackbed.workflow import fields, spec

ROOT = Path(__file__).parents[3]

WHOLE = """\
project: demo
name: my-train
description: why
tags: [baseline, 损失]
data: {corpus: stdlib@latest}
from: {checkpoint: "demo#16@latest"}
code: .
environment: current
seed: 17
determinism: exact
params: {lr: 3e-4, batch: 64, words: [1, two], deep: {x: 1_0}, yes: yes, day: 2026-12-01}
resources: {cards_per_node: 2, nodes: 3, card_memory: 40 GiB, cpus_per_card: 8, time_limit: 12h}
priority: low
env: {OMP_NUM_THREADS: "4"}
run: python train.py --lr {{params.lr}}
launcher: process_per_node
checkpoint: {every: 30m, upload: every 4th}
on_preempt: {signal: USR1, grace: 2m}
on_rank_loss: end
fencing: strict
orphan_limit: 2h
retries: {user_error: 1, node: 5}
register: {model: demo-gpt, when: "metrics.'eval/loss' < 3.0"}
"""


def test_a_whole_spec_is_read_field_by_field() -> None:
    got = spec.load(WHOLE)
    assert got.params["lr"] == 3e-4 and isinstance(got.params["lr"], float)
    assert got.params["yes"] == "yes" and got.params["day"] == "2026-12-01"
    assert got.data == {"corpus": DataPin(ref="stdlib@latest")}
    assert got.from_ == FromPin(kind="checkpoint", ref="demo#16@latest")
    assert got.resources == Resources(
        cards_per_node=2, nodes=3, card_memory_bytes=40 * 2**30, cpus_per_card=8, time_limit_s=43200.0
    )  # fmt: skip
    assert (got.checkpoint.every_s, got.checkpoint.upload_every) == (1800.0, 4)
    assert (got.on_preempt.signal, got.on_preempt.grace_s, got.orphan_limit_s) == ("USR1", 120.0, 7200.0)
    assert got.register == RegisterRule(model="demo-gpt", when="metrics.'eval/loss' < 3.0")
    assert got.retries == {"user_error": 1, "node": 5} and got.tags == ["baseline", "损失"]


def test_cards_is_short_for_one_node() -> None:
    assert spec.load("run: x\nresources: {cards: 4}\n").resources == Resources(cards_per_node=4, nodes=1)
    assert spec.load("run: x\nresources: {cards: 0}\n").resources.cards == 0


@pytest.mark.parametrize(("text", "want"), [("200 steps", (200, None, False)), ("1 step", (1, None, False)),
                                            ("epoch", (None, None, True)), ("1h30m", (None, 5400.0, False))])  # fmt: skip
def test_every_is_steps_or_time_or_epoch(text: str, want: tuple[int | None, float | None, bool]) -> None:
    got = spec.load(f"run: x\ncheckpoint: {{every: {text}}}\n").checkpoint
    assert (got.every_steps, got.every_s, got.every_epoch) == want


def test_stages_keep_their_order_and_links() -> None:
    got = spec.load(
        "params: {n: 1}\nstages:\n"
        "  - {name: prep, run: 'p {{params.n}}', produces: {shards: out/}, resources: {cards: 0}}\n"
        "  - {name: train, run: t, needs: [prep], inputs: {corpus: prep.shards}, resources: {cards: 2}}\n"
    )
    assert got.stages == [
        Stage(name="prep", run="p {{params.n}}", produces={"shards": "out/"}, resources=Resources(cards_per_node=0)),
        Stage(
            name="train",
            run="t",
            needs=["prep"],
            inputs={"corpus": "prep.shards"},
            resources=Resources(cards_per_node=2),
        ),
    ]


def test_anchors_and_merges_work() -> None:
    got = spec.load("params: &base {a: 1, b: 2}\nstages:\n  - {name: s, run: x, params: {<<: *base, b: 3}}\n")
    assert got.stages[0].params == {"a": 1, "b": 3}


def test_set_wins_over_the_file_and_is_read_as_yaml() -> None:
    got = spec.load("run: x\nresources: {cards_per_node: 8, nodes: 2}\nparams: {lr: 1}\n",
                    ["params.lr=1e-3", "resources.cards=2", "params.new.deep=[1, a]", "tags=[x]", "name=y"])  # fmt: skip
    assert got.params == {"lr": 1e-3, "new": {"deep": [1, "a"]}}
    assert got.resources == Resources(cards_per_node=2) and got.tags == ["x"] and got.name == "y"


def test_set_replaces_what_is_run() -> None:
    assert spec.load("run: x\n", ["stages=[{name: a, run: b}]"]).run == ""


def test_a_fault_of_a_set_has_no_line() -> None:
    (fault,) = spec.read("seed: 1\nrun: x\n", ["seed=many"]).faults
    assert (fault.field, fault.line) == ("seed", None)


@pytest.mark.parametrize("text", ["lr", "=1", "a..b=1", "run.x=1", "tags.5=x"])
def test_a_set_that_fits_nowhere_is_refused(text: str) -> None:
    faults = spec.read("run: x\ntags: [a]\n", [text]).faults
    assert len(faults) == 1 and faults[0].field.startswith("--set")


def test_text_that_looks_like_a_number_is_warned_about() -> None:
    loaded = spec.read('run: x\nparams: {lr: "3e-4", name: a1}\n')
    assert not loaded.faults
    assert [(w.code, w.params["field"]) for w in loaded.warnings] == [("param_text_number", "params.lr")]


def test_what_is_sound_is_kept_for_a_dry_run() -> None:
    loaded = spec.read("run: x\ndata: {corpus: no@1}\nseed: many\nresources: {cards: 99}\n")
    assert (loaded.spec.run, loaded.spec.data["corpus"].ref, loaded.spec.resources.cards) == ("x", "no@1", 99)


def test_a_fault_of_the_server_finds_its_line() -> None:
    loaded = spec.read("run: x\ndata:\n  corpus: no@1\nstages: []\nresources: {cards: 99}\n")
    assert loaded.placed(Fault("dataset_unknown", "data.corpus")).line == 3
    assert loaded.placed(Fault("too_many", "resources.cards_per_node")).line == 5
    assert loaded.placed(Fault("other", "nowhere")).line == 1


def test_a_spec_over_the_wire_meets_the_same_rules() -> None:
    wrong = Spec(
        project="a b",
        run="t {{params.x}}",
        recipe="alchemy",
        env={"RANK": "1"},
        stages=[Stage(name="a", run="b", needs=["c"])],
    )
    codes = {fault.code for fault in spec.check(wrong)}
    assert codes >= {
        "spec_bad_name",
        "spec_param_undefined",
        "spec_kind_many",
        "spec_recipe_unknown",
        "spec_bad_env_name",
        "spec_stage_need_unknown",
    }
    assert spec.check(Spec(run="true")) == []


def test_a_dict_is_a_spec_too() -> None:
    assert spec.from_values({"run": "x", "resources": {"cards": 2}}).spec.resources.cards == 2


def test_the_published_schema_is_the_one_in_use() -> None:
    published = json.loads((ROOT / "docs/reference/spec.schema.json").read_text())
    assert published == fields.schema(), "run: python -m trackbed.workflow.page"
    jsonschema.Draft202012Validator.check_schema(published)


def test_the_page_shows_every_field() -> None:
    page = (ROOT / "docs/reference/spec.md").read_text()
    missing = [
        field.name
        for table in (fields.TOP, fields.RESOURCES, fields.CHECKPOINT, fields.STAGE)
        for field in table
        if f"`{field.name}`" not in page
    ]
    assert not missing


@pytest.mark.parametrize(
    "field", [f for f in fields.TOP if f.built and f.name not in ("recipe", "run", "stages")], ids=lambda f: f.name
)
def test_every_example_of_the_table_is_valid(field: fields.Field) -> None:
    text = (
        f"params: {{lr: 1}}\nrun: x\n{field.name}: {field.example}\n"
        if field.name != "params"
        else f"run: x\nparams: {field.example}\n"
    )
    loaded = spec.read(text)
    assert loaded.faults == [], loaded.faults


def test_a_missing_way_out_would_be_seen() -> None:
    with pytest.raises(BadInput) as caught:
        spec.load("zebra: 1\n")
    assert "\n  zebra (line 1): " in str(caught.value)
    assert "第 1 行" in caught.value.text("zh")


def test_yaml_1_2_reads_numbers_as_the_design_says() -> None:
    assert YAML(typ="safe", pure=True).load("3e-4") == 3e-4


@pytest.mark.parametrize(
    ("given", "code", "field"),
    [
        ({"resources": {"cards_per_node": -1}}, "spec_too_small", "resources.cards_per_node"),
        ({"resources": {"time_limit_s": -5}}, "spec_bad_duration", "resources.time_limit"),
        ({"tags": ["a\n"]}, "spec_bad_tag", "tags[0]"),
        ({"retries": {"killed": -5}}, "spec_too_small", "retries.killed"),
        ({"retries": {"bored": 1}}, "spec_not_one_of", "retries.bored"),
        ({"on_preempt": {"signal": "KILL", "grace_s": 1}}, "spec_not_one_of", "on_preempt.signal"),
        ({"on_preempt": {"grace_s": -1}}, "spec_bad_duration", "on_preempt.grace"),
        ({"seed": -1}, "spec_too_small", "seed"),
        ({"seed": 2**70}, "spec_too_great", "seed"),
        ({"orphan_limit_s": -1}, "spec_bad_duration", "orphan_limit"),
        ({"checkpoint": {"every_steps": -1}}, "spec_bad_every", "checkpoint.every"),
        ({"checkpoint": {"upload_every": 0}}, "spec_bad_nth", "checkpoint.upload"),
        ({"checkpoint": {"keep": {"last": 0}}}, "spec_too_small", "checkpoint.keep.last"),
        ({"checkpoint": {"keep": {"best": 1}}}, "spec_keep_by", "checkpoint.keep.best"),
        ({"register": {"model": "../m"}}, "spec_bad_name", "register.model"),
        ({"register": {"model": "m", "path": "../../x"}}, "spec_bad_inner_path", "register.path"),
        ({"params": {"": 1}}, "spec_bad_param_name", "params."),
        ({"description": "a\0b"}, "spec_bad_text", "description"),
        (
            {"run": "", "stages": [{"name": "a", "run": "true", "produces": {"x": "../../etc"}}]},
            "spec_bad_inner_path",
            "stages[0].produces.x",
        ),
        ({"run": "", "stages": [{"name": "../a", "run": "true"}]}, "spec_bad_name", "stages[0].name"),
        (
            {"run": "", "stages": [{"name": "a", "run": "true", "resources": {"cards_per_node": -1}}]},
            "spec_too_small",
            "stages[0].resources.cards_per_node",
        ),
    ],
)
def test_a_spec_that_never_was_a_file_meets_the_rules_of_the_file(given: dict[str, Any], code: str, field: str) -> None:
    faults = spec.check(msgspec.convert({"run": "true", **given}, Spec))
    assert [(fault.code, fault.field) for fault in faults] == [(code, field)]


def test_a_spec_with_everything_in_order_passes_over_the_wire_too() -> None:
    given = {
        "run": "true {{params.lr}}", "params": {"lr": 1e-3}, "data": {"corpus": {"ref": "team/stdlib@b3:" + "1" * 64}},
        "from": {"kind": "checkpoint", "ref": "run_abc@b3:" + "2" * 64, "step": 5}, "tags": ["a"], "env": {"A": ""},
        "resources": {"cards_per_node": 2, "card_memory_bytes": 2**34, "time_limit_s": 0.5, "not": ["h"]},
        "checkpoint": {"every_s": 1800.0, "upload_every": 4}, "on_preempt": {"signal": "INT", "grace_s": 0.25},
        "orphan_limit_s": 60.0, "retries": {"killed": 0}, "register": {"model": "m", "when": "metrics.loss < 3"},
    }  # fmt: skip
    assert spec.check(msgspec.convert(given, Spec)) == []
