"""Slow steps, what they were spent on, who was waited for, and runs that stopped moving. Time is made up."""

import random

import msgspec

from trackbed.tracking.slow_rules import Pace, Slow, feed, stuck

S = 1_000_000


def walk(pace: Pace, steps: range, seconds: dict[int, float], *, usual_s: float = 1.0, rank: int = 0) -> list[Slow]:
    """Log a metric each step; a step lasts `usual_s` but for those in `seconds`."""
    chance, told, at = random.Random(1), list[Slow](), pace.ranks[rank].ts if rank in pace.ranks else 0
    for step in steps:
        at += int(seconds.get(step, usual_s * chance.uniform(0.95, 1.05)) * S)
        told += feed(pace, rank, 1 << 24, [("loss", step, at, 1.0)], at)
    return told


def phases(pace: Pace, rank: int, step: int, **spent: float) -> list[Slow]:
    points = [(f"time/{name}_s", step, step * S, value) for name, value in spent.items()]
    points.append(("time/step_s", step, step * S, sum(spent.values())))
    return feed(pace, rank, 1 << 24, points, step * S)


def test_a_step_far_above_the_median_is_slow_without_any_phase() -> None:
    told = walk(Pace(), range(200), {90: 4.0, 150: 6.0})
    assert [one.step for one in told] == [90, 150]
    assert told[0].seconds == 4.0
    assert 0.9 < told[0].median_s < 1.1
    assert (told[0].cause, told[0].straggler, told[0].attempt) == ("", -1, 1)


def test_even_steps_are_never_slow_and_short_ones_need_an_excess_that_matters() -> None:
    assert walk(Pace(), range(3000), {}) == []
    assert walk(Pace(), range(300), {200: 0.03}, usual_s=0.002) == []


def test_the_first_steps_of_an_attempt_are_not_judged() -> None:
    pace = Pace()
    assert walk(pace, range(100), {0: 60.0, 1: 30.0}) == []
    at = pace.ranks[0].ts
    assert feed(pace, 0, 2 << 24, [("loss", 60, at + 500 * S, 1.0), ("loss", 61, at + 540 * S, 1.0)], at) == []


def test_a_logged_tenth_step_is_judged_by_its_mean() -> None:
    pace, told = Pace(), list[Slow]()
    for n in range(100):
        told += feed(pace, 0, 1 << 24, [("loss", n * 10, n * 10 * S, 1.0)], n * 10 * S)
    assert told == []
    assert pace.ranks[0].gaps[-1] == 1.0


def test_the_phase_that_took_more_than_usual_is_the_cause() -> None:
    pace = Pace()
    for step in range(50):
        assert phases(pace, 0, step, data=0.1, compute=1.0, communication=0.2) == []
    told = phases(pace, 0, 50, data=5.0, compute=1.0, communication=0.2)
    assert (told[0].cause, told[0].split["data"], told[0].split["other"]) == ("data", 5.0, 0.0)
    told = phases(pace, 0, 51, data=0.1, compute=1.0, communication=0.2, save=9.0)
    assert told[0].cause == "save"


def test_the_rank_that_worked_while_the_others_waited_is_named_whoever_reports_first() -> None:
    for order in ((0, 1, 2, 3), (3, 2, 1, 0)):
        pace = Pace()
        for step in range(40):
            for rank in range(4):
                phases(pace, rank, step, compute=1.0, communication=0.2)
        told: list[Slow] = []
        for rank in order:
            spent = {"compute": 7.0, "communication": 0.2} if rank == 2 else {"compute": 1.0, "communication": 6.2}
            told += phases(pace, rank, 40, **spent)
            pace = msgspec.msgpack.decode(msgspec.msgpack.encode(pace), type=Pace)  # a server may start again here
        assert (told[-1].step, told[-1].straggler, told[-1].straggler_s) == (40, 2, 7.0)


def test_a_step_that_is_slow_for_all_has_no_straggler() -> None:
    pace = Pace()
    for step in range(40):
        for rank in range(4):
            phases(pace, rank, step, compute=1.0)
    told = [slow for rank in range(4) for slow in phases(pace, rank, 40, compute=6.0)]
    assert [one.straggler for one in told] == [-1]


def test_a_run_is_stuck_after_ten_usual_steps_and_says_since_when_and_behind_whom() -> None:
    pace = Pace()
    for rank in (0, 1, 2):
        walk(pace, range(100 if rank != 1 else 99), {}, usual_s=20.0, rank=rank)
    moved = pace.moved_us
    assert stuck(pace, moved + 150 * S) is None
    found = stuck(pace, moved + 300 * S)
    assert found is not None
    assert (found.step, found.since_us, found.behind) == (99, moved, (1,))
    assert stuck(pace, moved + 300 * S, since_us=moved + 290 * S) is None


def test_what_took_long_before_may_take_as_long_again() -> None:
    pace = Pace()
    walk(pace, range(200), {100: 400.0})
    assert stuck(pace, pace.moved_us + 700 * S) is None
    assert stuck(pace, pace.moved_us + 900 * S) is not None


def test_a_run_without_steps_is_never_called_stuck() -> None:
    assert stuck(Pace(), 10**15) is None
    pace = Pace()
    feed(pace, 0, 1, [("system/cpu_percent", 1, 1, 1.0)], 1)
    assert stuck(pace, 10**15) is None
