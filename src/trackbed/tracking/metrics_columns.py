"""Points of one metric of one rank as columns, and which of them count. Pure.

One point a step *counts*: that of the newest (attempt, incarnation), and there the one logged last. All points of the newest
one *stand*: what was logged twice stands twice.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from trackbed.formats.points import Floats, Ints


class Column:
    """Points in the order in which they became durable. Never changed once made."""

    def __init__(self, step: Ints, ts: Ints, value: Floats, version: Ints) -> None:
        self.step, self.ts, self.value, self.version = step, ts, value, version

    def __len__(self) -> int:
        return len(self.step)

    @cached_property
    def ordered(self) -> bool:
        """Whether steps grow and versions do not fall: then every point counts."""
        grows = self.step[1:] > self.step[:-1]
        return bool(grows.all() and (self.version[1:] >= self.version[:-1]).all())

    def take(self, places: "npt.NDArray[Any] | slice") -> "Column":
        return Column(self.step[places], self.ts[places], self.value[places], self.version[places])

    def counted(self) -> "Column":
        """Return one point a step, by step."""
        if self.ordered:
            return self
        places = np.lexsort((self.version, self.step))  # stable: of equal ones the last logged comes last
        steps = self.step[places]
        return self.take(places[np.append(steps[1:] != steps[:-1], True)])

    def standing(self) -> Ints:
        """Return the places of the points that stand, by (step, time)."""
        if self.ordered:
            return np.arange(len(self))
        places = np.lexsort((self.version, self.step))
        steps, versions = self.step[places], self.version[places]
        starts = np.flatnonzero(np.append(True, steps[1:] != steps[:-1]))
        newest = np.repeat(np.maximum.reduceat(versions, starts), np.diff(np.append(starts, len(steps))))
        kept = np.sort(places[versions == newest])
        return kept[np.lexsort((self.ts[kept], self.step[kept]))]


def joined(parts: Sequence[Column]) -> Column:
    """Return the points of all parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        nothing = np.empty(0, np.int64)
        return Column(nothing, nothing, nothing.astype(np.float64), nothing)
    return Column(
        np.concatenate([part.step for part in parts]), np.concatenate([part.ts for part in parts]),
        np.concatenate([part.value for part in parts]), np.concatenate([part.version for part in parts]),
    )  # fmt: skip


def words(values: Floats) -> list[float | str]:
    """Return values as they cross the wire in JSON: non-finite ones by their words."""
    found: list[float | str] = values.tolist()
    for at in np.flatnonzero(~np.isfinite(values)).tolist():
        value = found[at]
        found[at] = "NaN" if value != value else "Infinity" if value == np.inf else "-Infinity"
    return found
