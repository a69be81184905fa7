"""Summaries of metrics that are said again at their last step, without a look at the frames."""

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from trackbed.tracking.ingest_summary import Group, at_the_end
from trackbed.tracking.metrics_state import State, summarize

_values = st.floats(width=32) | st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf])


def group(points: Sequence[tuple[int, float]], version: int = 1) -> Group:
    steps, values = [step for step, _ in points], [value for _, value in points]
    return Group("m", 0, version, steps, list(range(len(points))), values)


@given(st.lists(st.lists(_values, min_size=1, max_size=5), min_size=1, max_size=20))
def test_a_metric_without_steps_is_summed_up_by_its_last_value(batches: list[list[float]]) -> None:
    state = State()
    for values in batches:
        after = at_the_end(state, group([(0, value) for value in values]))
        assert after is not None
        state = after
    assert repr(state) == repr(summarize([(0, batches[-1][-1], len(batches[-1]) - 1, 1)]))


@given(st.lists(st.tuples(st.integers(0, 4), _values), min_size=1, max_size=12))
def test_what_is_told_without_the_frames_is_what_they_tell(points: list[tuple[int, float]]) -> None:
    state, seen = State(), dict[int, tuple[int, float, int, int]]()
    for at, (step, value) in enumerate(points):
        one = Group("m", 0, 1, [step], [at], [value])
        after = at_the_end(state, one)
        seen[step] = (step, value, at, 1)
        exact = summarize(seen[step] for step in sorted(seen))
        assert after is None or repr(after) == repr(exact)
        state = exact


def test_an_older_attempt_and_an_earlier_step_are_left_to_the_frames() -> None:
    state = at_the_end(State(), group([(1, 1.0), (2, 5.0)], version=2))
    assert state is not None
    assert at_the_end(state, group([(3, 1.0)], version=1)) is None
    assert at_the_end(state, group([(1, 1.0)], version=2)) is None
    assert at_the_end(state, group([(2, 0.5)], version=2)) is None  # the maximum was there
    assert (state.count, state.last, state.max) == (2, 5.0, 5.0)  # not touched
