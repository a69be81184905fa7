"""Where files are cut: all engines agree, windows do not show, and the cuts of this version never move."""

import io
import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trackbed.formats.cut import CutRule, Cutter, compiled_engine, cuts_by_reference, gear_table, read_chunks

KEY = bytes(range(32))
SMALL = CutRule(min=64, avg=256, max=1024, strict_bits=9, loose_bits=7)

_FIRST_GEARS = [2143924180, 104147940, 570232912, 1076671166]
_FROZEN_CUTS = [22298, 47126, 71203, 94781, 112293, 141601, 160350, 190557, 195874, 200000]
_FROZEN_SMALL = [338, 876, 1388, 1620, 2123, 2363, 2767, 3075, 3150, 3586, 3767, 3835, 4000]


@pytest.fixture(autouse=True, params=["numpy", "compiled"], scope="module")
def _engine(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every sentence below is asked of both."""
    before = Cutter.compiled_from
    Cutter.compiled_from = 0 if request.param == "compiled" else 1 << 62
    if request.param == "compiled" and not compiled_engine():
        pytest.skip("numba is not installed here (extra `fast`)")
    yield
    Cutter.compiled_from = before


def _noise(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def _lines(size: int) -> bytes:
    dice = random.Random(2)
    return b"".join(b'{"id": %d, "text": "%s"}\n' % (n, dice.randbytes(20).hex().encode()) for n in range(size // 64))


def test_the_engine_cuts_where_the_reference_does():
    for data in (_noise(400_000), _lines(400_000), b"\0" * 300_000, b"ab" * 100_000, b"x" * 100, b""):
        rule = CutRule()
        assert Cutter(KEY, rule).cuts(memoryview(data)) == cuts_by_reference(data, gear_table(KEY), rule)


@given(data=st.binary(max_size=6000), key=st.binary(min_size=32, max_size=32))
@settings(max_examples=60, deadline=None)
def test_the_engines_agree_on_anything_under_any_key(data: bytes, key: bytes):
    assert Cutter(key, SMALL).cuts(memoryview(data)) == cuts_by_reference(data, gear_table(key), SMALL)


@pytest.mark.parametrize("window", [2048, 3001, 70_000, 1_000_000])
def test_a_stream_through_a_window_is_cut_as_in_one_piece(window: int):
    data = _lines(300_000)
    cutter = Cutter(KEY, SMALL)
    whole = cutter.cuts(memoryview(data))
    pieces = [bytes(view) for views in read_chunks(io.BytesIO(data), cutter, window=window) for view in views]
    assert b"".join(pieces) == data
    assert [len(piece) for piece in pieces] == [end - start for start, end in zip([0, *whole], whole, strict=False)]


@pytest.mark.parametrize("byte", range(0, 256, 5))
def test_a_run_of_one_byte_makes_the_largest_chunks(byte: int):
    ends = Cutter(KEY, SMALL).cuts(memoryview(bytes([byte]) * 10_000))
    assert ends[:9] == [1024 * n for n in range(1, 10)]


def test_sizes_keep_the_limits():
    data = _noise(3_000_000)
    rule = CutRule()
    ends = Cutter(KEY, rule).cuts(memoryview(data))
    sizes = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    assert all(rule.min <= size <= rule.max for size in sizes[:-1])
    assert rule.avg * 0.8 < sum(sizes) / len(sizes) < rule.avg * 1.6


def test_an_edit_moves_only_the_cuts_around_it():
    data = _noise(2_000_000)
    edited = data[:1_000_000] + b"inserted" + data[1_000_000:]
    cutter = Cutter(KEY, CutRule())
    before, after = cutter.cuts(memoryview(data)), cutter.cuts(memoryview(edited))
    assert len(set(before) & set(after)) + len({end + 8 for end in before} & set(after)) >= len(before) - 5


def test_another_key_cuts_elsewhere():
    data = _noise(1_000_000)
    one, other = (Cutter(bytes([n]) * 32, CutRule()).cuts(memoryview(data)) for n in (1, 2))
    assert len(set(one) & set(other)) <= 3


def test_the_vectors_of_this_version_are_frozen():
    table = gear_table(KEY)
    assert [int(value) for value in table[:4]] == _FIRST_GEARS
    assert Cutter(KEY, CutRule()).cuts(memoryview(_frozen(200_000))) == _FROZEN_CUTS
    assert Cutter(KEY, SMALL).cuts(memoryview(_frozen(4_000))) == _FROZEN_SMALL


def _frozen(size: int) -> bytes:
    """Bytes by a rule that any language can repeat: x = x * 1103515245 + 12345 mod 2**31, bits 16 to 23."""
    x, out = 1, bytearray()
    for _ in range(size):
        x = (x * 1103515245 + 12345) & 0x7FFF_FFFF
        out.append(x >> 16 & 255)
    return bytes(out)


def test_the_engine_may_change_in_the_middle_of_a_stream(monkeypatch: pytest.MonkeyPatch):
    data = _lines(2_000_000)
    whole = Cutter(KEY, SMALL).cuts(memoryview(data))
    monkeypatch.setattr(Cutter, "compiled_from", 700_000)
    views = [view for views in read_chunks(io.BytesIO(data), Cutter(KEY, SMALL), window=100_000) for view in views]
    assert [len(view) for view in views] == [end - start for start, end in zip([0, *whole], whole, strict=False)]
