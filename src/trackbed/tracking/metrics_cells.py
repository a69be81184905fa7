"""What a chart is drawn from: cells along an axis, each one point or one row of a stored level.

Levels are read where a curve has very many points and nobody replayed its steps; a bucket may then begin or end up to 64 points
off its edge, and its least and greatest value are still exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from trackbed.formats.points import LEVEL_POINTS, STEPS_GROW, TIMES_GROW, Floats, Ints, Level
from trackbed.tracking.metrics_columns import Column, joined
from trackbed.tracking.metrics_sealed import Part
from trackbed.tracking.metrics_view import View

POINTS_PER_BUCKET = 8 * LEVEL_POINTS  # levels are good enough from here
METRIC = "metrics."  # an x of this beginning is another metric


@dataclass(frozen=True)
class Window:
    """What of a curve is asked: x is `step`, `relative` (seconds since the run began), `wall` (seconds UTC) or `metrics.KEY`."""

    x: str = "step"
    low: float | None = None
    high: float | None = None
    buckets: int = 1500
    all_attempts: bool = False
    streams: bool = False  # of every rank, not only of the lowest


class Cells(NamedTuple):
    """By x. Columns of equal length."""

    x: Floats
    last: Floats
    low: Floats  # of what is no NaN; NaN where all is
    high: Floats
    total: Floats  # of finite values
    points: Ints
    odd: Ints  # NaN and ±inf among them

    def take(self, places: "npt.NDArray[Any] | slice") -> "Cells":
        return Cells._make(column[places] for column in self)

    def between(self, low: float | None, high: float | None) -> "Cells":
        start = 0 if low is None else int(np.searchsorted(self.x, low, "left"))
        end = None if high is None else int(np.searchsorted(self.x, high, "right"))
        return self.take(slice(start, end))


def cells_of(view: View, key: str, rank: int, parts: Sequence[Part], window: Window, zero_us: int) -> Cells:
    """Return the cells of a curve inside the window, by x."""
    if window.x.startswith(METRIC):
        found = _over_metric(view, key, rank, parts, window)
    else:
        loose = view.loose.column(key, rank)
        parts = _narrowed(parts, loose, window, zero_us)
        found = None if window.all_attempts else _from_levels(view, parts, loose, window, zero_us)
        if found is None:
            column = joined([*view.reader.column(parts), loose])
            found = points(column if window.all_attempts else column.counted(), window.x, zero_us)
    return found.between(window.low, window.high)


def points(column: Column, x: str, zero_us: int) -> Cells:
    """Return a cell a point, by `step`, `relative` or `wall`."""
    return _by_x(axis(column.step, column.ts, x, zero_us), column.value)


def axis(step: Ints, ts: Ints, x: str, zero_us: int) -> Floats:
    if x == "step":
        return step.astype(np.float64)
    return (ts - (zero_us if x == "relative" else 0)) / 1e6


def _by_x(x: Floats, value: Floats) -> Cells:
    if not (x[1:] >= x[:-1]).all():
        places = np.argsort(x, kind="stable")
        x, value = x[places], value[places]
    odd = ~np.isfinite(value)
    ones = np.ones(len(x), np.int64)
    return Cells(x, value, value, value, np.where(odd, 0.0, value), ones, odd.astype(np.int64))


def _over_metric(view: View, key: str, rank: int, parts: Sequence[Part], window: Window) -> Cells:
    """Values of a metric over those of another at the same steps; steps that have not both are left out."""
    ys = view.column(key, rank, parts).counted()
    of_x = view.columns(window.x.removeprefix(METRIC), rank).get(rank)
    xs = of_x.counted() if of_x is not None else joined([])
    _, at_x, at_y = np.intersect1d(xs.step, ys.step, assume_unique=True, return_indices=True)
    x, value = xs.value[at_x], ys.value[at_y]
    known = np.isfinite(x)
    return _by_x(x[known], value[known])


def _narrowed(parts: Sequence[Part], loose: Column, window: Window, zero_us: int) -> Sequence[Part]:
    """Leave out chunks that cannot have a point of the window, nor decide which of its points count."""
    if (window.low is None and window.high is None) or not parts:
        return parts
    if window.x != "step" and not all(_clear(parts, loose)):
        return parts
    names = ("low_step", "high_step") if window.x == "step" else ("low_ts", "high_ts")
    low, high = (
        axis(ends, ends, window.x, zero_us)
        for ends in (
            np.array([getattr(part.directory, name)[part.chunk] for part in parts], np.int64) for name in names
        )
    )
    kept = np.ones(len(parts), np.bool_)
    if window.low is not None:
        kept &= high >= window.low
    if window.high is not None:
        kept &= low <= window.high
    return [part for part, inside in zip(parts, kept.tolist(), strict=True) if inside]


def _from_levels(view: View, parts: Sequence[Part], loose: Column, window: Window, zero_us: int) -> Cells | None:
    """Return rows of stored levels, points where those do not hold, or None where all points are to be read."""
    if sum(part.size for part in parts) < window.buckets * POINTS_PER_BUCKET:
        return None
    needed = STEPS_GROW if window.x == "step" else STEPS_GROW | TIMES_GROW
    rows: list[Part] = []
    others: list[Part] = []
    for part, alone in zip(parts, _clear(parts, loose), strict=True):
        (rows if alone and part.has(needed) and part.levelled else others).append(part)
    if not rows:
        return None
    exact = joined([*view.reader.column(others), loose]).counted()
    found = _together([view.reader.level(part) for part in rows], exact, window.x, zero_us)
    return found if (found.x[1:] >= found.x[:-1]).all() else None


def _clear(parts: Sequence[Part], loose: Column) -> list[bool]:
    """Tell of each chunk whether nobody else says anything at its steps."""
    ends = [part.steps for part in parts] + ([(int(loose.step.min()), int(loose.step.max()))] if len(loose) else [])
    order = sorted(range(len(ends)), key=ends.__getitem__)
    clear = [True] * len(ends)
    reach, owner = None, -1
    for at in order:
        low, high = ends[at]
        if reach is not None and low <= reach:
            clear[at] = clear[owner] = False
        if reach is None or high > reach:
            reach, owner = high, at
    return clear[: len(parts)]


def _together(levels: Sequence[Level], exact: Column, x: str, zero_us: int) -> Cells:
    """Return rows and points in the order of steps."""
    one = points(exact, "step", 0)
    step = np.concatenate([*(level.step for level in levels), exact.step])
    ts = np.concatenate([*(level.ts for level in levels), exact.ts])
    order = np.argsort(step, kind="stable")
    columns = [
        np.concatenate([*(getattr(level, name) for level in levels), getattr(one, name)]) for name in Cells._fields[1:]
    ]
    return Cells._make([axis(step, ts, x, zero_us), *columns]).take(order)
