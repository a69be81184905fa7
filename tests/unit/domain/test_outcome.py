"""What follows when an attempt ends: evidence first, then wishes, then budgets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackbed.domain.outcome import Wish, after_attempt
from trackbed.domain.states import RUN_MOVES, TERMINAL, Cause, RunState

ENDS = [cause for cause in Cause if cause not in (Cause.NEEDS, Cause.DEADLINE)]


def test_a_run_that_ended_done_while_a_stop_was_asked_is_finished():
    assert after_attempt(Cause.DONE, wish=Wish.STOP).state is RunState.FINISHED


def test_a_stage_that_ended_done_while_a_stop_was_asked_is_no_finished_run():
    assert after_attempt(Cause.DONE, wish=Wish.STOP, more_stages=True).state is RunState.STOPPED
    assert after_attempt(Cause.DONE, wish=Wish.PAUSE, more_stages=True).state is RunState.PAUSED
    assert after_attempt(Cause.DONE, more_stages=True).state is RunState.QUEUED


def test_preemption_is_not_a_failure_and_uses_no_retry():
    after = after_attempt(Cause.PREEMPTED, used={"preempted": 99})
    assert (after.state, after.counted, after.delay_s) == (RunState.QUEUED, False, 0.0)


@pytest.mark.parametrize("cause", [Cause.KILLED, Cause.NODE, Cause.LOST, Cause.NETWORK, Cause.STORAGE])
def test_three_retries_are_given_with_a_growing_back_off(cause):
    delays = [after_attempt(cause, used={cause.value: n}).delay_s for n in range(3)]
    assert delays == [0.0, 10.0, 20.0]
    assert after_attempt(cause, used={cause.value: 3}).state is RunState.FAILED


@pytest.mark.parametrize("cause", [Cause.USER_ERROR, Cause.LIMIT, Cause.OOM_HOST])
def test_what_trying_again_cannot_mend_is_not_tried_again(cause):
    assert after_attempt(cause).state is RunState.FAILED


def test_the_counts_of_the_spec_replace_the_defaults():
    assert after_attempt(Cause.USER_ERROR, retries={"user_error": 2}, used={"user_error": 1}).state is RunState.QUEUED
    assert after_attempt(Cause.KILLED, retries={"killed": 0}).state is RunState.FAILED


def test_each_cause_has_a_budget_of_its_own():
    assert after_attempt(Cause.NODE, used={"killed": 3}).state is RunState.QUEUED


def test_a_pause_that_meets_a_retryable_end_is_a_pause_and_one_that_meets_a_bug_is_a_failure():
    assert after_attempt(Cause.KILLED, wish=Wish.PAUSE).state is RunState.PAUSED
    assert after_attempt(Cause.USER_ERROR, wish=Wish.PAUSE).state is RunState.FAILED


@given(
    st.sampled_from(ENDS),
    st.sampled_from(list(Wish)),
    st.dictionaries(st.sampled_from([c.value for c in ENDS]), st.integers(0, 5)),
    st.dictionaries(st.sampled_from([c.value for c in ENDS]), st.integers(0, 5)),
    st.booleans(),
)
def test_every_end_leads_to_a_legal_state_and_a_stop_never_trains_again(cause, wish, retries, used, more):
    after = after_attempt(cause, wish=wish, retries=retries, used=used, more_stages=more)
    assert after.state in RUN_MOVES[RunState.RUNNING] and after.state in RUN_MOVES[RunState.STOPPING]
    if wish is Wish.STOP:
        assert after.state in TERMINAL
    if after.state is RunState.FINISHED:
        assert cause is Cause.DONE
    if after.state is RunState.QUEUED and after.counted:
        assert used.get(cause.value, 0) < after.budget


@given(st.sampled_from(ENDS), st.dictionaries(st.sampled_from([c.value for c in ENDS]), st.integers(0, 4)))
def test_a_cause_that_keeps_coming_ends_the_run_unless_it_is_preemption(cause, retries):
    used: dict[str, int] = {}
    for _ in range(20):
        after = after_attempt(cause, retries=retries, used=used)
        if after.state is not RunState.QUEUED:
            return
        used[cause.value] = used.get(cause.value, 0) + after.counted
    assert cause is Cause.PREEMPTED
