"""MLflow's search language, fields and values, without a database."""

import math

import pytest

from trackbed.base.errors import BadInput
from trackbed.server.mlflow.codec import LARGEST, Asked, offset_of, page_token, shown
from trackbed.server.mlflow.filters import Field, Term, parse, parse_order
from trackbed.server.mlflow.places import LOGGED, RUN, VERSION, Place, place_of, place_of_uri
from trackbed.tracking.facts_spelled import native, native_tag, spelled


def test_a_filter_is_comparisons_that_all_must_hold() -> None:
    assert parse("metrics.val/loss <= 1e-3 AND params.`my param`='it''s' and tags.mlflow.user ILIKE \"a%\"") == [
        Term(Field("metrics", "val/loss"), "<=", (0.001,)),
        Term(Field("params", "my param"), "=", ("it's",)),
        Term(Field("tags", "mlflow.user"), "ILIKE", ("a%",)),
    ]
    assert parse("  ") == []
    assert parse("status != 'FAILED'") == [Term(Field("attributes", "status"), "!=", ("FAILED",))]
    assert parse("attribute.run_id not in ('a' , 'b')") == [
        Term(Field("attributes", "run_id"), "IN", ("a", "b"), negated=True)
    ]
    assert parse("tags.a IS NULL and tag.b is not null") == [
        Term(Field("tags", "a"), "NULL"),
        Term(Field("tags", "b"), "NULL", negated=True),
    ]
    assert parse("params.中文 = 'a and b'") == [Term(Field("params", "中文"), "=", ("a and b",))]


@pytest.mark.parametrize(
    "text",
    ["x", "a =", "= 1", "a = 'x", "a = 1 b = 2", "a = 1 and", "a in ()", "a in ('x'", "a = x", "z.a = 1", "a ~ 1"],
)
def test_a_filter_that_cannot_be_read_says_where(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse(text)
    assert refused.value.params["position"] >= 1


def test_an_order_has_a_field_and_a_way() -> None:
    assert parse_order("metrics.loss DESC") == (Field("metrics", "loss"), False)
    assert parse_order(" params.`a b` asc ") == (Field("params", "a b"), True)
    assert parse_order("start_time") == (Field("attributes", "start_time"), True)
    for wrong in ("", "a b", "metrics.a DOWN"):
        with pytest.raises(BadInput):
            parse_order(wrong)


def test_fields_come_as_numbers_or_texts() -> None:
    asked = Asked({"a": "12", "b": 12, "c": 12.0, "d": "NaN", "e": None, "f": True, "g": ["x"], "h": "-Infinity"})
    assert [asked.whole(name) for name in "abc"] == [12, 12, 12]
    assert asked.whole("e", 7) == 7
    assert math.isnan(asked.number("d"))
    assert asked.number("h") == -math.inf
    assert (asked.flag("f"), asked.texts("g"), asked.text("g")) == (True, ["x"], "x")
    for wrong in ({"a": "x"}, {"a": 2**63}, {"a": {}}, {"a": "\ud800"}):
        with pytest.raises(BadInput):
            Asked(wrong).whole("a")
    with pytest.raises(BadInput):
        asked.need("nothing")


def test_values_are_answered_as_mlflow_stores_them() -> None:
    assert [shown(value) for value in (math.nan, math.inf, -math.inf, 1.5)] == ["NaN", LARGEST, -LARGEST, 1.5]
    assert offset_of(page_token(40)) == 40
    for wrong in ("x", page_token(-1), "e30="):
        with pytest.raises(BadInput):
            offset_of(wrong)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1), ("-3", -3), ("0.1", 0.1), ("1e-05", 1e-05), ("True", True), ("007", "007"), ("1.0", 1.0), ("1E5", "1E5"),
        ("nan", "nan"), ("inf", "inf"), ("", ""), ("None", "None"), (str(2**63), str(2**63)), ("1_0", "1_0"),
    ],
)  # fmt: skip
def test_a_param_is_a_number_only_where_the_number_spells_it(text: str, value: object) -> None:
    assert (native(text), type(native(text))) == (value, type(value))
    assert spelled(native(text)) == text


def test_a_tag_is_a_label_where_it_can_be_one() -> None:
    assert native_tag("a", "b") == "a=b"
    assert native_tag("a", "") == "a"
    assert native_tag("mlflow.user", "me") == ""
    assert native_tag("a", "two\nlines") == ""
    assert native_tag("a", "x" * 600) == ""


def test_a_path_leads_to_a_run_a_model_or_a_version() -> None:
    assert place_of("prj/run/artifacts/a/b") == Place(RUN, "run", "a/b")
    assert place_of("prj/run/artifacts") == Place(RUN, "run")
    assert place_of("prj/models/m-1/artifacts/MLmodel") == Place(LOGGED, "m-1", "MLmodel")
    assert place_of("registry/mod/3/x") == Place(VERSION, "mod/3", "x")
    assert place_of_uri("runs:/r/a/b") == Place(RUN, "r", "a/b")
    assert place_of_uri("models:/m-1") == Place(LOGGED, "m-1")
    assert place_of_uri("mlflow-artifacts:/p/r/artifacts/x") == Place(RUN, "r", "x")
    assert place_of_uri("models:/name/3") is None
    assert place_of_uri("s3://a/b") is None


@pytest.mark.parametrize(
    "path", ["a/../b/artifacts/c", "p/r/artifacts//x", "p/r/artifacts/./x", "p/r/artifacts/a\nb", "p/r/artifacts/a\\b"]
)
def test_a_path_that_could_be_a_trick_is_refused(path: str) -> None:
    with pytest.raises(BadInput):
        place_of(path)
