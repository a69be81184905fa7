"""What a trial is asked, and what its points tell of the full run. Pure: no clock, no database.

The steps of the trial are timed by the stamps of its own points; the first is left out (it holds compiling, caches, the
first read). The full run is said to take as long a step. With more cards than the trial's one nobody knows how a step
scales: the least is a step shared out without loss, the most one that takes as long on every card.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from trackbed.base.errors import Fault
from trackbed.wire.reason import Reason
from trackbed.wire.spec import Resources, Spec, Stage, Trial
from trackbed.wire.trial import Forecast, LossTrend, TrialRequest

STEP_KEY = "trial/step"  # one point a step, by the SDK; its stamp is the end of the step
TAG = "trial"
_NAMES = ("steps", "max_steps", "total_steps", "num_steps", "train_steps", "n_steps", "iterations", "max_iters", "num_train_steps")  # fmt: skip
_FLAT = 0.01  # of the first value: a smaller change over all points is none
_FEW = 5  # steps: fewer say little


@dataclass(frozen=True)
class Price:
    """Of one card for one hour."""

    amount: float
    currency: str


def trial_spec(spec: Spec, asked: TrialRequest) -> Spec:
    """Return the spec of the run that tries another: one card, a time limit, nothing registered, nothing taken from a cache."""
    limit_s = asked.limit_s
    stages = [
        part if part.resources is None else msgspec.structs.replace(part, resources=_one_card(part.resources, limit_s))
        for part in spec.stages
    ]
    return msgspec.structs.replace(
        spec, name=f"{spec.name[:120]}-trial" if spec.name else "", tags=[*dict.fromkeys([*spec.tags, TAG])],
        resources=_one_card(spec.resources, limit_s), stages=stages, register=None, cache=False, retries={}, matrix={},
        trial=Trial(steps=asked.steps, full_steps=asked.full_steps),
    )  # fmt: skip


def _one_card(wanted: Resources, limit_s: float) -> Resources:
    least = min(limit_s, wanted.time_limit_s or limit_s)
    return msgspec.structs.replace(wanted, cards_per_node=min(1, wanted.cards_per_node), nodes=1, time_limit_s=least)


def request_faults(asked: TrialRequest) -> list[Fault]:
    """What is wrong with what a trial is asked."""
    least = {"steps": 1, "data_bytes": 0, "full_steps": 0, "limit_s": 1}
    return [
        Fault("spec_too_small", f"trial.{name}", None, {"value": getattr(asked, name), "least": lowest})
        for name, lowest in least.items()
        if not getattr(asked, name) >= lowest
    ]


def most_cards(spec: Spec, stage: Stage | None) -> int:
    resources = (stage.resources if stage else None) or spec.resources
    return resources.cards


def full_steps(said: int, reported: int, params: dict[str, Any]) -> int:
    """Return how many steps the full run has: as somebody said, as its program reports, or as a param is called; 0: unknown."""
    if said or reported:
        return said or reported
    for name in _NAMES:
        value = params.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return 0


def step_seconds(steps: Sequence[int], stamps_us: Sequence[int]) -> list[float]:
    """Return how long each step took, by the stamps of two neighbours; the first interval only where there is no other."""
    pairs = list(zip(steps, stamps_us, strict=True))
    found = [
        (later - earlier) / 1e6 / (to - at)
        for (at, earlier), (to, later) in itertools.pairwise(pairs)
        if to > at and later >= earlier
    ]
    return found[1:] if len(found) > 2 else found


def spread(values: Sequence[float]) -> list[float]:
    """Return the 10th, 50th and 90th percentile."""
    ordered = sorted(values)
    return [ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))] for share in (0.1, 0.5, 0.9)]


def trend_of(key: str, steps: Sequence[int], values: Sequence[float]) -> LossTrend | None:
    """Return where a curve goes, by the straight line through all of its points."""
    if not values:
        return None
    known = LossTrend(key=key, first=_word(values[0]), last=_word(values[-1]), points=len(values))
    if not all(math.isfinite(value) for value in values):
        return msgspec.structs.replace(known, trend="not_finite")
    mean_step, mean = sum(steps) / len(steps), sum(values) / len(values)
    spread_of_steps = sum((step - mean_step) ** 2 for step in steps)
    if not spread_of_steps:
        return known
    slope = sum((s - mean_step) * (v - mean) for s, v in zip(steps, values, strict=True)) / spread_of_steps
    change = slope * (steps[-1] - steps[0])
    if abs(change) <= _FLAT * max(abs(values[0]), 1e-12):
        return msgspec.structs.replace(known, slope=slope)
    return msgspec.structs.replace(known, slope=slope, trend="falling" if change < 0 else "rising")


def forecast(seconds: Sequence[float], *, steps: int, cards: int, startup_s: float, price: Price | None) -> Forecast:
    """Return what the full run of so many steps on so many cards takes. `seconds` are those of single steps."""
    low, middle, high = spread(seconds)
    on = max(1, cards)
    how = [Reason(code="trial_measured", params={"steps": len(seconds)}), Reason(code="trial_not_counted")]
    if len(seconds) < _FEW:
        how.append(Reason(code="trial_few_steps", params={"steps": len(seconds)}))
    if cards > 1:
        how.append(Reason(code="trial_scaled", params={"cards": cards}))
    times = [startup_s + steps * one for one in (low / on, middle, high)]
    hours = [time * cards / 3600 for time in times]
    costs = [None if price is None else one * price.amount for one in hours]
    return Forecast(
        steps=steps, cards=cards, seconds_low=times[0], seconds=times[1], seconds_high=times[2], card_hours_low=hours[0],
        card_hours=hours[1], card_hours_high=hours[2], cost_low=costs[0], cost=costs[1], cost_high=costs[2],
        currency=price.currency if price else "", how=how,
    )  # fmt: skip


def _word(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
