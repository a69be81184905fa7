"""Sealed points are the points: every bit, every order; damage is said and never read."""

import math
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackbed.formats import points as fmt
from trackbed.formats.points import Points, PointsFault, Sorted

SAMPLE = Path(__file__).parent / "samples" / "points-v1.tbp"
INT64 = st.integers(-(2**63), 2**63 - 1)
BITS = st.integers(0, 2**64 - 1) | st.sampled_from([0x7FF0000000000001, 0xFFF8DEADBEEF0000, 0x8000000000000000, 1])
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(1, 2), INT64, INT64, BITS), min_size=1)


def sorted_rows(rows: list[tuple[int, int, int, int, int, int]]) -> Sorted:
    rows = sorted(rows, key=lambda row: row[:2])
    key, rank, attempt, step, ts = (np.array(column, np.int64) for column in list(zip(*rows, strict=True))[:5])
    value = np.array([row[5] for row in rows], np.uint64).view(np.float64)
    names = ["loss", "val/acc", "损失", "d"]
    return Sorted(names, key, rank, attempt, np.zeros(len(rows), np.int64), Points(step, ts, value))


def read_all(body: bytes) -> list[tuple[str, int, int, int, int, int]]:
    """All points of an object, chunk by chunk, values as bits."""
    directory = fmt.read_directory(lambda at, size: body[at : at + size], len(body))
    found: list[tuple[str, int, int, int, int, int]] = []
    for chunk in range(len(directory.key)):
        page, start = int(directory.page[chunk]), int(directory.start[chunk])
        at, size = int(directory.page_at[page]), int(directory.page_size[page])
        points = fmt.decode_page(body[at : at + size], int(directory.page_count[page]))
        end = start + int(directory.count[chunk])
        key, rank = directory.keys[directory.key[chunk]], int(directory.rank[chunk])
        columns = (points.step[start:end], points.ts[start:end], points.value[start:end].view(np.uint64))
        for step, ts, bits in zip(*(column.tolist() for column in columns), strict=True):
            found.append((key, rank, int(directory.attempt[chunk]), step, ts, bits))
    return found


@given(ROWS)
def test_every_bit_of_every_point_is_read_in_its_order(rows: list[tuple[int, int, int, int, int, int]]) -> None:
    given = sorted_rows(rows)
    names = given.keys
    expected = [(names[key], *rest) for key, *rest in sorted(rows, key=lambda row: row[:2])]
    assert read_all(fmt.encode(given)) == expected


def long_one(count: int) -> Sorted:
    step = np.arange(count, dtype=np.int64) * 2
    value = np.sin(step / 100.0)
    value[777], value[4_000] = math.nan, math.inf
    zeros = np.zeros(count, np.int64)
    return Sorted(["loss"], zeros, zeros, zeros + 1, zeros, Points(step, step * 1_000 + 5, value))


def test_a_level_says_what_its_points_say() -> None:
    given = long_one(40_000)
    body = fmt.encode(given)
    directory = fmt.read_directory(lambda at, size: body[at : at + size], len(body))
    assert directory.count.tolist() == [16_384, 16_384, 40_000 - 2 * 16_384]
    assert (directory.flags == fmt.STEPS_GROW | fmt.TIMES_GROW).all()
    begin = 0
    for chunk, count in enumerate(directory.count.tolist()):
        at, size = int(directory.level_at[chunk]), int(directory.level_size[chunk])
        level = fmt.decode_level(body[at : at + size], count)
        for row in range(len(level.step)):
            low, high = begin + row * 64, min(begin + row * 64 + 64, begin + count)
            values = given.points.value[low:high]
            finite = values[np.isfinite(values)]
            assert level.step[row] == given.points.step[high - 1] and level.ts[row] == given.points.ts[high - 1]
            assert level.low[row] == np.nanmin(values) and level.high[row] == np.nanmax(values)
            assert level.points[row] == high - low and level.odd[row] == len(values) - len(finite)
            assert level.total[row] == pytest.approx(math.fsum(finite), abs=1e-9)
        begin += count


def test_short_and_unordered_chunks_have_no_level() -> None:
    given = long_one(5_000)
    given.points.step[100] = 0
    body = fmt.encode(given)
    directory = fmt.read_directory(lambda at, size: body[at : at + size], len(body))
    assert not directory.level_size.any() and not (directory.flags & fmt.STEPS_GROW).any()


def test_a_kept_object_of_version_1_opens() -> None:
    found = read_all(SAMPLE.read_bytes())
    assert len(found) == 2_006
    assert [row for row in found if row[0] == "损失"] == [
        ("损失", 0, 1, 2**62, 7, 0x7FF0000000000001), ("损失", 0, 1, -5, 7, 0x8000000000000000),
        ("损失", 0, 2, -5, 9, 0x7FF0000000000000), ("损失", 3, 1, 0, 1, 0xFFF8DEADBEEF0000),
        ("损失", 3, 1, 0, 1, 0xFFF8DEADBEEF0000), ("损失", 3, 1, 1, 0, 1),
    ]  # fmt: skip
    assert [row[3:] for row in found if row[0] == "loss"] == [
        (step, 1_700_000_000_000_000 + step * 250_000, struct.unpack("<Q", struct.pack("<d", 1 / (step + 1)))[0])
        for step in range(2_000)
    ]


@pytest.mark.parametrize("at", [0.0, 0.2, 0.5, 0.9, 0.99, 1.0])
def test_a_flipped_bit_or_a_torn_end_is_no_point(at: float) -> None:
    body = fmt.encode(long_one(20_000))
    place = min(int(at * len(body)), len(body) - 1)
    spoiled = body[:place] + bytes([body[place] ^ 4]) + body[place + 1 :]
    if place >= len(fmt.MAGIC):
        with pytest.raises(PointsFault):
            directory = fmt.read_directory(lambda start, size: spoiled[start : start + size], len(spoiled))
            sizes = zip(directory.page_at.tolist(), directory.page_size.tolist(), strict=True)
            for (start, size), count in zip(sizes, directory.page_count.tolist(), strict=True):
                fmt.decode_page(spoiled[start : start + size], count)
            for chunk, count in enumerate(directory.count.tolist()):
                start, size = int(directory.level_at[chunk]), int(directory.level_size[chunk])
                fmt.decode_level(spoiled[start : start + size], count)
    with pytest.raises(PointsFault):
        fmt.read_directory(lambda start, size: body[:place][start : start + size], place)


def test_twenty_thousand_keys_cost_little_more_than_one() -> None:
    rng = np.random.default_rng(3)
    value = rng.normal(size=200_000)
    zeros = np.zeros(200_000, np.int64)
    step = np.tile(np.arange(10, dtype=np.int64), 20_000)
    wide = Sorted([f"layer/{at}" for at in range(20_000)], np.repeat(np.arange(20_000), 10), zeros, zeros, zeros,
                  Points(step, step * 1_000_000, value))  # fmt: skip
    narrow = Sorted(["a"], zeros, zeros, zeros, zeros, Points(np.arange(200_000), np.arange(200_000), value))
    assert len(fmt.encode(wide)) < 1.25 * len(fmt.encode(narrow))
