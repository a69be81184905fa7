"""Frames, pages and packs of bytes: what goes in comes out; what is torn is refused, never misread."""

import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trackbed.formats import frame, manifest, pack
from trackbed.formats.footer import Base, FileRow, FrameRow
from trackbed.formats.frame import FrameFault, Header, Table
from trackbed.formats.manifest import ManifestFault, Root, Row


def _header(codec: int, raw: bytes, depth: int = 0) -> Header:
    return Header(bytes(16), 0, len(raw), codec, depth, 1)


@given(raw=st.one_of(st.binary(max_size=3000), st.integers(0, 900_000).map(lambda n: b"abc\n" * (n // 4))))
@settings(max_examples=40, deadline=None)
def test_what_is_compressed_comes_back(raw: bytes):
    codec, body = frame.compress(raw)
    assert frame.expand(_header(codec, raw), memoryview(body), b"") == raw


@given(raw=st.binary(max_size=5000), base=st.binary(min_size=1, max_size=5000))
@settings(max_examples=40, deadline=None)
def test_a_delta_comes_back_with_its_base(raw: bytes, base: bytes):
    body = frame.compress_against(raw, base)
    assert frame.expand(_header(frame.DELTA, raw, 1), memoryview(body), base) == raw


@given(values=st.integers(0, 3000), width=st.sampled_from([1, 2, 4, 8]), same=st.booleans())
@settings(max_examples=40, deadline=None)
def test_byte_planes_come_back(values: int, width: int, same: bool):
    raw = os.urandom(values * width)
    assert frame.expand(_header(frame.PLANES, raw), memoryview(frame.compress_planes(raw, width)), b"") == raw
    base = raw if same else os.urandom(len(raw))
    body = frame.compress_planes(raw, width, base=base)
    assert frame.expand(_header(frame.XOR, raw, 1), memoryview(body), base) == raw


def test_what_does_not_shrink_is_stored():
    raw = os.urandom(500_000)
    assert frame.compress(raw) == (frame.STORED, raw)


@given(
    bases=st.lists(
        st.tuples(st.sampled_from([b"a" * 16, b"b" * 16]), st.integers(0, 2**32 - 1), st.integers(0, 9)), max_size=9
    ),
    rows=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2**28 - 1)), max_size=30),
    body=st.binary(max_size=20),
)
def test_a_table_is_read_as_it_was_written(
    bases: list[tuple[bytes, int, int]], rows: list[tuple[int, int]], body: bytes
):
    table = Table(tuple(Base(*one) for one in bases), tuple(rows))
    found, rest = frame.read_table(frame.write_table(table) + body)
    assert (found, bytes(rest)) == (table, body)


@given(data=st.binary(max_size=80))
def test_noise_is_no_frame_and_no_table(data: bytes):
    with pytest.raises(FrameFault):
        frame.read_header(data)
    try:
        frame.read_table(data)
    except FrameFault:
        pass


@pytest.mark.parametrize("change", [{"codec": 9}, {"raw_length": frame.MAX_RAW + 1}, {"depth": 9}])
def test_a_header_over_the_limits_is_refused(change: dict[str, int]):
    values = {"frame_id": bytes(16), "sealed_length": 1, "raw_length": 1, "codec": 1, "depth": 0, "generation": 1}
    with pytest.raises(FrameFault):
        frame.read_header(Header(**{**values, **change}).pack())  # pyright: ignore[reportArgumentType]


@given(cut=st.integers(0, 400))
def test_a_footer_is_read_as_it_was_written_and_refused_when_torn(cut: int):
    frames = [
        FrameRow(b"f" * 16, 96, 1000, 2, 1, 5000, (Base(b"g" * 16, 0, 0),), ((b"c" * 32, 3000), (b"d" * 32, 2000))),
        FrameRow(b"h" * 16, 1128, 10, 1, 0, 0, (), ((b"e" * 32, 0),)),
    ]
    files = [FileRow(b"i" * 32, 5000, b"c" * 32, 1)]
    data = pack.write_footer(frames, files)
    rows = pack.read_footer(data, pack_id=b"p" * 16, size=9, kind=0, owner=b"")
    assert (list(rows.frames), list(rows.files)) == (frames, files)
    if cut < len(data):
        with pytest.raises(pack.PackFault):
            pack.read_footer(data[:cut], pack_id=b"p" * 16, size=9, kind=0, owner=b"")


def test_pages_end_where_their_ids_say():
    dice = random.Random(4)
    rows = [Row(dice.randbytes(32), 7) for _ in range(20_000)]
    pages = list(manifest.split_pages(rows))
    assert [row for page in pages for row in page] == rows
    assert 500 < 20_000 / len(pages) < 2100
    moved = list(manifest.split_pages([*rows[:9000], Row(b"\1" * 32, 7), *rows[9000:]]))
    assert len([page for page in moved if page in pages]) >= len(pages) - 3


@given(rows=st.lists(st.tuples(st.binary(min_size=32, max_size=32), st.integers(0, 2**32 - 1)), max_size=50))
def test_roots_and_pages_are_read_as_they_were_written(rows: list[tuple[bytes, int]]):
    page = [Row(*one) for one in rows]
    for level in (1, 2):
        assert manifest.read_page(manifest.write_page(page, level=level), level=level) == page
        root = Root("ab" * 32, sum(row.size for row in page), level, page)  # pyright: ignore[reportArgumentType]
        assert manifest.read_root(manifest.write_root(root)) == root


@given(data=st.binary(max_size=200))
def test_noise_is_no_root_and_no_record(data: bytes):
    with pytest.raises(ManifestFault):
        manifest.read_root(data)
    with pytest.raises(ManifestFault):
        manifest.read_record(data)
