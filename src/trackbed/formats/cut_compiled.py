"""The rule of `cut`, byte by byte as it is defined, compiled by numba: four times as fast as numpy's passes. Optional."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from trackbed.formats.cut import CutRule

_WINDOW = 32
_ONE = np.uint32(1)


def cuts(data: memoryview, table: NDArray[np.uint32], rule: "CutRule", last: bool) -> list[int]:
    """As `Cutter.cuts`.

    Raises:
        ImportError and others of numba: it is not installed, or not for this numpy, this processor, this read-only home.
    """
    found = np.empty(len(data) // rule.min + 1, np.int64)
    sizes = np.array([rule.min, rule.avg, rule.max], np.int64)
    below = np.array([1 << (32 - rule.strict_bits), 1 << (32 - rule.loose_bits)], np.uint32)
    count = _compiled()(np.frombuffer(data, np.uint8), table, sizes, below, last, found)
    return found[:count].tolist()


@cache
def _compiled() -> Callable[..., int]:
    import numba  # pyright: ignore[reportMissingImports]

    return numba.njit(nogil=True, cache=True)(_cuts)


def _cuts(
    data: NDArray[np.uint8],
    table: NDArray[np.uint32],
    sizes: NDArray[np.int64],
    below: NDArray[np.uint32],
    last: bool,
    found: NDArray[np.int64],
) -> int:
    least, middle, most = sizes
    start, count = 0, 0
    while start < len(data):
        limit = min(start + most, len(data))
        first, loose = start + least - 1, start + middle - 1
        end, h = 0, np.uint32(0)
        for p in range(first + 1 - _WINDOW, min(first, limit)):  # what lies before has left the hash by then
            h = np.uint32((h << _ONE) + table[data[p]])
        for p in range(first, limit):
            h = np.uint32((h << _ONE) + table[data[p]])
            if h < below[1] and (p >= loose or h < below[0]):
                end = p + 1
                break
        if end == 0:
            if limit == len(data) and len(data) < start + most and not last:
                break
            end = limit
        found[count] = end
        count += 1
        start = end
    return count
