"""Phases of a step, with a clock that the test moves."""

import threading

import pytest

from trackbed.client.phases import Phases


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def spend(phases: Phases, clock: Clock, **seconds: float) -> None:
    for name, value in seconds.items():
        with phases.phase(name):
            clock.now_s += value


def test_a_step_carries_its_length_and_its_phases() -> None:
    clock = Clock()
    phases = Phases(clock)
    spend(phases, clock, data=5.0)
    assert phases.take(0) == {}, "what was before the first step is no step"
    spend(phases, clock, data=0.5, compute=2.0)
    spend(phases, clock, data=0.25)
    clock.now_s += 1.0
    assert phases.take(1) == {"time/step_s": 3.75, "time/data_s": 0.75, "time/compute_s": 2.0}
    spend(phases, clock, compute=2.0)
    assert phases.take(2) == {"time/step_s": 2.0, "time/compute_s": 2.0}


def test_an_inner_phase_takes_its_time_out_of_the_outer_one() -> None:
    clock = Clock()
    phases = Phases(clock)
    phases.take(0)
    with phases.phase("save"):
        clock.now_s += 1.0
        spend(phases, clock, communication=4.0)
        assert phases.current == "save"
    assert phases.current == ""
    assert phases.take(1) == {"time/step_s": 5.0, "time/save_s": 1.0, "time/communication_s": 4.0}


def test_steps_that_are_not_all_logged_are_told_by_their_mean_and_a_step_logged_twice_once() -> None:
    clock = Clock()
    phases = Phases(clock)
    phases.take(0)
    spend(phases, clock, compute=20.0)
    assert phases.take(10) == {"time/step_s": 2.0, "time/compute_s": 2.0}
    spend(phases, clock, eval=3.0)
    assert phases.take(10) == {}
    spend(phases, clock, compute=2.0)
    assert phases.take(11) == {"time/step_s": 5.0, "time/eval_s": 3.0, "time/compute_s": 2.0}


def test_a_phase_ends_also_when_its_body_raises() -> None:
    clock = Clock()
    phases = Phases(clock)
    phases.take(0)
    with pytest.raises(ValueError, match="no"), phases.phase("data"):
        clock.now_s += 1.0
        raise ValueError("no")
    assert phases.take(1) == {"time/step_s": 1.0, "time/data_s": 1.0}


def test_what_another_thread_does_meanwhile_is_no_part_of_the_step() -> None:
    clock = Clock()
    phases = Phases(clock)
    phases.take(0)
    thread = threading.Thread(target=lambda: spend(phases, clock, data=50.0))
    thread.start()
    thread.join()
    assert phases.take(1) == {"time/step_s": 50.0}
