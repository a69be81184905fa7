"""The table of moves is closed, terminal states stay, and every state has a way out or none on purpose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackbed.base.errors import Conflict
from trackbed.domain.states import (
    ACTIVE,
    ATTEMPT_ENDED,
    ATTEMPT_MOVES,
    DEFAULT_RETRIES,
    RUN_MOVES,
    TERMINAL,
    AttemptState,
    Cause,
    RunState,
    move_attempt,
    move_run,
    retry_delay_s,
)


def test_every_state_has_a_row_of_moves():
    assert set(RUN_MOVES) == set(RunState)
    assert set(ATTEMPT_MOVES) == set(AttemptState)
    assert set(DEFAULT_RETRIES) == set(Cause)


@given(st.lists(st.sampled_from(list(RunState)), max_size=30))
def test_a_finished_run_stays_finished_whatever_is_tried(moves):
    state = RunState.FINISHED
    for to in moves:
        with pytest.raises(Conflict) as refused:
            move_run(state, to)
        assert refused.value.code == "illegal_move"


@given(st.sampled_from(list(AttemptState)), st.lists(st.sampled_from(list(AttemptState)), max_size=20))
def test_an_attempt_that_ended_never_moves_again(state, moves):
    ended = False
    for to in moves:
        try:
            state = move_attempt(state, to)
        except Conflict:
            continue
        assert not ended
        ended = state in ATTEMPT_ENDED


def test_failed_and_stopped_runs_come_back_only_through_the_queue_or_their_own_spool():
    # by way of `preparing` where the environment has to be packed again
    assert RUN_MOVES[RunState.STOPPED] == {RunState.QUEUED, RunState.PREPARING}
    assert RUN_MOVES[RunState.FAILED] == {RunState.QUEUED, RunState.PREPARING, RunState.RUNNING}


def test_every_state_that_is_not_terminal_can_reach_a_terminal_one():
    def reach(state: RunState, seen: set[RunState]) -> bool:
        if state in TERMINAL:
            return True
        return any(reach(to, seen | {to}) for to in RUN_MOVES[state] if to not in seen)

    assert all(reach(state, {state}) for state in RunState)


def test_an_active_run_can_always_become_queued_paused_or_terminal():
    for state in ACTIVE:
        assert {RunState.QUEUED, RunState.PAUSED, *TERMINAL} <= RUN_MOVES[state]


def test_the_back_off_starts_at_once_doubles_and_ends_at_ten_minutes():
    assert [retry_delay_s(n) for n in (1, 2, 3, 4, 20)] == [0.0, 10.0, 20.0, 40.0, 600.0]
