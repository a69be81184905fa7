"""A lease ends only by time during which the server was serving."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackbed.base.errors import BadInput
from trackbed.domain.lease import Contact, LeaseTimes, Silence, judge

TIMES = LeaseTimes()


def test_a_disordered_table_is_refused_with_its_values():
    with pytest.raises(BadInput) as refused:
        LeaseTimes(heartbeat_s=10)
    assert refused.value.code == "lease_times_disordered"
    assert refused.value.params["heartbeat_s"] == 10


def test_silence_is_suspect_then_expired_then_gone():
    assert [judge(s, TIMES) for s in (0, 19, 20, 60, 89, 90)] == [
        Contact.OK, Contact.OK, Contact.SUSPECT, Contact.EXPIRED, Contact.EXPIRED, Contact.GONE,
    ]  # fmt: skip


def beats(silence: Silence, start: float, count: int, contacts: dict[str, int]) -> float:
    told = 0.0
    for beat in range(count):
        told = silence.observe(start + beat, contacts)["a"]
    return told


def test_after_a_start_nothing_is_gone_before_a_full_lease_and_suspect_time():
    silence = Silence()
    told = beats(silence, 1000.0, 80, {"a": 1})
    assert judge(told, TIMES) is not Contact.GONE


def test_the_servers_own_absence_extends_every_lease():
    silence = Silence()
    beats(silence, 0.0, 50, {"a": 1})
    told = silence.observe(5000.0, {"a": 1})["a"]  # the process was stopped for over an hour
    assert told < 60


def test_a_renewal_starts_the_count_again():
    silence = Silence()
    beats(silence, 0.0, 70, {"a": 1})
    assert silence.observe(70.0, {"a": 2})["a"] == 0.0


def test_a_clock_that_runs_backwards_ends_nothing_early():
    silence = Silence()
    silence.observe(100.0, {"a": 1})
    assert silence.observe(50.0, {"a": 1})["a"] == 0.0


@given(st.lists(st.floats(0, 500, allow_nan=False), min_size=1, max_size=60))
def test_counted_silence_is_never_more_than_real_silence(gaps):
    silence, now = Silence(), 0.0
    silence.observe(now, {"a": 1})
    for gap in gaps:
        now += gap
        told = silence.observe(now, {"a": 1})["a"]
        assert told <= now + 1e-6
        assert told <= 2.0 * len(gaps) + 1e-6
