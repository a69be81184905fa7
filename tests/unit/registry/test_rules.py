"""References to model versions."""

import pytest

from trackbed.base.errors import BadInput
from trackbed.registry.rules import Ref, checked_alias, parse_ref


@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("gpt", Ref("gpt")),
        ("gpt@12", Ref("gpt", "12")),
        ("team/gpt@prod-2", Ref("gpt", "prod-2", "team")),
        ("gpt@生产", Ref("gpt", "生产")),
    ],
)
def test_a_reference_is_read_in_its_parts(text: str, ref: Ref):
    assert parse_ref(text) == ref


@pytest.mark.parametrize("text", ["", "@1", "gpt@", "gpt@00", "gpt@a b", "a/b/c@1", "gpt@b3:1"])
def test_everything_else_is_refused(text: str):
    with pytest.raises(BadInput):
        parse_ref(text)


def test_an_alias_is_kept_in_composed_form():
    assert checked_alias("cafe\u0301") == "caf\u00e9"
