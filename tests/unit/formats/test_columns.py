"""The binary answer: a document and its columns, bit for bit."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackbed.formats import columns
from trackbed.formats.columns import Column, ColumnsFault

DOUBLES = st.lists(st.floats(width=64)).map(lambda values: array("d", values))
WHOLE = st.lists(st.integers(-(2**63), 2**63 - 1)).map(lambda values: array("q", values))
SMALL = st.lists(st.integers(0, 2**32 - 1)).map(lambda values: array("I", values))


@given(st.lists(DOUBLES | WHOLE | SMALL), st.dictionaries(st.text(), st.integers()))
def test_what_was_written_is_read(given_columns: list["array[float]"], document: dict[str, int]) -> None:
    kinds = {"d": "f8", "q": "i8", "I": "u4"}
    body = columns.encode(document, [Column(kinds[one.typecode], one.tobytes()) for one in given_columns])
    found, read = columns.decode(body)
    assert found == document
    assert [(one.typecode, one.tobytes()) for one in read] == [(one.typecode, one.tobytes()) for one in given_columns]


def test_columns_begin_at_multiples_of_eight() -> None:
    marks = [Column("u4", b"abcd"), Column("f8", b"01234567")]
    body = columns.encode({"a": 0}, marks)
    assert body.index(b"abcd") % 8 == 0 and body.index(b"01234567") % 8 == 0 and len(body) % 8 == 0


@pytest.mark.parametrize("cut", [0, 3, 7, 20, -1])
def test_a_torn_answer_is_refused(cut: int) -> None:
    body = columns.encode({}, [Column("f8", bytes(80))])
    with pytest.raises(ColumnsFault):
        columns.decode(body[:cut])


@pytest.mark.parametrize(
    "head", [b'{"document":1,"columns":[["f2",1]]}', b'{"document":1,"columns":[["f8",-1]]}', b"[]"]
)
def test_an_unknown_kind_is_refused(head: bytes) -> None:
    with pytest.raises(ColumnsFault):
        columns.decode(columns.MAGIC + len(head).to_bytes(4, "little") + head + bytes(64))
