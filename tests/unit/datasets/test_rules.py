"""References to dataset versions."""

import pytest

from trackbed.base.errors import BadInput
from trackbed.datasets.rules import Ref, parse_ref


@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("corpus", Ref("corpus")),
        ("corpus@latest", Ref("corpus")),
        ("corpus@3", Ref("corpus", "3")),
        ("team/corpus@3", Ref("corpus", "3", "team")),
        ("语料.v1_x-2@b3:01234567", Ref("语料.v1_x-2", "b3:01234567")),
    ],
)
def test_a_reference_is_read_in_its_parts(text: str, ref: Ref):
    assert parse_ref(text) == ref
    assert parse_ref(text).number == (3 if ref.which == "3" else 0)


@pytest.mark.parametrize(
    "text", ["", "@3", "a@", "a@0", "a@03", "a@-1", "a@b3:123", "a@b3:0123456X", "a/b/c", "/a", "a b", "a:b", "a@1@2"]
)
def test_everything_else_is_refused_with_the_way_to_write_it(text: str):
    with pytest.raises(BadInput, match="name@latest"):
        parse_ref(text)
