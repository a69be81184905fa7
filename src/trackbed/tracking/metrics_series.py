"""Curves for charts: few points that hide nothing, on one grid for all curves of an answer, and what came since a cursor."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trackbed.formats.columns import Column as Packed
from trackbed.formats.points import Floats, Ints
from trackbed.tracking.metrics_cells import Cells, Window, axis, cells_of, points
from trackbed.tracking.metrics_columns import Column, words
from trackbed.tracking.metrics_sealed import Part, sealed_to
from trackbed.tracking.metrics_view import View
from trackbed.wire.series import Grid, Series, SeriesReply


@dataclass(frozen=True)
class Asked:
    """A run whose curves are asked. `since`: the position up to which the asker has them; None: it has nothing."""

    view: View
    zero_us: int = 0  # where x = relative begins
    since: int | None = None


@dataclass
class _Curve:
    run: str
    key: str
    rank: int
    cells: Cells
    appended: bool = False
    at: Ints | None = None  # numbers of buckets in the grid

    @property
    def points(self) -> int:
        return int(self.cells.points.sum())


class Answer:
    """Curves with at most `buckets` cells each: raw points where fewer lie in the window."""

    def __init__(self, curves: list[_Curve], cursors: dict[str, int], window: Window) -> None:
        self._cursors = {run: str(cursor) for run, cursor in cursors.items()}
        wide = [curve for curve in curves if curve.points > window.buckets]
        self._grid = _grid(wide, window.buckets)
        self._points = [curve.points for curve in curves]
        if self._grid is not None:
            for curve in wide:
                curve.cells, curve.at = _bucketed(curve.cells, self._grid)
        self._curves = curves

    def reply(self) -> SeriesReply:
        """Return the answer as JSON carries it."""
        found: list[Series] = []
        for curve, count in zip(self._curves, self._points, strict=True):
            record, cells, last = self._record(curve, count), curve.cells, words(curve.cells.last)
            record.x, record.last, record.count = cells.x.tolist(), last, cells.points.tolist()
            record.mean = record.min = record.max = last
            if curve.at is not None:
                record.mean, record.min, record.max = words(_mean(cells)), words(cells.low), words(cells.high)
                record.non_finite = np.trim_zeros(cells.odd, "b").tolist()
                record.at = curve.at.tolist()
            found.append(record)
        return SeriesReply(series=found, grid=self._grid, cursors=self._cursors)

    def columns(self) -> tuple[SeriesReply, list[dict[str, int]], list[Packed]]:
        """Return the answer without its columns, of each curve name → number of a column, and the columns.

        A curve of raw points has `x` and `last` alone.
        """
        packed: list[Packed] = []
        places: list[dict[str, int]] = []
        for curve in self._curves:
            cells = curve.cells
            named: dict[str, Floats | Ints] = {"x": cells.x, "last": cells.last}
            if curve.at is not None:
                named |= {"mean": _mean(cells), "min": cells.low, "max": cells.high}
                named |= {"count": cells.points, "non_finite": cells.odd, "at": curve.at}
            places.append({name: len(packed) + at for at, name in enumerate(named)})
            packed += [_packed(column) for column in named.values()]
        records = [self._record(curve, count) for curve, count in zip(self._curves, self._points, strict=True)]
        return SeriesReply(series=records, grid=self._grid, cursors=self._cursors), places, packed

    def _record(self, curve: _Curve, count: int) -> Series:
        stream = "" if curve.rank == 0 else f"rank/{curve.rank}"
        return Series(
            run=curve.run, key=curve.key, stream=stream, points=count, bucketed=curve.at is not None,
            appended=curve.appended,
        )  # fmt: skip


def series(asked: Sequence[Asked], keys: Sequence[str], window: Window) -> Answer:
    """Return the curves of some runs, of the lowest rank of each key unless `window.streams`."""
    curves: list[_Curve] = []
    for one in asked:
        for key in dict.fromkeys(keys):
            parts = one.view.parts(key)
            ranks = sorted({*parts, *one.view.loose.ranks(key)})
            for rank in ranks if window.streams else ranks[:1]:
                curves.append(_curve(one, key, rank, parts.get(rank, []), window))
    return Answer(curves, {one.view.run_id: one.view.cursor for one in asked}, window)


def _curve(asked: Asked, key: str, rank: int, parts: Sequence[Part], window: Window) -> _Curve:
    fresh = None if asked.since is None else _appended(asked.view, key, rank, parts, window, asked.since)
    if fresh is not None:
        cells = points(fresh, window.x, asked.zero_us).between(window.low, window.high)
        return _Curve(asked.view.run_id, key, rank, cells, appended=True)
    return _Curve(asked.view.run_id, key, rank, cells_of(asked.view, key, rank, parts, window, asked.zero_us))


def _appended(view: View, key: str, rank: int, parts: Sequence[Part], window: Window, since: int) -> Column | None:
    """Return what came behind a position, if it only goes on behind what was there; else the curve is to be drawn anew."""
    if window.all_attempts or window.x not in ("step", "relative", "wall") or since < sealed_to(view.seals):
        return None
    places = view.loose.places(key, rank)
    split = int(np.searchsorted(view.loose.pos[places], since, "right"))
    column = view.loose.column(key, rank)
    before, fresh = column.take(slice(0, split)), column.take(slice(split, None))
    if not len(fresh):
        return fresh
    at_step = window.x == "step"
    earlier = [axis(before.step, before.ts, window.x, 0).max()] if split else []
    names = ("high_step",) if at_step else ("high_ts",)
    ends = np.array([getattr(part.directory, name)[part.chunk] for part in parts for name in names], np.int64)
    earlier += [axis(ends, ends, window.x, 0).max()] if len(ends) else []
    steps = [int(before.step.max())] if split else []
    steps += [part.steps[1] for part in parts]
    behind = not steps or int(fresh.step[0]) > max(steps)
    x = axis(fresh.step, fresh.ts, window.x, 0)
    goes_on = fresh.ordered and behind and (not earlier or float(x.min()) >= max(earlier))
    newest = max([int(before.version.max())] if split else [], default=0)
    newest = max([newest, *(part.version for part in parts)])
    return fresh if goes_on and int(fresh.version[0]) >= newest else None


def _grid(curves: Sequence[_Curve], buckets: int) -> Grid | None:
    if not curves:
        return None
    start = min(float(curve.cells.x[0]) for curve in curves)
    width = (max(float(curve.cells.x[-1]) for curve in curves) - start) / buckets or 1.0
    return Grid(start=start, width=width, buckets=buckets)


def _bucketed(cells: Cells, grid: Grid) -> tuple[Cells, Ints]:
    edges = grid.start + np.arange(1, grid.buckets) * grid.width
    bounds = np.concatenate([[0], np.searchsorted(cells.x, edges, "left"), [len(cells.x)]])
    filled = np.flatnonzero(bounds[1:] > bounds[:-1])
    starts, ends = bounds[filled], bounds[filled + 1]
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.add.reduceat(cells.total, starts)
    joined = Cells(
        cells.x[ends - 1], cells.last[ends - 1], np.fmin.reduceat(cells.low, starts),
        np.fmax.reduceat(cells.high, starts), total, np.add.reduceat(cells.points, starts),
        np.add.reduceat(cells.odd, starts),
    )  # fmt: skip
    return joined, filled


def _mean(cells: Cells) -> Floats:
    """The mean of the finite values; the least number where there are none, the middle where the sum is too great."""
    finite = cells.points - cells.odd
    with np.errstate(all="ignore"):
        mean = cells.total / finite
        mean = np.where(np.isfinite(cells.total), mean, cells.low / 2 + cells.high / 2)
    return np.where(finite > 0, mean, cells.low)


def _packed(column: "Floats | Ints") -> Packed:
    if column.dtype == np.float64:
        return Packed("f8", column.astype("<f8").tobytes())
    return Packed("u4", column.astype("<u4").tobytes())
