"""When a curve is not as it should be: pure, point by point, with a state that can be written down and taken up again.

    non_finite   NaN or infinite, of any metric and rank
    spike        far above what the last points lead to expect
    divergence   the level has left the best one that there was, and stays away
    plateau      half of the run has brought nothing

Values are turned so that less is better. What is expected comes from medians: a spike does not move what it is judged by.
One anomaly of a kind is open on a curve at a time; one that comes back soon is the same again, counted, and told once.
"""

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, median
from typing import Any

import msgspec

WINDOW = 64  # points by which the next one is judged
WARM = 32  # points of an attempt before its curves are judged
LOOK_EVERY = 8  # points between two looks at the level
CALM = 16  # good points in a row after which an anomaly is over
AGAIN = 128  # points after its end in which it is the same one again
LEVEL = 16  # points whose median is the level
SPIKE_SIGMAS = 10.0
SPIKE_SHARE = 0.05  # of the expected value: less than that is no spike, however quiet the curve is
DIVERGED_SIGMAS = 5.0
DIVERGED_SHARE = 0.1
PLATEAU_POINTS = 256
PLATEAU_SHARE = 0.01  # of all that the curve has gained, or of its value: less is nothing
MOST_BLOCKS = 128
_SIGMA = 1.4826  # of a normal distribution: median absolute deviation → standard deviation
_UPPER = 1.2816  # and its nine tenths
KINDS = ("non_finite", "spike", "divergence", "plateau")

_LOSS = re.compile(r"(?:^|[/_.\- ])(?:loss|nll|perplexity|ppl)$", re.IGNORECASE)
_NORM = re.compile(r"(?:^|[/_.\- ])grad(?:ient)?_norm$", re.IGNORECASE)


@dataclass(frozen=True)
class Rules:
    """What a metric is judged by. `sign` turns it so that less is better; a spike is `spike` deviations above the median."""

    sign: float = 1.0
    spike: float | None = SPIKE_SIGMAS
    divergence: bool = True
    plateau: bool = True


def rules_for(key: str, definition: Mapping[str, Any]) -> Rules | None:
    """Return what a metric is judged by; None: for its finiteness only.

    `define_metric(..., goal=…)` or `watch=…` asks for it; a loss by its name and a gradient norm (spikes only) are judged
    unasked. `watch` is False, True, or a document such as {"spike": 12, "plateau": False}.
    """
    watch, goal = definition.get("watch"), definition.get("goal")
    if watch is False or (watch is None and key.startswith("system/")):
        return None
    sign = -1.0 if goal == "max" else 1.0
    whole = goal in ("min", "max") or _LOSS.search(key) is not None
    rules = Rules(sign, divergence=whole, plateau=whole)
    if isinstance(watch, Mapping):
        said: Mapping[str, Any] = watch
        return Rules(
            sign,
            spike=_deviations(said.get("spike", True)),
            divergence=bool(said.get("divergence", whole)),
            plateau=bool(said.get("plateau", whole)),
        )
    return rules if watch or whole or _NORM.search(key) else None


def _deviations(said: Any) -> float | None:
    if said is True:
        return SPIKE_SIGMAS
    good = isinstance(said, int | float) and not isinstance(said, bool) and math.isfinite(said) and said > 0
    return float(said) if good else None


class Mark(msgspec.Struct, array_like=True):
    """An anomaly: the `number`th of its kind on its curve. `calm` counts good points since the last bad one."""

    number: int = 0
    open: bool = False
    calm: int = 0
    first_step: int = 0
    last_step: int = 0
    count: int = 0
    opened_us: int = 0
    closed_us: int = 0
    value: float = 0.0  # at first
    worst: float = 0.0
    expected: float | None = None
    rank: int = 0
    told_over: bool = False


@dataclass(frozen=True)
class News:
    """What is to be told: an anomaly was `opened`, or is `over`."""

    what: str
    kind: str
    key: str
    mark: Mark


class Curve(msgspec.Struct, array_like=True):
    """What has to be known of a metric to judge its next point."""

    rank: int = 0
    version: int = 0
    step: int = -(2**63)
    seen: int = 0
    taken: int = 0
    window: list[float] = []
    held: list[float] = []  # spiking points: they belong to the window only if they go on
    middle: float = 0.0
    sigma: float = 0.0
    best: float | None = None
    best_sigma: float = 0.0
    away: int = 0  # looks in a row at a level that has left the best one
    blocks: list[float] = []  # means of `block_n` points each: the whole attempt, coarser as it grows
    block_n: int = 1
    block_at: int = 0
    block_sum: float = 0.0
    marks: dict[str, Mark] = {}


class Judge:
    """Feeds the points of one curve to its state and collects what is new."""

    def __init__(self, key: str, curve: Curve, rules: Rules) -> None:
        self.key, self.curve, self.rules = key, curve, rules
        self.news: list[News] = []
        self.changed: set[str] = set()

    def feed(self, version: int, steps: Sequence[int], stamps: Sequence[int], values: Sequence[float]) -> None:
        """Judge points in the order in which they were logged; a step that was seen before says nothing new."""
        curve = self.curve
        if version > curve.version:  # another attempt: its curve begins anew, perhaps at an earlier step
            marks = curve.marks
            fresh = Curve(rank=curve.rank, version=version, marks=marks)
            for name in curve.__struct_fields__:
                setattr(curve, name, getattr(fresh, name))
        if version < curve.version:
            return
        for step, ts, value in zip(steps, stamps, values, strict=True):
            if step > curve.step:
                curve.step = step
                if math.isfinite(value):
                    self._point(step, ts, self.rules.sign * value)

    def _point(self, step: int, ts: int, v: float) -> None:
        curve, rules = self.curve, self.rules
        curve.seen += 1
        if rules.spike is not None and len(curve.window) >= WARM:
            reach = max(rules.spike * curve.sigma, SPIKE_SHARE * abs(curve.middle), 1e-12)
            if v > curve.middle + reach:
                curve.held.append(v)
                self._bad("spike", step, ts, v, curve.middle)
                if len(curve.held) >= CALM:  # a new level, not a spike
                    held, curve.held = curve.held, []
                    for one in held:
                        self._take(step, ts, one)
                return
        self._good("spike", ts)
        curve.held.clear()
        self._take(step, ts, v)

    def _take(self, step: int, ts: int, v: float) -> None:
        curve = self.curve
        curve.window.append(v)
        curve.taken += 1
        del curve.window[:-WINDOW]
        if len(curve.window) == WARM or curve.taken % LOOK_EVERY == 0:
            curve.middle, curve.sigma = spread(curve.window)
            if self.rules.divergence and len(curve.window) >= WARM:
                self._level(step, ts)
        if self.rules.plateau:
            self._block(step, ts, v)

    def _level(self, step: int, ts: int) -> None:
        curve = self.curve
        level = median(curve.window[-LEVEL:])
        if curve.best is None or level < curve.best:
            curve.best, curve.best_sigma = level, curve.sigma
        reach = max(DIVERGED_SIGMAS * curve.best_sigma, DIVERGED_SHARE * abs(curve.best))
        curve.away = curve.away + 1 if level > curve.best + reach else 0
        if curve.away >= 2:
            self._bad("divergence", step, ts, level, curve.best)
        elif level < curve.best + reach / 2:
            self._good("divergence", ts, LOOK_EVERY)

    def _block(self, step: int, ts: int, v: float) -> None:
        curve = self.curve
        curve.block_sum += v
        curve.block_at += 1
        if curve.block_at < curve.block_n:
            return
        curve.blocks.append(curve.block_sum / curve.block_n)
        curve.block_at, curve.block_sum = 0, 0.0
        if len(curve.blocks) >= MOST_BLOCKS:
            pairs = zip(curve.blocks[::2], curve.blocks[1::2], strict=True)
            curve.blocks, curve.block_n = [(one + other) / 2 for one, other in pairs], curve.block_n * 2
        if curve.seen >= PLATEAU_POINTS and not self._is_open("divergence"):
            flat = flatness(curve.blocks)
            if flat is Flat.YES:
                self._bad("plateau", step, ts, curve.blocks[-1], None)
            elif flat is Flat.NO:
                self._good("plateau", ts, CALM)

    def _is_open(self, kind: str) -> bool:
        mark = self.curve.marks.get(kind)
        return mark is not None and mark.open

    def _bad(self, kind: str, step: int, ts: int, v: float, expected: float | None) -> None:
        sign = self.rules.sign
        mark = self.curve.marks.setdefault(kind, Mark(rank=self.curve.rank))
        if bad(mark, step, ts, sign * v, None if expected is None else sign * expected, sign):
            self.news.append(News("opened", kind, self.key, mark))
        self.changed.add(kind)

    def _good(self, kind: str, ts: int, points: int = 1) -> None:
        mark = self.curve.marks.get(kind)
        if mark is None or (not mark.open and mark.calm >= AGAIN):
            return
        if good(mark, ts, points):
            self.changed.add(kind)
            if not mark.told_over:
                mark.told_over = True
                self.news.append(News("over", kind, self.key, mark))


def bad(mark: Mark, step: int, ts: int, value: float, expected: float | None = None, sign: float = 1.0) -> bool:
    """Count a bad point; return whether a new anomaly begins with it."""
    new = mark.number == 0 or (not mark.open and mark.calm >= AGAIN)
    if new:
        mark.number += 1
        mark.count, mark.told_over = 0, False
        mark.first_step, mark.opened_us, mark.value, mark.worst, mark.expected = step, ts, value, value, expected
    mark.open, mark.calm, mark.closed_us = True, 0, 0
    mark.last_step = step
    mark.count += 1
    if sign * value > sign * mark.worst:
        mark.worst = value
    return new


def good(mark: Mark, ts: int, points: int = 1) -> bool:
    """Count good points; return whether the anomaly is over with them."""
    mark.calm += points
    if mark.open and mark.calm >= CALM:
        mark.open, mark.closed_us = False, ts
        return True
    return False


def spread(window: Sequence[float]) -> tuple[float, float]:
    """Return the median and the standard deviation that the middle or, where the values lean upwards, their upper tenth says."""
    ordered = sorted(window)
    middle = median(ordered)
    upper = (ordered[len(ordered) * 9 // 10] - middle) / _UPPER
    return middle, max(_SIGMA * median([abs(one - middle) for one in ordered]), upper)


class Flat(StrEnum):
    """Whether the last half of a curve brought nothing; UNKNOWN where noise would hide what it brought."""

    YES, NO, UNKNOWN = "yes", "no", "unknown"


def flatness(blocks: Sequence[float]) -> Flat:
    """Judge the means of equal parts of a curve, less being better: compare the end with the middle, against the noise."""
    n = len(blocks)
    q = n // 8
    if q < 4:
        return Flat.UNKNOWN
    middle, end = fmean(blocks[n // 2 - q : n // 2]), fmean(blocks[n - q :])
    half = blocks[n // 2 :]
    noise = _SIGMA * median([abs(one - other) for one, other in itertools.pairwise(half)]) / math.sqrt(2)
    error = noise * math.sqrt(2 / q)
    gain = middle - end
    if gain > 4 * error:
        return Flat.NO
    nothing = PLATEAU_SHARE * max(fmean(blocks[: max(1, n // 16)]) - end, abs(end))
    return Flat.YES if gain < 2 * error and gain + 3 * error < nothing else Flat.UNKNOWN
