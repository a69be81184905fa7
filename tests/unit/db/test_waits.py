"""The waits of a lane and their percentiles."""

from trackbed.db.writer import Waits, run_hooks


def test_a_percentile_is_a_wait_that_really_was() -> None:
    waits = Waits(keep=100)
    assert waits.percentile_ms(0.99) == 0.0
    for n in range(1, 101):
        waits.add(n / 1000)
    assert round(waits.percentile_ms(0.5), 6) == 50
    assert round(waits.percentile_ms(0.99), 6) == 99
    assert round(waits.percentile_ms(1.0), 6) == 100


def test_only_the_last_waits_count_but_all_are_summed() -> None:
    waits = Waits(keep=3)
    for seconds in (9.0, 0.001, 0.002, 0.003):
        waits.add(seconds)
    assert round(waits.percentile_ms(1.0), 6) == 3
    assert waits.count == 4
    assert round(waits.total_s, 6) == 9.006


def test_a_hook_that_fails_does_not_keep_the_next_from_running() -> None:
    ran: list[int] = []
    run_hooks([lambda: ran.append(1), lambda: 1 // 0 and None, lambda: ran.append(2)])
    assert ran == [1, 2]
