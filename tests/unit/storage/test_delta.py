"""What a run of new chunks replaces: by its neighbours' frames, or by the former version's order."""

from collections.abc import Iterator

from trackbed.base.errors import Damaged
from trackbed.storage.delta import MAX_DEPTH, depth_over, merged, replaced, whole
from trackbed.storage.former import Former
from trackbed.storage.index import ChunkAt, FrameAt
from trackbed.storage.reader import Want


def _frame(name: bytes, depth: int = 0) -> FrameAt:
    return FrameAt(name * 16, b"p" * 16, 96, 1000, 1, depth, 400_000, ())


def _at(frame: FrameAt, start: int, length: int = 16_000) -> ChunkAt:
    return ChunkAt(frame, start, length)


def _stretches(slices: list) -> list[tuple[bytes, int, int]]:
    return [(one.frame.frame_id[:1], one.start, one.length) for one in slices]


def test_between_two_neighbours_of_one_frame_lies_what_was_replaced():
    frame = _frame(b"a")
    assert _stretches(replaced(_at(frame, 0), _at(frame, 50_000), 30_000)) == [(b"a", 16_000, 34_000)]


def test_neighbours_that_touched_replaced_nothing():
    frame = _frame(b"a")
    assert replaced(_at(frame, 0), _at(frame, 16_000), 500) == []


def test_over_the_end_of_a_frame_both_sides_are_taken():
    left, right = _at(_frame(b"a"), 380_000), _at(_frame(b"b"), 9_000)
    assert _stretches(replaced(left, right, 20_000)) == [(b"a", 396_000, 4_000), (b"b", 0, 9_000)]


def test_one_neighbour_is_enough_and_none_is_no_base():
    assert _stretches(replaced(_at(_frame(b"a"), 0), None, 1000)) == [(b"a", 16_000, 50_152)]
    assert replaced(None, None, 1000) == []


def test_a_frame_at_the_greatest_depth_is_no_base():
    frame = _frame(b"a", MAX_DEPTH)
    assert replaced(_at(frame, 0), _at(frame, 50_000), 30_000) == []
    assert whole(_at(frame, 0)) == []
    assert depth_over(whole(_at(_frame(b"a", 7), 0), _at(_frame(b"b"), 0))) == 8


def test_touching_slices_become_one():
    a, b = _frame(b"a"), _frame(b"b")
    slices = whole(_at(a, 16_000), _at(b, 0), _at(a, 0), _at(a, 40_000), _at(a, 20_000))
    assert _stretches(merged(slices)) == [(b"a", 0, 36_000), (b"a", 40_000, 16_000), (b"b", 0, 16_000)]


def _wants(count: int) -> Iterator[Want]:
    return (Want(b"%d" % number, 10) for number in range(count))


def test_the_former_version_tells_what_stood_between():
    former = Former(_wants(20))
    assert former.between(b"3", b"6", 1000) == [b"4", b"5"]
    assert former.between(b"3", None, 20) == [b"4", b"5"]
    assert former.between(None, b"6", 20) == [b"4", b"5"]
    assert former.between(b"new", b"other", 20) == []
    assert former.between(b"0", b"19", 20) == [b"1", b"2", b"17", b"18"]


def test_the_former_version_is_a_window_that_moves():
    former = Former(_wants(100_000))
    for place in range(0, 99_990, 500):
        assert former.between(b"%d" % place, b"%d" % (place + 3), 1000) == [b"%d" % (place + 1), b"%d" % (place + 2)]
        assert len(former._window) < 10_000
    assert former.between(b"0", b"3", 1000) == [], "long passed"


def test_a_former_version_that_cannot_be_read_just_ends():
    def broken() -> Iterator[Want]:
        yield from _wants(5)
        raise Damaged("storage_chunk_missing", what="x")

    assert Former(broken()).between(b"1", b"3", 100) == [b"2"]
