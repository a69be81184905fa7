"""Read = logged: every value, every order, every duplicate; and one counted value a step."""

import math
import struct
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tracking_bed import Bed, Point, Rank

from trackbed.tracking import metrics
from trackbed.tracking.metrics_cells import Window
from trackbed.tracking.metrics_series import Asked, series
from trackbed.tracking.metrics_state import WORDS
from trackbed.tracking.metrics_tail import frames_of
from trackbed.tracking.metrics_view import Curves
from trackbed.wire.series import HistoryReply, Series

KEYS = ("loss", "val/AR@100", "损失")
VALUES = st.one_of(st.floats(width=64), st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 1e308, 5e-324]))
LOGGED = st.lists(
    st.tuples(st.sampled_from(KEYS), st.integers(-3, 12) | st.just(2**62), st.integers(0, 10**15), VALUES), max_size=30
)


def bits(value: float | str) -> bytes:
    """The bits of a value, but for the sign and payload of NaN: those are stored, and a word on the wire."""
    number = WORDS[value] if isinstance(value, str) else value
    return b"nan" if math.isnan(number) else struct.pack("<d", number)


def number(packed: bytes) -> float:
    return math.nan if packed == b"nan" else struct.unpack("<d", packed)[0]


def history(bed: Bed, run: str, key: str, **how: Any) -> HistoryReply:
    return metrics.history(bed.view(run), key, **how).reply()


def curves(bed: Bed, run: str, window: Window, *, zero_us: int = 0) -> list[Series]:
    return series([Asked(bed.view(run), zero_us)], ["loss"], window).reply().series


def exact(reply: HistoryReply) -> list[tuple[int, int, int, bytes]]:
    return [(p.attempt, p.step, p.time_us, bits(p.value)) for p in reply.points]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(attempts=st.lists(st.lists(LOGGED, max_size=3), min_size=1, max_size=3), shuffled=st.randoms())
def test_whatever_was_logged_is_read_and_the_newest_attempt_counts(
    bed: Bed, attempts: list[list[list[Point]]], shuffled: Any
) -> None:
    run = bed.run()
    frames = []
    for number, said in enumerate(attempts, 1):
        rank = Rank(attempt=number, run=run)
        frames.append([rank.points(points) for points in said if points])
    order = list(range(len(frames)))
    shuffled.shuffle(order)  # a late spool of an earlier attempt changes nothing
    sent = [frame for number in order for frame in frames[number]]
    for frame in sent:
        bed.send(run, frame)
        bed.send(run, frame)  # a second delivery is dropped
        if shuffled.random() < 0.3:  # sealed at any moment, its frames swept at once, later or never: nothing changes
            bed.seal(run, most=shuffled.choice([0, 1]))
            bed.merge(run)
            if shuffled.random() < 0.5:
                bed.sweep(run)
        if shuffled.random() < 0.3:
            bed.view(run)  # a warm cache
    logged = [(number, *point) for number, said in enumerate(attempts, 1) for points in said for point in points]
    for key in KEYS:
        mine = [(number, step, ts, bits(value)) for number, name, step, ts, value in logged if name == key]
        assert sorted(exact(history(bed, run, key, all_attempts=True))) == sorted(mine)
        counted: dict[int, tuple[int, int, int, bytes]] = {}
        for point in mine:
            if point[1] not in counted or point[0] >= counted[point[1]][0]:
                counted[point[1]] = point
        expected = [(counted[step][0], step, *counted[step][2:]) for step in sorted(counted)]
        standing = [point for point in mine if point[0] == counted[point[1]][0]]
        assert exact(history(bed, run, key)) == sorted(standing, key=lambda point: point[1:3])
        _summary_is_right(bed, run, key, expected)


def _summary_is_right(bed: Bed, run: str, key: str, counted: list[tuple[int, int, int, bytes]]) -> None:
    found = {info.key: info for info in bed.db.read(lambda tx: metrics.keys(tx, run)).keys}
    if not counted:
        assert key not in found
        return
    info, values = found[key], [number(point[3]) for point in counted]
    finite = [value for value in values if math.isfinite(value)]
    assert info.count == len(counted)
    assert info.non_finite == len(values) - len(finite)
    assert info.last_step == counted[-1][1]
    assert bits(info.last) == counted[-1][3] and bits(info.first) == counted[0][3]
    assert info.min == (min(finite) if finite else None)
    assert info.max == (max(finite) if finite else None)


def test_stored_frames_keep_even_the_payload_of_a_nan(bed: Bed) -> None:
    odd = struct.unpack("<d", bytes.fromhex("010000000000f87f"))[0]
    run = bed.run()
    bed.send(run, Rank().points([("loss", 1, 1, odd)]))
    ((_, points),) = bed.db.read(lambda tx: list(frames_of(tx, run)))
    assert points.value.tobytes().hex() == "010000000000f87f"


def test_a_cache_that_was_lost_gives_the_same_answer(bed: Bed) -> None:
    run, rank = bed.run(), Rank()
    bed.send(run, rank.points([("loss", 1, 1, 2.0)]))
    before = exact(history(bed, run, "loss"))
    bed.send(run, rank.points([("loss", 2, 1, 3.0)]))
    warm = exact(history(bed, run, "loss"))
    bed.curves = Curves(bed.store)
    assert exact(history(bed, run, "loss")) == warm == [*before, (1, 2, 1, bits(3.0))]


def test_pages_of_a_history_are_the_history(bed: Bed) -> None:
    run, rank = bed.run(), Rank()
    bed.send(run, rank.points([("loss", step % 7, step, float(step)) for step in range(50)]))
    for how in ({}, {"all_attempts": True}):
        whole = exact(history(bed, run, "loss", **how))
        pages, cursor = [], ""
        while True:
            page = history(bed, run, "loss", limit=3, cursor=cursor, **how)
            pages += exact(page)
            cursor = page.next
            if not cursor:
                break
        assert pages == whole


def test_a_series_hides_no_spike_and_no_hole(bed: Bed) -> None:
    run, rank = bed.run(), Rank()
    values = [math.sin(step / 50) for step in range(10_000)]
    values[777], values[5_555], values[8_000], values[8_001] = 99.0, -99.0, math.nan, math.inf
    bed.send(run, rank.points([("loss", step, step * 1_000_000, value) for step, value in enumerate(values)]))
    (curve,) = curves(bed, run, Window(buckets=100))
    assert curve.bucketed and curve.points == 10_000 and sum(curve.count) == 10_000
    assert len(curve.x) == len(curve.last) == len(curve.mean) == len(curve.min) == len(curve.max) == 100
    assert 99.0 in curve.max and -99.0 in curve.min and "Infinity" in curve.max
    assert sum(curve.non_finite) == 2
    (part,) = curves(bed, run, Window(low=10, high=19, buckets=100))
    assert not part.bucketed and part.x == [float(x) for x in range(10, 20)]
    assert part.last == values[10:20]


def test_relative_and_wall_time_are_axes_too(bed: Bed) -> None:
    run, rank = bed.run(), Rank()
    bed.send(run, rank.points([("loss", step, 10_000_000 + step * 500_000, 1.0) for step in range(4)]))
    (relative,) = curves(bed, run, Window(x="relative"), zero_us=10_000_000)
    (wall,) = curves(bed, run, Window(x="wall"))
    assert relative.x == [0.0, 0.5, 1.0, 1.5]
    assert wall.x == [10.0, 10.5, 11.0, 11.5]


def test_ranks_have_streams_of_their_own(bed: Bed) -> None:
    run = bed.run()
    for rank in range(3):
        bed.send(run, Rank(rank=rank).points([("loss", 1, 1, float(rank))]))
    found = curves(bed, run, Window(streams=True))
    assert [(curve.stream, curve.last) for curve in found] == [("", [0.0]), ("rank/1", [1.0]), ("rank/2", [2.0])]
    assert bed.db.read(lambda tx: metrics.last_values(tx, run)) == {"loss": 0.0}


def test_a_replayed_step_with_another_value_moves_the_extremes(bed: Bed) -> None:
    run = bed.run()
    bed.send(run, Rank(attempt=1).points([("loss", step, 1, value) for step, value in enumerate([5.0, 1.0, 3.0, 9.0])]))
    bed.send(run, Rank(attempt=2).points([("loss", 1, 2, 4.0), ("loss", 3, 2, 2.0)]))
    (info,) = bed.db.read(lambda tx: metrics.keys(tx, run)).keys
    assert (info.min, info.argmin, info.max, info.argmax, info.last, info.count) == (2.0, 3, 5.0, 0, 2.0, 4)


def test_ten_thousand_keys_are_found_by_a_part_of_their_name(bed: Bed) -> None:
    run = bed.run()
    bed.send(run, Rank().points([(f"layer/{at}/norm", 1, 1, float(at)) for at in range(10_000)]))
    reply = bed.db.read(lambda tx: metrics.keys(tx, run, search="LAYER/99", limit=50))
    assert reply.total == 111 and len(reply.keys) == 50


@pytest.mark.parametrize("key", ["", "a\nb", "x" * 501, "nul\0"])
def test_a_bad_name_fails_alone(bed: Bed, key: str) -> None:
    run = bed.run()
    done = bed.send(run, Rank().points([("good", 1, 1, 1.0), (key, 1, 1, 2.0), ("also", 1, 1, 3.0)]))
    assert done.receipt.points == 2
    assert [(one.code, one.params["points"]) for one in done.receipt.rejected] == [("name_refused", 1)]
    assert bed.db.read(lambda tx: metrics.key_names(tx, run)) == ["also", "good"]
