"""Anomalies in simulated curves: each kind is found, and clean noisy curves raise no alarm."""

import math
import random
from collections.abc import Callable, Iterable

import msgspec
import pytest

from trackbed.tracking.anomalies_rules import AGAIN, CALM, Curve, Judge, News, Rules, rules_for

Noise = Callable[[random.Random], float]
NOISES: dict[str, Noise] = {
    "normal": lambda chance: chance.gauss(0, 0.05),
    "wide": lambda chance: chance.gauss(0, 0.2),
    "lognormal": lambda chance: 0.05 * (math.exp(chance.gauss(0, 0.3)) - 1),
    "none": lambda _: 0.0,
}


def shape(chance: random.Random) -> Callable[[int], float]:
    """A curve that goes on improving, as a training loss does: a power law or an exponential that has not arrived."""
    if chance.random() < 0.6:
        height, power, floor = chance.uniform(2, 9), chance.uniform(0.15, 0.5), chance.uniform(0, 3)
        return lambda t: floor + height * (t + 10) ** -power
    height, floor, tau = chance.uniform(1, 8), chance.uniform(0.1, 3), chance.uniform(600, 4000)
    return lambda t: floor + height * math.exp(-t / tau)


def judged(values: Iterable[float], rules: Rules | None = None, *, batch: int = 50) -> tuple[list[News], Curve]:
    """Feed values as they would come: in batches, the state written down in between."""
    listed, curve, news = list(values), Curve(), list[News]()
    for at in range(0, len(listed), batch):
        curve = msgspec.msgpack.decode(msgspec.msgpack.encode(curve), type=Curve)
        judge = Judge("loss", curve, rules or Rules())
        part = listed[at : at + batch]
        steps = list(range(at, at + len(part)))
        judge.feed(1, steps, steps, part)
        news += judge.news
    return news, curve


def clean(chance: random.Random, n: int, noise: Noise) -> list[float]:
    base = shape(chance)
    return [base(t) + noise(chance) for t in range(n)]


@pytest.mark.parametrize("name", NOISES)
def test_clean_noisy_curves_raise_no_alarm(name: str) -> None:
    alarms: list[tuple[int, str, int]] = []
    for seed in range(100):
        news, _ = judged(clean(random.Random(seed), 2000, NOISES[name]))
        alarms += [(seed, one.kind, one.mark.first_step) for one in news if one.what == "opened"]
    assert alarms == []


def test_a_spike_is_found_at_its_step_told_once_and_over_afterwards() -> None:
    for seed in range(50):
        chance = random.Random(seed)
        values = clean(chance, 1500, NOISES["normal"])
        at = chance.randrange(400, 1300)
        values[at] += 3.0
        news, _ = judged(values)
        assert [(one.what, one.kind) for one in news] == [("opened", "spike"), ("over", "spike")], seed
        assert news[0].mark.first_step == at


def test_a_spike_does_not_move_what_the_next_one_is_judged_by_and_many_are_one() -> None:
    values = clean(random.Random(3), 1500, NOISES["normal"])
    for at in range(600, 1200, 40):
        values[at] += 5.0
    news, curve = judged(values)
    assert [one.what for one in news] == ["opened", "over"]
    assert curve.marks["spike"].count == 15


def test_a_spike_long_after_the_last_one_is_another() -> None:
    values = clean(random.Random(3), 2000, NOISES["normal"])
    for at in (600, 600 + CALM + AGAIN + 200):
        values[at] += 5.0
    news, curve = judged(values)
    assert [one.what for one in news] == ["opened", "over", "opened", "over"]
    assert curve.marks["spike"].number == 2


def test_divergence_is_found_within_a_hundred_points_and_stays_open() -> None:
    for seed in range(50):
        chance = random.Random(seed)
        values = clean(chance, 1200, NOISES["normal"])
        at, rate = chance.randrange(500, 900), chance.uniform(0.02, 0.2)
        values = [v + max(0, t - at) * rate for t, v in enumerate(values)]
        news, curve = judged(values)
        opened = [one.mark.first_step for one in news if (one.what, one.kind) == ("opened", "divergence")]
        assert len(opened) == 1, seed
        assert at < opened[0] < at + 100
        assert curve.marks["divergence"].open


def test_a_divergence_that_recovers_is_over() -> None:
    values = [2.0 + random.Random(t).gauss(0, 0.05) + (2.0 if 600 <= t < 760 else 0.0) for t in range(1200)]
    news, curve = judged(values, Rules(plateau=False, spike=None))
    assert [(one.what, one.kind) for one in news] == [("opened", "divergence"), ("over", "divergence")]
    assert not curve.marks["divergence"].open


def test_a_plateau_is_found_when_half_of_the_run_brought_nothing() -> None:
    for seed in range(50):
        chance = random.Random(seed)
        values = [1.0 + 4.0 * math.exp(-min(t, 400) / 150) + chance.gauss(0, 0.05) for t in range(2000)]
        news, _ = judged(values)
        opened = [one.mark.first_step for one in news if one.kind == "plateau" and one.what == "opened"]
        assert len(opened) == 1, seed
        assert 600 < opened[0] < 1800


def test_a_curve_that_never_learns_is_a_plateau_and_nothing_else() -> None:
    news, _ = judged([2.3 + random.Random(t).gauss(0, 0.02) for t in range(1000)])
    assert {one.kind for one in news} == {"plateau"}


def test_a_plateau_is_over_when_the_curve_moves_again() -> None:
    chance = random.Random(1)
    values = [2.0 - max(0, t - 1000) * 0.002 + chance.gauss(0, 0.02) for t in range(1800)]
    news, _ = judged(values)
    assert [(one.what, one.kind) for one in news] == [("opened", "plateau"), ("over", "plateau")]


def test_more_is_better_where_the_goal_says_so() -> None:
    rules = rules_for("eval/accuracy", {"goal": "max"})
    assert rules is not None
    chance = random.Random(5)
    values = [0.9 - 0.5 * (t + 10) ** -0.3 + chance.gauss(0, 0.002) - (0.5 if t > 800 else 0) for t in range(1200)]
    news, curve = judged(values, rules)
    assert "divergence" in {one.kind for one in news}
    assert 0 < curve.marks["divergence"].value < 0.5


def test_another_attempt_begins_anew_and_repeated_steps_say_nothing() -> None:
    curve = Curve()
    judge = Judge("loss", curve, Rules())
    judge.feed(1, range(100), range(100), [1.0] * 100)
    judge.feed(1, range(50, 100), range(50), [99.0] * 50)
    assert not judge.news
    judge.feed(2, range(60, 120), range(60), [99.0] * 60)
    assert not judge.news
    judge.feed(1, [500], [1], [1e9])  # the replaced attempt goes on somewhere
    assert not judge.news


def test_what_is_watched_is_said_or_has_the_name_of_a_loss() -> None:
    assert rules_for("train/loss", {}) == Rules()
    assert rules_for("grad_norm", {}) == Rules(divergence=False, plateau=False)
    assert rules_for("accuracy", {}) is None
    assert rules_for("lossless_bytes", {}) is None
    assert rules_for("system/loss", {}) is None
    assert rules_for("loss", {"watch": False}) is None
    assert rules_for("kl", {"watch": True}) == Rules(divergence=False, plateau=False)
    assert rules_for("loss", {"watch": {"spike": 20, "plateau": False}}) == Rules(spike=20.0, plateau=False)
    assert rules_for("loss", {"watch": {"spike": False}}) == Rules(spike=None)
    assert rules_for("acc", {"goal": "max"}) == Rules(sign=-1.0)
