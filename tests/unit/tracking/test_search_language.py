"""Filters: what is understood, and where a wrong one says it is wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackbed.base.errors import BadInput
from trackbed.tracking.search import FIELDS, compile, order
from trackbed.tracking.search_parse import Both, Comparison, Either, Field, Not, parse


def test_the_example_of_the_front_door_parses() -> None:
    node = parse("metrics.loss < 2 and params.lr = 0.001 and tags has 'a'")
    assert isinstance(node, Both)
    assert [(t.field.group, t.field.name, t.operator, t.values) for t in node.parts if isinstance(t, Comparison)] == [
        ("metrics", "loss", "<", (2.0,)), ("params", "lr", "=", (0.001,)), ("", "tags", "has", ("a",)),
    ]  # fmt: skip


def test_and_binds_closer_than_or_and_not_closer_than_and() -> None:
    node = parse("not a = 1 and b = 2 or c = 3")
    assert isinstance(node, Either)
    first = node.parts[0]
    assert isinstance(first, Both)
    assert isinstance(first.parts[0], Not)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("metrics.'eval/loss' < 2", "eval/loss"), ('metrics."it\'s" < 2', "it's"), ("metrics.'it''s' < 2", "it's"),
        ("metrics.val/AR@100 < 2", "val/AR@100"), ("metrics.损失<2", "损失"), ("metrics.optim.lr <2", "optim.lr"),
        ("metrics.'有 空格' >= -3e-4", "有 空格"),
    ],
)  # fmt: skip
def test_every_name_can_be_asked_for(text: str, name: str) -> None:
    node = parse(text)
    assert isinstance(node, Comparison)
    assert (node.field.group, node.field.name) == ("metrics", name)


def test_aggregates_name_another_value_of_a_metric() -> None:
    node = parse("min(metrics.loss) < .5")
    assert isinstance(node, Comparison)
    assert node.field == Field("metrics", "loss", 1, "min")


def test_not_in_and_not_like_turn_the_test_around() -> None:
    assert isinstance(parse("state not in ('a', 'b')"), Not)
    assert isinstance(parse("name not like '%x%'"), Not)


@pytest.mark.parametrize(
    ("text", "code", "position"),
    [
        ("metrics.loss <", "filter_ends", 15),
        ("metrics.loss 2", "filter_unexpected", 14),
        ("name like x", "filter_unexpected", 11),
        ("(a = 1", "filter_ends", 7),
        ("a = 1)", "filter_unexpected", 6),
        ("a = 1 b = 2", "filter_unexpected", 7),
        ("and", "filter_unexpected", 1),
        ("name = 'open", "filter_unreadable", 8),
        ("a ; b", "filter_unreadable", 3),
        ("nonsense = 1", "filter_field_unknown", 1),
        ("state = 3", "filter_value_text", 7),
        ("metrics.loss = 'x'", "filter_value", 14),
        ("created > 'yesterday'", "filter_value", 9),
        ("metrics.loss like 'x'", "filter_unexpected", 14),
        ("(" * 60 + "a = 1" + ")" * 60, "filter_deep", 51),
    ],
)
def test_a_wrong_filter_says_where(text: str, code: str, position: int) -> None:
    with pytest.raises(BadInput) as caught:
        compile(text, now_us=0)
    assert (caught.value.code, caught.value.params["position"]) == (code, position)
    assert "{" not in caught.value.text("zh")


@given(st.text(max_size=60))
def test_no_text_makes_it_fail_otherwise(text: str) -> None:
    codes: list[str] = []
    try:
        compile(text, now_us=0)
    except BadInput as wrong:
        codes = [wrong.code]
    assert all(code.startswith("filter_") for code in codes)


def test_every_field_can_be_compared_and_ordered_by() -> None:
    for field in FIELDS:
        value = "true" if field == "outside" else "'a'" if field in ("tags", "ref") else "'2h ago'"
        for text in (f"{field} = {value}", f"{field} = 1"):
            try:
                compile(text, now_us=0)
                break
            except BadInput:
                continue
        else:
            pytest.fail(field)
    for field in ("created", "metrics.loss", "params.lr", "max(metrics.'a b')", "duration", "number"):
        assert order(field) is not None
    assert order("") is None
