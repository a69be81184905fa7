"""The canonical listing: exact, frozen, and impossible to use for leaving a folder."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackbed.base.errors import BadInput
from trackbed.base.ids import FileDigest
from trackbed.formats.tree import (
    MAGIC,
    Entry,
    decode_listing,
    encode_listing,
    file_digest,
    is_digest,
    link_leaves,
    tree_digest,
)

EMPTY_FILE = FileDigest("af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262")
names = st.binary(min_size=1, max_size=12).filter(lambda b: b"/" not in b and b"\0" not in b and b not in (b".", b".."))


def file(path: bytes, data: bytes = b"", *, executable: bool = False) -> Entry:
    return Entry(path, "f", executable, len(data), file_digest(data))


def test_the_empty_tree_has_the_frozen_digest():
    assert encode_listing([]) == b"trackbed tree 1\n"
    assert tree_digest(encode_listing([])) == "b3:fed89f7fd97513a2bbfec50d863798c053546adbb35b105594d2fb1dc0faed5d"


def test_a_small_tree_has_the_frozen_bytes_and_digest():
    listing = encode_listing(
        [
            Entry(b"link", "l", target=b"a/run.sh"),
            file(b"a/run.sh", b"#!/bin/sh\n", executable=True),
            Entry(b"empty", "d"),
            file(b"a.txt"),
            file(b"caf\xe9"),
        ]
    )
    sh = "bc1f407a11c9377c8b9b13f956b279c8462775105eb958fc9ae3c40de87cc96e"
    assert listing == (
        MAGIC
        + b"f\x05\0\0\0a.txt" + b"\0" * 8 + bytes.fromhex(EMPTY_FILE)
        + b"x\x08\0\0\0a/run.sh" + b"\x0a" + b"\0" * 7 + bytes.fromhex(sh)
        + b"f\x04\0\0\0caf\xe9" + b"\0" * 8 + bytes.fromhex(EMPTY_FILE)
        + b"d\x05\0\0\0empty"
        + b"l\x04\0\0\0link" + b"\x08\0\0\0a/run.sh"
    )  # fmt: skip
    assert tree_digest(listing) == "b3:04780061ea492aaca9bd46fb591632631a7d5cccf5916bcf3a00b17bd277e7ff"


@given(st.dictionaries(names, st.tuples(st.binary(max_size=20), st.booleans()), max_size=20))
def test_what_was_listed_is_read_back_in_the_order_of_path_bytes(files: dict[bytes, tuple[bytes, bool]]):
    entries = [file(path, data, executable=executable) for path, (data, executable) in files.items()]
    listing = encode_listing(entries)
    assert decode_listing(listing) == sorted(entries, key=lambda entry: entry.path)
    assert encode_listing(reversed(entries)) == listing


@given(st.binary(max_size=200))
def test_garbage_is_refused_or_is_canonical(tail: bytes):
    try:
        entries = decode_listing(MAGIC + tail)
    except BadInput:
        return
    assert encode_listing(entries) == MAGIC + tail


@given(st.dictionaries(names, st.binary(max_size=5), min_size=1, max_size=4), st.data())
def test_a_torn_listing_never_passes_for_the_whole(files: dict[bytes, bytes], data: st.DataObject):
    listing = encode_listing([file(path, content) for path, content in files.items()])
    cut = listing[: data.draw(st.integers(0, len(listing) - 1))]
    try:
        entries = decode_listing(cut)
    except BadInput:
        return
    assert encode_listing(entries) == cut


@pytest.mark.parametrize("path", [b"", b"/a", b"a/", b"a//b", b".", b"..", b"a/../b", b"a\0b", b"x" * 5000])
def test_a_path_that_could_leave_the_folder_is_refused(path: bytes):
    with pytest.raises(BadInput, match="cannot be in a tree"):
        encode_listing([Entry(path, "d")])


def test_colons_newlines_and_both_unicode_forms_are_plain_bytes():
    paths = [b"a:b", b"a\nb", "\u00e9".encode(), "e\u0301".encode(), b"\xff\xfe", b"-rf", b" "]
    assert {entry.path for entry in decode_listing(encode_listing([file(path) for path in paths]))} == set(paths)


@pytest.mark.parametrize("above", [Entry(b"a", "d"), file(b"a"), Entry(b"a", "l", target=b"b")])
def test_nothing_lies_below_a_file_a_link_or_an_empty_folder(above: Entry):
    with pytest.raises(BadInput) as refused:
        encode_listing([above, file(b"a-b"), file(b"a/b/c")])
    assert refused.value.code == "tree_path_below_file"


def test_a_path_stands_once():
    with pytest.raises(BadInput) as refused:
        encode_listing([file(b"a"), Entry(b"a", "d")])
    assert refused.value.code == "tree_path_twice"


@pytest.mark.parametrize(
    ("links", "leaves"),
    [
        ({b"l": b"x"}, False),
        ({b"a/l": b"../x"}, False),
        ({b"l": b"l"}, False),
        ({b"l": b"a/./b//c"}, False),
        ({b"l": b".."}, True),
        ({b"a/l": b"../../x"}, True),
        ({b"l": b"/etc/passwd"}, True),
        ({b"l": b""}, True),
        ({b"l": b"p/q/up/../../x", b"p/q/up": b"../../top"}, True),
        ({b"l": b"p/q/up/../x", b"p/q/up": b"../../top"}, False),
    ],
)
def test_a_link_is_followed_through_other_links_to_see_whether_it_leaves(links: dict[bytes, bytes], leaves: bool):
    assert link_leaves(next(iter(links)), links) is leaves


def test_a_listing_with_a_link_outside_is_refused_on_read_too():
    evil = MAGIC + b"l\x01\0\0\0l" + b"\x04\0\0\0/etc"
    with pytest.raises(BadInput) as refused:
        decode_listing(evil)
    assert refused.value.code == "storage_link_outside"


def test_a_digest_is_told_from_other_text():
    assert is_digest(tree_digest(encode_listing([])))
    assert not is_digest("b3:" + "A" * 64)
    assert not is_digest("a" * 64)
