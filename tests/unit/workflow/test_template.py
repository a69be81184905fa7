"""Templates: what a file says covers them, their rules hold, and every value says where it came from."""

from __future__ import annotations

from typing import Any, NamedTuple

import jsonschema
import pytest

from trackbed.workflow import template as templates
from trackbed.workflow.template import Template, read_template

TEXT = """\
name: pretrain
description: a small model
spec:
  recipe: pretrain
  data: {corpus: stdlib@latest}
  params: {lr: 3e-4, steps: 10}
  resources: {cards: 2}
  tags: [small]
required: [description, project]
locked: [recipe, params.steps]
schema:
  properties:
    description: {type: string, minLength: 5, description: why the run is made}
    priority: {enum: [normal, low]}
    params:
      required: [lr]
      properties:
        lr: {type: number, minimum: 1e-6, maximum: 0.01}
        layers: {type: integer, default: 2}
"""


def good(text: str = TEXT) -> Template:
    read, faults = read_template(text)
    assert faults == []
    return read


def resolved(**values: Any) -> templates.Resolution:
    return templates.resolve(good(), {"description": "a reason", "project": "demo", "template": "pretrain", **values})


def test_a_file_covers_the_template_and_mappings_are_joined() -> None:
    made = resolved(params={"lr": 1e-3}, tags=["mine"], seed=7)
    assert made.faults == []
    spec = made.spec
    assert (spec.recipe, spec.params, spec.tags, spec.seed) == (
        "pretrain", {"lr": 1e-3, "steps": 10, "layers": 2}, ["mine"], 7
    )  # fmt: skip
    assert spec.resources.cards_per_node == 2 and spec.data["corpus"].ref == "stdlib@latest"


def test_what_can_be_said_in_one_way_only_is_taken_from_the_file() -> None:
    assert templates.merge({"recipe": "pretrain", "seed": 1}, {"run": "x"}) == {"seed": 1, "run": "x"}
    assert templates.merge({"resources": {"cards": 2, "kind": "a"}}, {"resources": {"nodes": 2, "cards_per_node": 4}}) == {
        "resources": {"kind": "a", "nodes": 2, "cards_per_node": 4}
    }  # fmt: skip
    assert templates.merge({"resources": {"cards_per_node": 4, "nodes": 2}}, {"resources": {"cards": 1}}) == {
        "resources": {"cards": 1}
    }


def test_neither_side_of_a_merge_is_changed() -> None:
    under: dict[str, Any] = {"params": {"a": [1]}}
    merged = templates.merge(under, {"params": {"b": 2}})
    merged["params"]["a"].append(2)
    assert under == {"params": {"a": [1]}}


class Refused(NamedTuple):
    values: dict[str, Any]
    code: str
    field: str
    says: str


REFUSED = {
    "locked": Refused({"params": {"steps": 11}}, "template_locked", "params.steps", "fixed by the template: 10"),
    "locked kind": Refused({"run": "x"}, "template_locked", "recipe", 'fixed by the template: "pretrain"'),
    "required": Refused({"project": None}, "template_required", "project", "asks for project"),
    "too short": Refused({"description": "x"}, "spec_too_short", "description", "at least 5"),
    "required with a text": Refused({"description": None}, "template_required_about", "description", "why the run is made"),
    "too great": Refused({"params": {"lr": 1}}, "spec_too_great", "params.lr", "0.01"),
    "wrong type": Refused({"params": {"layers": 1.5}}, "spec_recipe_param_type", "params.layers", "numbers"),
    "no choice": Refused({"priority": "high"}, "spec_not_one_of", "priority", "normal, low"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_breaks_a_rule_of_the_template_is_told_by_field_with_the_way_out(name: str) -> None:
    refused = REFUSED[name]
    values = {key: value for key, value in refused.values.items() if value is not None}
    given = {"description": "a reason", "project": "demo", **values}
    given = {key: value for key, value in given.items() if refused.values.get(key, 1) is not None}
    faults = [one for one in templates.resolve(good(), given).faults if one.field == refused.field]
    assert refused.code in [one.code for one in faults], templates.resolve(good(), given).faults
    assert any(refused.says in one.text("en") for one in faults)
    assert all("{" not in one.text("zh") for one in faults)


def test_all_faults_come_at_once() -> None:
    made = templates.resolve(good(), {"params": {"steps": 1, "lr": 9}, "seed": "x", "priority": "high"})
    assert {fault.field for fault in made.faults} == {
        "params.steps", "params.lr", "seed", "priority", "description", "project",
    }  # fmt: skip


def test_the_same_value_as_a_locked_one_may_be_given() -> None:
    assert resolved(recipe="pretrain", params={"steps": 10}).faults == []


def test_every_value_says_where_it_came_from() -> None:
    values = {"description": "a reason", "project": "demo", "params": {"lr": 1e-3}, "seed": 3}
    made = templates.resolve(good(), values)
    found = {one.field: (one.value, one.origin) for one in templates.origins(good(), values, ["seed"], made.values)}
    assert found["params.lr"] == (1e-3, "file") and found["params.steps"] == (10, "template")
    assert found["params.layers"] == (2, "template") and found["seed"] == (3, "set")
    assert found["recipe"] == ("pretrain", "template") and found["priority"] == ("normal", "default")
    assert templates.origins(None, {"run": "x"}, [], {"run": "x"})[0].origin == "file"


def test_one_schema_says_all_that_a_form_needs() -> None:
    schema = templates.full_schema(good())
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["required"] == ["description", "project"]
    params = schema["properties"]["params"]["properties"]
    assert params["steps"] == {"default": 10, "readOnly": True} and params["lr"]["default"] == 3e-4
    assert schema["properties"]["recipe"]["readOnly"] is True


def test_the_difference_of_two_versions_is_told_by_field() -> None:
    after = good(TEXT.replace("3e-4", "1e-4").replace("locked: [recipe, params.steps]", "locked: [recipe]"))
    assert [(one.field, one.before, one.after) for one in templates.differences(good(), after)] == [
        ("locked", ["recipe", "params.steps"], ["recipe"]), ("spec.params.lr", 3e-4, 1e-4),
    ]  # fmt: skip
    assert templates.differences(good(), good()) == []


class Wrong(NamedTuple):
    text: str
    code: str
    field: str
    line: int | None
    says: str


HEAD = "name: t\n"
WRONG = {
    "not a mapping": Wrong("- a\n", "template_not_mapping", "", 1, "a mapping with name"),
    "not yaml": Wrong("name: [\n", "spec_not_yaml", "", 2, "YAML"),
    "no name": Wrong("description: x\n", "template_name_bad", "name", 1, "no name of a template"),
    "bad name": Wrong("name: a b\n", "template_name_bad", "name", 1, "no name of a template"),
    "key misspelt": Wrong(HEAD + "requierd: [a]\n", "spec_unknown_field_near", "requierd", 2, "required"),
    "unknown key": Wrong(HEAD + "zebra: 1\n", "spec_unknown_field", "zebra", 2, "Known here"),
    "spec no mapping": Wrong(HEAD + "spec: 3\n", "spec_want_object", "spec", 2, "mapping"),
    "locked no list": Wrong(HEAD + "locked: seed\n", "template_want_fields", "locked", 2, "list of fields"),
    "spec wrong": Wrong(HEAD + "spec:\n  seed: x\n", "spec_want_integer", "spec.seed", 3, "whole number"),
    "spec misspelt": Wrong(HEAD + "spec:\n  sed: 1\n", "spec_unknown_field_near", "spec.sed", 3, "seed"),
    "spec not built": Wrong(HEAD + "spec:\n  notify: [o]\n", "not_yet", "spec.notify", 3, "not built"),
    "nested": Wrong(HEAD + "spec: {template: a}\n", "template_nested", "spec.template", 2, "cannot start"),
    "locked without value": Wrong(HEAD + "locked: [seed]\n", "template_locked_empty", "locked[0]", 2, "no value"),
    "required unknown": Wrong(HEAD + "required: [dta.x]\n", "template_field_unknown", "required[0]", 2, "no field of a spec"),
    "schema keyword": Wrong(HEAD + "schema: {properties: {name: {pattern: '(a+)+$'}}}\n", "template_keyword", "schema.properties.name.pattern", 2, "is not taken"),
    "schema from afar": Wrong(HEAD + "schema: {$ref: 'http://127.0.0.1/x'}\n", "template_keyword", "schema.$ref", 2, "is not taken"),
    "schema type": Wrong(HEAD + "schema: {properties: {seed: {type: int}}}\n", "spec_not_one_of", "schema.properties.seed.type", 2, "integer"),
    "schema limit": Wrong(HEAD + "schema: {properties: {seed: {minimum: low}}}\n", "template_keyword_value", "schema.properties.seed.minimum", 2, "a number"),
    "schema format": Wrong(HEAD + "schema: {properties: {name: {format: email}}}\n", "spec_not_one_of", "schema.properties.name.format", 2, "dataset-ref"),
    "schema no mapping": Wrong(HEAD + "schema: {properties: {name: text}}\n", "spec_want_object", "schema.properties.name", 2, "mapping"),
    "default breaks the rule": Wrong(HEAD + "schema: {properties: {seed: {maximum: 5, default: 9}}}\n", "spec_too_great", "spec.seed", 1, "5"),
    "value breaks the rule": Wrong(HEAD + "schema: {properties: {seed: {maximum: 5}}}\nspec: {seed: 9}\n", "spec_too_great", "spec.seed", 3, "5"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_template_is_told_where_and_how_to_mend(name: str) -> None:
    wrong = WRONG[name]
    faults = read_template(wrong.text)[1]
    assert [(one.code, one.field, one.line) for one in faults] == [(wrong.code, wrong.field, wrong.line)]
    assert wrong.says in faults[0].text("en")
    assert "{" not in faults[0].text("zh")


def test_a_template_that_is_too_large_is_refused() -> None:
    assert [one.code for one in read_template("a" * 300_000)[1]] == ["template_too_large"]
