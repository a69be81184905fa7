"""Where a file is cut into chunks: a gear hash over a window of 32 bytes, keyed. Page: docs/formats/chunks.md.

    h(p) = sum of table[byte p - i] << i  for i = 0 … 31, modulo 2**32

A cut falls behind byte p when h(p) is below a threshold; only bytes `min` and further from the last cut are asked, so every
window lies inside its chunk and the cuts after a point depend on nothing before it. Three engines give the same cuts: plain
Python is the reference, numpy is always there, and numba, where it is installed (extra `fast`), takes over in a long stream.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from trackbed.formats import cut_compiled

WINDOW = 32
_BLOCK = 64 * 1024  # hashed at once: the arrays stay in the second-level cache
_U32 = 0xFFFF_FFFF
_U64 = 0xFFFF_FFFF_FFFF_FFFF
_CONSTANT_RUNS = 1 << 28  # a run of one byte never hashes below this, so it is cut at `max` only


@dataclass(frozen=True, slots=True)
class CutRule:
    """Sizes in bytes; `strict_bits` rule between `min` and `avg`, `loose_bits` between `avg` and `max`."""

    min: int = 4 * 1024
    avg: int = 16 * 1024
    max: int = 64 * 1024
    strict_bits: int = 15
    loose_bits: int = 13


class Source(Protocol):
    def readinto(self, buffer: memoryview, /) -> int: ...


def gear_table(key: bytes) -> NDArray[np.uint32]:
    """256 numbers from 32 secret bytes, by splitmix64 of the key's first 8 bytes xor-ed with the rest in turn."""
    words = [int.from_bytes(key[at : at + 8], "little") for at in range(0, 32, 8)]
    state = 0
    for word in words:
        state = _mix((state ^ word) & _U64)
    values: list[int] = []
    while len(values) < 256:
        state = (state + 0x9E37_79B9_7F4A_7C15) & _U64
        value = _mix(state) >> 32
        if (-value) & _U32 >= _CONSTANT_RUNS:  # a run of one byte hashes to -value
            values.append(value)
    return np.array(values, dtype=np.uint32)


def _mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58_476D_1CE4_E5B9) & _U64
    z = ((z ^ (z >> 27)) * 0x94D0_49BB_1331_11EB) & _U64
    return z ^ (z >> 31)


def cuts_by_reference(data: bytes, table: NDArray[np.uint32], rule: CutRule) -> list[int]:
    """Ends of all chunks, byte by byte: the definition, slow."""
    gear = [int(value) for value in table]
    ends: list[int] = []
    start = 0
    while start < len(data):
        end, h = min(start + rule.max, len(data)), 0
        for p in range(start, end):
            h = ((h << 1) + gear[data[p]]) & _U32
            size = p + 1 - start
            bits = rule.strict_bits if size < rule.avg else rule.loose_bits
            if size >= rule.min and h < 1 << (32 - bits):
                end = p + 1
                break
        ends.append(end)
        start = end
    return ends


class Cutter:
    """Cuts by the fastest engine that pays. Not for several threads."""

    compiled_from: ClassVar[int] = 1 << 30  # bytes: for fewer, the compiled engine's start is not worth it

    def __init__(self, key: bytes, rule: CutRule) -> None:
        if not WINDOW <= rule.min <= rule.avg <= rule.max or rule.loose_bits > rule.strict_bits:
            raise ValueError(rule)
        self.rule = rule
        self._numpy_left = self.compiled_from
        self._table = gear_table(key)
        self._numpy = _Numpy(self._table, rule)

    def expect(self, size: int) -> None:
        """Say that so many bytes come."""
        if size >= self.compiled_from:
            self._numpy_left = 0

    def cuts(self, data: memoryview, *, last: bool = True) -> list[int]:
        """Ends of the chunks in a stretch that starts at a cut. Without `last`, a chunk that might go on is left out."""
        self._numpy_left -= len(data)
        if self._numpy_left < 0 and (compiled := compiled_engine()):
            return compiled(data, self._table, self.rule, last)
        return self._numpy.cuts(data, last=last)


_Compiled = Callable[[memoryview, NDArray[np.uint32], CutRule, bool], list[int]]


@cache
def compiled_engine() -> _Compiled | None:
    """The compiled engine, if it is installed and cuts a sample as numpy does."""
    sample, rule = np.random.default_rng(32).bytes(256 * 1024), CutRule()
    table = gear_table(sample[:32])
    try:
        cuts = cut_compiled.cuts(memoryview(sample), table, rule, True)
    except Exception:  # whatever numba says: numpy cuts at the same places
        return None
    return cut_compiled.cuts if cuts == _Numpy(table, rule).cuts(memoryview(sample), last=True) else None


class _Numpy:
    """32-bit hashes of a whole block by five doublings, then one pass over the few low ones."""

    def __init__(self, table: NDArray[np.uint32], rule: CutRule) -> None:
        self.rule = rule
        self._table = table
        self._hash = np.empty(_BLOCK + WINDOW, np.uint32)
        self._shifted = np.empty(_BLOCK + WINDOW, np.uint32)

    def cuts(self, data: memoryview, *, last: bool) -> list[int]:
        rule = self.rule
        places, low = self._candidates(data)
        strict = 1 << (32 - rule.strict_bits)
        ends: list[int] = []
        start, at, size = 0, 0, len(data)
        while start < size:
            limit = min(start + rule.max, size)
            end = limit
            first, middle = start + rule.min - 1, start + rule.avg - 1
            while at < len(places) and places[at] < first:
                at += 1
            look = at
            while look < len(places) and places[look] < limit:
                if places[look] >= middle or low[look] < strict:
                    end = places[look] + 1
                    break
                look += 1
            else:
                if limit == size and size < start + rule.max and not last:
                    break
            ends.append(end)
            start = end
        return ends

    def _candidates(self, data: memoryview) -> tuple[list[int], list[int]]:
        """Places whose hash is below the loose threshold, and the hashes. The first 31 places are never asked."""
        raw = np.frombuffer(data, np.uint8)
        limit = np.uint32(1 << (32 - self.rule.loose_bits))
        places: list[int] = []
        low: list[int] = []
        for start in range(0, len(raw), _BLOCK):
            before = min(start, WINDOW - 1)
            block = raw[start - before : start + _BLOCK]
            h = self._hash[: len(block)]
            np.take(self._table, block, out=h, mode="clip")
            for shift in (1, 2, 4, 8, 16):
                if shift < len(block):
                    shifted = self._shifted[: len(block) - shift]
                    np.left_shift(h[:-shift], np.uint32(shift), out=shifted)
                    h[shift:] += shifted
            found = np.flatnonzero(h[before:] < limit)
            if len(found):
                low += h[before:][found].tolist()
                places += (found + start).tolist()
        return places, low


def read_chunks(source: Source, cutter: Cutter, *, window: int = 4 * 1024 * 1024) -> Iterator[list[memoryview]]:
    """Cut a stream through two bounded buffers; each list is valid until the next but one is asked for, and starts where its
    buffer does. Same cuts as in one piece."""
    size = max(window, 2 * cutter.rule.max)
    view, other = memoryview(bytearray(size)), None
    filled = 0
    while True:
        count = source.readinto(view[filled:])
        filled += count
        if count and filled < size:
            continue
        ends = cutter.cuts(view[:filled], last=not count)
        starts = [0, *ends[:-1]]
        yield [view[start:end] for start, end in zip(starts, ends, strict=False)]
        if not count:
            return
        done = ends[-1] if ends else 0
        rest = view[done:filled]
        view, other = other or memoryview(bytearray(size)), view
        view[: len(rest)] = rest
        filled = len(rest)
