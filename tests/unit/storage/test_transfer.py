import threading

import pytest

from trackbed.base.errors import BadInput
from trackbed.storage.transfer import Meter, Pace, Paces, Speed, Tally, Window, ahead


class Time:
    def __init__(self):
        self.at = 100.0

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds


def test_a_pace_is_kept_over_many_takes():
    time = Time()
    pace = Pace(1000, now=time.now, sleep=time.sleep)
    for _ in range(100):
        pace.take(100)
    assert 9.5 <= time.at - 100 <= 10.0


def test_a_pause_is_no_credit_for_a_flood():
    time = Time()
    pace = Pace(1000, now=time.now, sleep=time.sleep)
    time.at += 3600
    before = time.at
    for _ in range(20):
        pace.take(100)
    assert time.at - before >= 1.5


def test_no_limit_never_waits_and_a_limit_of_nothing_is_refused():
    Pace(None, sleep=lambda s: pytest.fail("waited")).take(10**12)
    with pytest.raises(BadInput):
        Pace(0)


def test_of_two_limits_the_tighter_one_holds():
    time = Time()
    paces = Paces(Pace(10_000, now=time.now, sleep=time.sleep), Pace(100, now=time.now, sleep=time.sleep))
    for _ in range(11):
        paces.take(100)
    assert time.at - 100 >= 9


def test_the_time_left_follows_the_last_seconds():
    time, seen = Time(), list[Speed]()
    meter = Meter(seen.append, window_s=10, now=time.now)
    meter(0, 1000)
    assert seen[-1].left_s is None
    for second in range(1, 21):
        time.at += 1
        meter(second * 10, 1000)
    assert seen[-1].bytes_per_s == pytest.approx(10)
    assert seen[-1].left_s == pytest.approx(80)
    for second in range(1, 21):
        time.at += 1
        meter(200 + second * 40, 1000)
    assert seen[-1].bytes_per_s == pytest.approx(40, rel=0.2)
    assert seen[-1].left_s == 0


def test_a_tally_of_many_threads_only_grows():
    seen: list[tuple[int, int]] = []
    tally = Tally(8000, lambda done, total: seen.append((done, total)))
    threads = [threading.Thread(target=lambda: [tally.add(1) for _ in range(1000)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [(number, 8000) for number in range(1, 8001)]


def test_a_window_bounds_what_is_out_and_lets_one_giant_through():
    window = Window(100)
    assert window.take(60) == 60
    waiting = threading.Thread(target=lambda: window.give(window.take(1000)))
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    window.give(60)
    waiting.join(5)
    assert not waiting.is_alive()


def test_read_ahead_keeps_the_order_and_its_depth():
    running, most, lock = [0], [0], threading.Lock()

    def fetch(number: int) -> int:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        with lock:
            running[0] -= 1
        return number * number

    assert list(ahead(range(200), fetch, threads=3, depth=5)) == [number * number for number in range(200)]
    assert most[0] <= 5


def test_a_fault_in_read_ahead_comes_in_its_turn():
    def fetch(number: int) -> int:
        if number == 3:
            raise ValueError("three")
        return number

    got: list[int] = []
    with pytest.raises(ValueError, match="three"):
        for one in ahead(range(10), fetch):
            got.append(one)
    assert got == [0, 1, 2]
