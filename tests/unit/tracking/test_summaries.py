"""The summary beside a curve equals what one would compute from its counted points, however they came."""

import math

from hypothesis import given
from hypothesis import strategies as st

from trackbed.tracking.metrics_state import State, merge, same_bits, summarize

VALUES = st.one_of(st.floats(width=64), st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 0.0, 1e308]))
POINTS = st.lists(st.tuples(st.integers(-5, 30), VALUES), max_size=40)


def plain(state: State) -> tuple[object, ...]:
    return (
        state.count,
        state.non_finite,
        state.first_step,
        state.last_step,
        state.min,
        state.argmin,
        state.max,
        state.argmax,
    )


@given(POINTS)
def test_points_added_and_replaced_one_by_one_give_the_summary_of_what_counts(points: list[tuple[int, float]]) -> None:
    state, counted, rescan = State(), dict[int, float](), False
    for step, value in points:
        if step in counted:
            rescan |= state.replace(step, counted[step], value, 0)
        else:
            state.add(step, value, 0)
        counted[step] = value
    whole = summarize((step, value, 0, 0) for step, value in counted.items())
    if rescan:
        state.min, state.argmin, state.max, state.argmax = whole.min, whole.argmin, whole.max, whole.argmax
    assert plain(state) == plain(whole)
    assert same_bits(state.last, whole.last) and same_bits(state.first, whole.first)


@given(POINTS, POINTS)
def test_two_summaries_merge_where_the_second_goes_on_behind_the_first(
    one: list[tuple[int, float]], two: list[tuple[int, float]]
) -> None:
    early = dict(one)
    late = {step + 100: value for step, value in two}
    merged = merge(
        summarize((s, v, 0, 0) for s, v in sorted(early.items())),
        summarize((s, v, 0, 0) for s, v in sorted(late.items())),
    )
    if late:
        assert merged is not None
        assert plain(merged) == plain(summarize((s, v, 0, 0) for s, v in sorted({**early, **late}.items())))


def test_overlapping_steps_are_not_merged() -> None:
    assert merge(summarize([(1, 1.0, 0, 0), (5, 2.0, 0, 0)]), summarize([(5, 2.0, 0, 0)])) is None


def test_nan_does_not_poison_the_extremes() -> None:
    state = summarize([(1, 2.0, 0, 0), (2, math.nan, 0, 0), (3, 1.0, 0, 0), (4, math.inf, 0, 0)])
    assert (state.min, state.argmin, state.max, state.argmax, state.non_finite, state.count) == (1.0, 3, 2.0, 1, 2, 4)
    assert state.last == math.inf
