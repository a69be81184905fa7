"""A file and a form of one another: what is not changed stays as it was written; each field says its rules and its origin."""

import random
from typing import Any

from trackbed.workflow.edit import with_values
from trackbed.workflow.form import form_of
from trackbed.workflow.read import read_yaml
from trackbed.workflow.template import read_template

TEXT = """\
# why this run is made
project: demo          # ours

params:
  lr: 3e-4    # found by hand
  batch: 64
tags: [a, b]  # words
stages:
  # first
  - name: prep
    run: 'python prep.py'
"""


def test_only_what_a_value_changes_is_written_anew() -> None:
    values = read_yaml(TEXT).value
    assert with_values(TEXT, values) == TEXT
    values["params"]["batch"] = 128
    assert with_values(TEXT, values) == TEXT.replace("64", "128")
    values["params"]["batch"] = 64
    del values["tags"]
    values["name"] = "new"
    changed = with_values(TEXT, values)
    assert "tags" not in changed and "name: new" in changed
    assert all(kept in changed for kept in ("# why this run is made", "# ours", "3e-4    # found by hand", "# first", "'python prep.py'"))  # fmt: skip


def test_any_change_reads_back_as_the_values_that_were_asked() -> None:
    dice = random.Random(3)
    for _ in range(200):
        values: dict[str, Any] = read_yaml(TEXT).value
        for _ in range(dice.randint(1, 4)):
            where = dice.choice(["params", "top", "tags", "stage"])
            value = dice.choice([1, 1.5, "1", "yes", True, None, "a: b # c", [], {}, {"x": [1, {"y": "z"}]}, "两\n行"])
            if where == "params":
                values["params"][dice.choice(["lr", "batch", "new one", "x"])] = value
            elif where == "tags":
                values["tags"] = [value] * dice.randint(0, 4)
            elif where == "stage":
                values["stages"] = [*values["stages"][: dice.randint(0, 1)], {"name": "n", "v": value}]
            else:
                values[dice.choice(["project", "name", "run"])] = value
        assert read_yaml(with_values(TEXT, values)).value == values


def test_a_text_that_is_no_mapping_is_written_from_the_values_alone() -> None:
    assert read_yaml(with_values("- a\n", {"run": "x"})).value == {"run": "x"}
    assert with_values("a: [", {"run": "x"}) == "run: x\n"


def test_each_field_says_where_its_value_is_from_and_what_holds_for_it() -> None:
    template, faults = read_template(
        "name: t\nspec: {recipe: pretrain, data: {corpus: c@1}, params: {lr: 3e-4}}\nrequired: [description]\nlocked: [recipe]\n"
        "schema: {properties: {params: {properties: {lr: {type: number, maximum: 0.01, description: how fast}, steps: {type: integer}}}}}\n"
    )
    assert not faults
    fields = {one.field: one for one in form_of(template, {"template": "t", "params": {"lr": 1e-3}, "seed": 3})}
    assert (fields["params.lr"].origin, fields["params.lr"].value) == ("file", 1e-3)
    assert fields["params.lr"].schema["maximum"] == 0.01 and fields["params.lr"].description == "how fast"
    assert (fields["data.corpus"].origin, fields["data.corpus"].value) == ("template", "c@1")
    assert fields["recipe"].locked and not fields["seed"].locked and fields["description"].required
    assert (fields["seed"].origin, fields["resources.cards"].origin, fields["params.steps"].value) == ("file", "default", None)  # fmt: skip
    assert {one.field for one in form_of(None, {})} >= {"project", "resources.cards", "run"}
