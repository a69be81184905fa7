"""The summary of one metric of one rank, kept up to date point by point. Pure.

One point a step is *counted*: that of the newest (attempt, incarnation), and there the one logged last. A resumed run says
its replayed steps again; where the values are the same, nothing changes.
"""

import math
import struct
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class Counted(NamedTuple):
    """A point that counts at its step."""

    version: int
    value: float


class State(msgspec.Struct, kw_only=True, array_like=True):
    """`min` and `max` are over finite values, None without any; `argmin` is the least step that has the minimum."""

    count: int = 0
    non_finite: int = 0
    first_step: int = 0
    first: float = 0.0
    last_step: int = 0
    last: float = 0.0
    last_ts: int = 0
    min: float | None = None
    argmin: int | None = None
    max: float | None = None
    argmax: int | None = None
    version: int = 0  # greatest seen

    def add(self, step: int, value: float, ts: int) -> None:
        """Count a point at a step that had none."""
        if self.count == 0 or step < self.first_step:
            self.first_step, self.first = step, value
        if self.count == 0 or step > self.last_step:
            self.last_step, self.last, self.last_ts = step, value, ts
        self.count += 1
        if not math.isfinite(value):
            self.non_finite += 1
            return
        if self.min is None or value < self.min or (value == self.min and step < (self.argmin or 0)):
            self.min, self.argmin = value, step
        if self.max is None or value > self.max or (value == self.max and step < (self.argmax or 0)):
            self.max, self.argmax = value, step

    def replace(self, step: int, old: float, new: float, ts: int) -> bool:
        """Put another value at a counted step; return whether the extremes must be looked for anew."""
        if step == self.first_step:
            self.first = new
        if step == self.last_step:
            self.last, self.last_ts = new, ts
        if same_bits(old, new):
            return False
        self.non_finite += (not math.isfinite(new)) - (not math.isfinite(old))
        if step in (self.argmin, self.argmax):
            return True
        self.count -= 1  # `add` counts it again, and its non-finiteness
        self.non_finite -= not math.isfinite(new)
        self.add(step, new, ts)
        return False


def version_of(attempt: int, incarnation: int) -> int:
    """Return a number that grows with (attempt, incarnation)."""
    return attempt << 24 | incarnation


def same_bits(a: float, b: float) -> bool:
    return struct.pack("<d", a) == struct.pack("<d", b)


def summarize(points: Iterable[tuple[int, float, int, int]]) -> State:
    """Return the state of counted points (step, value, ts, version)."""
    state = State()
    for step, value, ts, version in points:
        state.add(step, value, ts)
        state.version = max(state.version, version)
    return state


def word(value: float) -> float | str:
    """Return the value as it crosses the wire: non-finite ones by their words."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def merge(state: State, later: State) -> State | None:
    """Return both as one where `later` only goes on behind `state`; None where steps overlap or versions fall."""
    if state.count == 0:
        return msgspec.structs.replace(later)
    if later.first_step <= state.last_step or later.version < state.version:
        return None
    lower = later.min is not None and (state.min is None or later.min < state.min)
    higher = later.max is not None and (state.max is None or later.max > state.max)
    return State(
        count=state.count + later.count, non_finite=state.non_finite + later.non_finite,
        first_step=state.first_step, first=state.first,
        last_step=later.last_step, last=later.last, last_ts=later.last_ts,
        min=later.min if lower else state.min, argmin=later.argmin if lower else state.argmin,
        max=later.max if higher else state.max, argmax=later.argmax if higher else state.argmax,
        version=max(state.version, later.version),
    )  # fmt: skip
