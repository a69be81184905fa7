"""Sealed points of one run: pages of columns, coarse levels, a directory at the end. Page: docs/formats/metrics.md.

    object = "TBPOINT1" | page* | level* | directory | trailer

A chunk is a stretch of one stream (key, rank, attempt, incarnation), at most a page long, in the order in which its points
became durable. A page holds whole neighbouring chunks, so 20,000 short chunks compress as well as one long. Every bit of
every float64 is kept. A level says the same as 64 points of a chunk in one row.
"""

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import zstandard

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Fetch = Callable[[int, int], bytes]  # offset, length

MAGIC, END = b"TBPOINT1", b"TBPTEND\n"
VERSION = 1
TRAILER = struct.Struct("<QII8s")  # directory's offset, its length, CRC-32 of it, END
PAGE_POINTS = 16_384
LEVEL_POINTS = 64  # of a row of a level
LEVEL_FROM = 1_024  # shorter chunks have no level
STEPS_GROW, TIMES_GROW = 1, 2  # flags: each step above the one before; no time below the one before
MAX_DIRECTORY_BYTES = 256 * 2**20
_WIDTH = 8


class PointsFault(Exception):
    """The bytes are not of this format; the text says why."""


class Points(NamedTuple):
    """Columns of equal length."""

    step: Ints
    ts: Ints  # µs
    value: Floats


class Level(NamedTuple):
    """A row for each 64 points of a chunk, the last one perhaps for fewer."""

    step: Ints  # of the last point
    ts: Ints
    last: Floats
    low: Floats  # of what is no NaN; NaN where all is
    high: Floats
    total: Floats  # of finite values
    points: Ints
    odd: Ints  # NaN and ±inf among them


@dataclass(frozen=True)
class Directory:
    """What an object holds. Columns up to `level_size` have a row a chunk, by key then rank then order; the last three a
    row a page. Steps and times are the least and the greatest of the chunk."""

    keys: list[str]
    key: npt.NDArray[np.uint32]
    rank: npt.NDArray[np.uint32]
    attempt: npt.NDArray[np.uint32]
    incarnation: npt.NDArray[np.uint32]
    page: npt.NDArray[np.uint32]
    start: npt.NDArray[np.uint32]  # of its first point in the page
    count: npt.NDArray[np.uint32]
    flags: npt.NDArray[np.uint32]
    low_step: Ints
    high_step: Ints
    low_ts: Ints
    high_ts: Ints
    level_at: Ints
    level_size: npt.NDArray[np.uint32]  # 0: no level
    page_at: Ints
    page_size: npt.NDArray[np.uint32]
    page_count: npt.NDArray[np.uint32]

    def of(self, key: str) -> range:
        """Return the chunks of a key."""
        try:
            number = self.keys.index(key)
        except ValueError:
            return range(0)
        low, high = np.searchsorted(self.key, [number, number + 1])
        return range(int(low), int(high))


_COLUMNS = {
    one.name: ("<i8" if one.name.endswith(("_step", "_ts", "_at")) else "<u4")
    for one in fields(Directory)
    if one.name != "keys"
}
_CHUNK_COLUMNS = [name for name in _COLUMNS if not name.startswith("page_")]


class _Packed(msgspec.Struct, kw_only=True):
    v: int
    keys: list[str]
    columns: dict[str, bytes]


_unpack = msgspec.msgpack.Decoder(_Packed).decode


class Sorted(NamedTuple):
    """Points to seal: streams one after the other, keys by number; equal stream numbers stand together."""

    keys: list[str]
    key: Ints  # number of the key, of each point
    rank: Ints
    attempt: Ints
    incarnation: Ints
    points: Points


def encode(given: Sorted) -> bytes:
    """Return the bytes of an object. `given` is not empty and sorted by (key, rank), ties in the order of the log."""
    starts = _chunk_starts(given)
    ends = np.append(starts[1:], len(given.key))
    counts = ends - starts
    page, place = _pages(counts)
    parts: list[bytes] = [MAGIC]
    at = len(MAGIC)
    bodies: list[tuple[int, int, int]] = []  # of each page: where, its bytes, its points
    for first, last in _page_bounds(page):
        low, high = int(starts[first]), int(ends[last])
        body = encode_page(Points._make(column[low:high] for column in given.points))
        bodies.append((at, len(body), high - low))
        parts.append(body)
        at += len(body)
    flags = _flags(given.points, starts)
    level_at, level_size = np.zeros(len(starts), np.int64), np.zeros(len(starts), np.uint32)
    for chunk in np.flatnonzero((counts >= LEVEL_FROM) & (flags & STEPS_GROW > 0)):
        low, high = int(starts[chunk]), int(ends[chunk])
        body = encode_level(level_of(Points._make(column[low:high] for column in given.points)))
        level_at[chunk], level_size[chunk] = at, len(body)
        parts.append(body)
        at += len(body)
    page_at, page_size, page_count = np.array(bodies, np.int64).T
    directory = Directory(
        given.keys,
        *(_u4(column[starts]) for column in (given.key, given.rank, given.attempt, given.incarnation)),
        page=_u4(page), start=_u4(place), count=_u4(counts), flags=_u4(flags),
        low_step=np.minimum.reduceat(given.points.step, starts), high_step=np.maximum.reduceat(given.points.step, starts),
        low_ts=np.minimum.reduceat(given.points.ts, starts), high_ts=np.maximum.reduceat(given.points.ts, starts),
        level_at=level_at, level_size=level_size,
        page_at=page_at, page_size=_u4(page_size), page_count=_u4(page_count),
    )  # fmt: skip
    packed = _encode_directory(directory)
    parts += [packed, TRAILER.pack(at, len(packed), zlib.crc32(packed), END)]
    return b"".join(parts)


def _u4(column: Any) -> npt.NDArray[np.uint32]:
    return np.asarray(column).astype(np.uint32)


def _chunk_starts(given: Sorted) -> Ints:
    """Where a chunk begins: at another stream or version, and where it would pass a page."""
    size = len(given.key)
    fresh = np.zeros(size, np.bool_)
    fresh[0] = True
    for column in (given.key, given.rank, given.attempt, given.incarnation):
        fresh[1:] |= column[1:] != column[:-1]
    begins = np.flatnonzero(fresh)
    lengths = np.diff(np.append(begins, size))
    if int(lengths.max()) <= PAGE_POINTS:
        return begins.astype(np.int64)
    cut = [
        np.arange(begin, begin + length, PAGE_POINTS) for begin, length in zip(begins, lengths.tolist(), strict=True)
    ]
    return np.concatenate(cut).astype(np.int64)


def _pages(counts: Ints) -> tuple[Ints, Ints]:
    """Return of each chunk its page and its place in it."""
    pages: list[int] = []
    places: list[int] = []
    page = filled = 0
    for count in counts.tolist():
        if filled + count > PAGE_POINTS:
            page, filled = page + 1, 0
        pages.append(page)
        places.append(filled)
        filled += count
    return np.array(pages, np.int64), np.array(places, np.int64)


def _page_bounds(page: Ints) -> list[tuple[int, int]]:
    """Return first and last chunk of each page."""
    firsts = np.flatnonzero(np.append(True, page[1:] != page[:-1]))
    lasts = np.append(firsts[1:], len(page)) - 1
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def _flags(points: Points, starts: Ints) -> Ints:
    def holds(bad: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        wrong = np.append(False, bad)
        wrong[starts] = False  # the first of a chunk follows nothing
        return np.logical_or.reduceat(wrong, starts) == 0

    steps = holds(points.step[1:] <= points.step[:-1])
    times = holds(points.ts[1:] < points.ts[:-1])
    return steps * STEPS_GROW + times * TIMES_GROW


# ---- pages and levels


def encode_page(points: Points) -> bytes:
    return _squeeze([_second(points.step), _second(points.ts), _bits(points.value)])


def decode_page(body: bytes, count: int) -> Points:
    """Return the points of a page.

    Raises:
        PointsFault: damage, or another number of points.
    """
    step, ts, value = _widen(body, count, 3, PAGE_POINTS)
    return Points(_first(step), _first(ts), value.view(np.float64))


def encode_level(level: Level) -> bytes:
    ints = [_second(level.step), _second(level.ts)]
    floats = [_bits(column) for column in (level.last, level.low, level.high, level.total)]
    return _squeeze([*ints, *floats, _second(level.points), _second(level.odd)])


def decode_level(body: bytes, count: int) -> Level:
    """Return the level of a chunk of `count` points."""
    rows = -(-count // LEVEL_POINTS)
    step, ts, last, low, high, total, counts, odd = _widen(body, rows, 8, PAGE_POINTS // LEVEL_POINTS)
    floats = (column.view(np.float64) for column in (last, low, high, total))
    return Level._make([_first(step), _first(ts), *floats, _first(counts), _first(odd)])


def level_of(points: Points) -> Level:
    """Return the rows that stand for a chunk."""
    starts = np.arange(0, len(points.value), LEVEL_POINTS)
    ends = np.append(starts[1:], len(points.value))
    finite = np.isfinite(points.value)
    return Level(
        points.step[ends - 1], points.ts[ends - 1], points.value[ends - 1],
        np.fmin.reduceat(points.value, starts), np.fmax.reduceat(points.value, starts),
        sums(points.value, finite, starts), (ends - starts).astype(np.int64),
        np.add.reduceat((~finite).astype(np.int64), starts),
    )  # fmt: skip


def sums(value: Floats, finite: npt.NDArray[np.bool_], starts: Ints) -> Floats:
    """Return the sum of the finite values of each group, ±inf where it passes what a float64 holds."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.add.reduceat(np.where(finite, value, 0.0), starts)


def _bits(column: Floats) -> npt.NDArray[np.uint64]:
    return np.ascontiguousarray(column, np.float64).view(np.uint64)


def _second(column: Ints) -> npt.NDArray[np.uint64]:
    """Return zigzag of the difference of differences, modulo 2⁶⁴; the two before the first count as 0."""
    whole = np.ascontiguousarray(column, np.int64).view(np.uint64)
    for _ in range(2):
        whole = np.diff(whole, prepend=np.uint64(0))
    return (whole << np.uint64(1)) ^ (whole.view(np.int64) >> 63).view(np.uint64)


def _first(packed: npt.NDArray[np.uint64]) -> Ints:
    whole = (packed >> np.uint64(1)) ^ (np.uint64(0) - (packed & np.uint64(1)))
    return np.cumsum(np.cumsum(whole, dtype=np.uint64), dtype=np.uint64).view(np.int64)


def _squeeze(columns: list[npt.NDArray[np.uint64]]) -> bytes:
    planes = [column.astype("<u8").view(np.uint8).reshape(-1, _WIDTH).T.tobytes() for column in columns]
    return zstandard.ZstdCompressor(level=3, write_checksum=True).compress(b"".join(planes))


def _widen(body: bytes, count: int, columns: int, most: int) -> list[npt.NDArray[np.uint64]]:
    size = count * columns * _WIDTH
    if not 0 < count <= most:
        raise PointsFault(f"{count} rows; 1 to {most} may be in a page")
    try:
        raw = zstandard.ZstdDecompressor().decompress(body, max_output_size=size)
    except zstandard.ZstdError as fault:
        raise PointsFault(f"a page does not unpack ({fault})") from fault
    if len(raw) != size:
        raise PointsFault(f"{len(raw)} bytes in a page, not {size}")
    planes = np.frombuffer(raw, np.uint8).reshape(columns, _WIDTH, count)
    return [np.ascontiguousarray(column.T).view("<u8").reshape(-1).astype(np.uint64, copy=False) for column in planes]


# ---- directory


def _encode_directory(directory: Directory) -> bytes:
    columns = {name: getattr(directory, name).astype(kind).tobytes() for name, kind in _COLUMNS.items()}
    packed = msgspec.msgpack.encode(_Packed(v=VERSION, keys=directory.keys, columns=columns))
    return zstandard.ZstdCompressor(level=3).compress(packed)


def read_directory(fetch: Fetch, size: int) -> Directory:
    """Return the directory of an object of `size` bytes.

    Raises:
        PointsFault: it is no such object, of a later version, or damaged.
    """
    if size < len(MAGIC) + TRAILER.size:
        raise PointsFault(f"{size} bytes are too few")
    at, length, checksum, end = TRAILER.unpack(fetch(size - TRAILER.size, TRAILER.size))
    if end != END or at + length + TRAILER.size != size:
        raise PointsFault("no end of an object")
    body = fetch(at, length)
    if zlib.crc32(body) != checksum:
        raise PointsFault("a damaged directory")
    try:
        packed = _unpack(zstandard.ZstdDecompressor().decompress(body, max_output_size=MAX_DIRECTORY_BYTES))
    except (zstandard.ZstdError, msgspec.MsgspecError) as fault:
        raise PointsFault(f"a directory that cannot be read ({fault})") from fault
    if packed.v != VERSION:
        raise PointsFault(f"version {packed.v}, which this version does not know")
    try:
        columns = {name: np.frombuffer(packed.columns[name], kind) for name, kind in _COLUMNS.items()}
    except (KeyError, ValueError) as fault:
        raise PointsFault("a directory with missing columns") from fault
    directory = Directory(packed.keys, **columns)
    _check(directory, at)
    return directory


def _check(directory: Directory, end: int) -> None:
    rows, pages = len(directory.key), len(directory.page_at)
    if any(len(getattr(directory, name)) != rows for name in _CHUNK_COLUMNS) or not rows or not pages:
        raise PointsFault("a directory with columns of different lengths")
    if len(directory.page_size) != pages or len(directory.page_count) != pages:
        raise PointsFault("a directory with columns of different lengths")
    stretches = (directory.page_at + directory.page_size, directory.level_at + directory.level_size)
    if any(int(ends.max()) > end for ends in stretches) or int(directory.page_at.min()) < len(MAGIC):
        raise PointsFault("a page that lies outside the object")
    if int(directory.page.max()) >= pages or int(directory.key.max()) >= len(directory.keys):
        raise PointsFault("a chunk of a page or key that is not there")
    if np.any(directory.start + directory.count > directory.page_count[directory.page]):
        raise PointsFault("a chunk that is longer than its page")
