"""The learning rate by step, and when it is time for a checkpoint."""

import pytest

from trackbed.engine.checkpoint.cursor import LoopState
from trackbed.engine.checkpoint.rhythm import Rhythm
from trackbed.engine.optim.schedule import Schedule


def test_the_rate_rises_straight_then_falls_to_a_tenth() -> None:
    schedule = Schedule(peak=1.0, warmup=10, steps=110)
    assert [schedule.at(step) for step in (1, 5, 10)] == [0.1, 0.5, 1.0]
    assert schedule.at(60) == pytest.approx(0.55)
    assert schedule.at(110) == pytest.approx(0.1)
    rates = [schedule.at(step) for step in range(10, 111)]
    assert rates == sorted(rates, reverse=True)


def test_without_a_warm_up_the_first_rate_is_near_the_peak() -> None:
    assert Schedule(peak=2.0, warmup=0, steps=1000).at(1) == pytest.approx(2.0, rel=1e-4)


def test_a_rhythm_by_steps_is_due_at_multiples() -> None:
    rhythm = Rhythm(steps=5)
    due = [step for step in range(1, 21) if rhythm.due(LoopState(step - 1, 0), LoopState(step, 0), samples=10)]
    assert due == [5, 10, 15, 20]


def test_a_rhythm_by_epochs_is_due_when_an_epoch_was_left_behind() -> None:
    rhythm = Rhythm(epochs=True)
    due = [
        step
        for step in range(1, 9)
        if rhythm.due(LoopState(step - 1, (step - 1) * 8), LoopState(step, step * 8), samples=20)
    ]
    assert due == [3, 5, 8]


def test_a_rhythm_by_time_only_wishes() -> None:
    rhythm = Rhythm(seconds=30.0)
    assert not rhythm.due(LoopState(0, 0), LoopState(1, 8), samples=4)
    assert not rhythm.wished(29.0)
    assert rhythm.wished(30.0)
    assert not Rhythm().wished(1e9)
