"""The inside of a frame: which chunks it holds, against what it is compressed, and the bytes. Page: docs/formats/packs.md.

    pack     … | header (32 bytes, plain) | sealed( table | body ) | …
    table    bases and rows; a row is the role and length of one chunk

A codec turns the plain bytes of all chunks, one after the other, into the body. Pure: nothing here knows keys or files.
"""

import struct
import threading
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import zstandard

from trackbed.formats.footer import Base
from trackbed.formats.tensors import round_to_bf16

MAGIC = b"TBfr"
HEADER = struct.Struct("<4s16sIIBBH")  # magic, frame id, sealed length, raw length, codec, depth, key generation
MAX_DEPTH = 8
MAX_RAW = 8 * 1024 * 1024  # a reader refuses more before it reserves memory
MAX_ROWS = 16_384

STORED, ZSTD, DELTA, PLANES, XOR, ROUNDED = range(6)  # codecs
DATA, PAGE, ROOT = range(3)  # roles of chunks

_COUNTS = struct.Struct("<BHH")  # base frames, base slices, rows
_SLICE = struct.Struct("<BII")  # which base frame, start, length
MAX_BASE_FRAMES = 255
_LENGTH_BITS = 28
_PROBE = 64 * 1024
_WORTH = 0.95  # what does not shrink below this is stored


class FrameFault(Exception):
    """The bytes of a frame are not of this format; the text says why."""


@dataclass(frozen=True, slots=True)
class Header:
    frame_id: bytes
    sealed_length: int
    raw_length: int
    codec: int
    depth: int
    generation: int

    def pack(self) -> bytes:
        return HEADER.pack(
            MAGIC, self.frame_id, self.sealed_length, self.raw_length, self.codec, self.depth, self.generation
        )


@dataclass(frozen=True, slots=True)
class Table:
    """`rows`: (role, length) of each chunk, in order."""

    bases: tuple[Base, ...]
    rows: tuple[tuple[int, int], ...]


def read_header(data: bytes) -> Header:
    try:
        magic, frame_id, sealed, raw, codec, depth, generation = HEADER.unpack_from(data)
    except struct.error as fault:
        raise FrameFault("a torn header") from fault
    if magic != MAGIC:
        raise FrameFault("no header of a frame")
    if codec > ROUNDED:
        raise FrameFault(f"codec {codec}, which this version does not know")
    if raw > MAX_RAW or depth > MAX_DEPTH:
        raise FrameFault(f"{raw} bytes at depth {depth}, over the limits")
    return Header(frame_id, sealed, raw, codec, depth, generation)


def write_table(table: Table) -> bytes:
    ids = list(dict.fromkeys(base.frame_id for base in table.bases))
    number = {frame_id: at for at, frame_id in enumerate(ids)}
    slices = b"".join(_SLICE.pack(number[base.frame_id], base.start, base.length) for base in table.bases)
    rows = struct.pack(f"<{len(table.rows)}I", *(role << _LENGTH_BITS | length for role, length in table.rows))
    return _COUNTS.pack(len(ids), len(table.bases), len(table.rows)) + b"".join(ids) + slices + rows


def read_table(plain: bytes) -> tuple[Table, memoryview]:
    """Return the table and the body behind it."""
    try:
        n_ids, n_slices, n_rows = _COUNTS.unpack_from(plain)
        at = _COUNTS.size
        ids = [plain[at + 16 * i : at + 16 * (i + 1)] for i in range(n_ids)]
        at += 16 * n_ids
        bases = tuple(
            Base(ids[number], start, length)
            for number, start, length in _SLICE.iter_unpack(plain[at : at + n_slices * _SLICE.size])
        )
        at += n_slices * _SLICE.size
        packed = struct.unpack_from(f"<{n_rows}I", plain, at)
    except (struct.error, IndexError) as fault:
        raise FrameFault("a torn table") from fault
    rows = tuple((value >> _LENGTH_BITS, value & ((1 << _LENGTH_BITS) - 1)) for value in packed)
    return Table(bases, rows), memoryview(plain)[at + 4 * n_rows :]


def named(bases: Iterable[Base]) -> tuple[Base, ...]:
    """The frames that a delta needs, each once, for rows: what exactly it takes of them stands in its table."""
    return tuple(Base(frame_id, 0, 0) for frame_id in dict.fromkeys(base.frame_id for base in bases))


class _Tools(threading.local):
    """Engines of one thread, used again and again, and which sorts of data paid last time: those are not probed first."""

    def __init__(self) -> None:
        self.paid: set[object] = set()
        self._compressors: dict[int, zstandard.ZstdCompressor] = {}
        self.decompressor = zstandard.ZstdDecompressor()

    def compressor(self, level: int) -> zstandard.ZstdCompressor:
        found = self._compressors.get(level)
        if found is None:
            found = self._compressors[level] = zstandard.ZstdCompressor(level=level, write_checksum=False)
        return found


_tools = _Tools()


def compress(raw: bytes, *, level: int = 2, sort: object = None) -> tuple[int, bytes]:
    """Return codec and body: zstd where it pays, else the bytes themselves. `sort`: data that is like other data of it."""
    if len(raw) > 2 * _PROBE and sort not in _tools.paid:
        middle = (len(raw) - _PROBE) // 2
        probe = _tools.compressor(1).compress(raw[middle : middle + _PROBE])
        if len(probe) > _PROBE * _WORTH:
            return STORED, raw
    body = _tools.compressor(level).compress(raw)
    if len(body) <= len(raw) * _WORTH:
        _tools.paid.add(sort)
        return ZSTD, body
    _tools.paid.discard(sort)
    return STORED, raw


def compress_against(raw: bytes, base: bytes, *, level: int = 2) -> bytes:
    """Return the body of a delta frame: zstd with the base as raw dictionary."""
    dictionary = zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    return zstandard.ZstdCompressor(level=level, dict_data=dictionary, write_checksum=False).compress(raw)


def compress_planes(raw: bytes, width: int, *, base: bytes | None = None) -> bytes:
    """Return the body of byte planes: byte i of every value together, each plane stored or zstd-1; with `base` xor-ed first.

    Source: byte shuffle as in HDF5 and Blosc. `width` must divide the length.
    """
    values = np.frombuffer(raw, np.uint8)
    if base is not None:
        values = values ^ np.frombuffer(base, np.uint8)
    planes = values.reshape(-1, width).T
    parts: list[bytes] = []
    heads = bytearray([width])
    for at, plane in enumerate(planes):
        codec, body = compress(plane.tobytes(), level=1, sort=(width, at, base is None))
        heads += struct.pack("<BI", codec, len(body))
        parts.append(body)
    return bytes(heads) + b"".join(parts)


def closer(raw: bytes, base: bytes, width: int) -> bool:
    """Whether xor with the base saves a tenth of what byte planes alone take, by 64 KiB from the middle."""
    start = max(len(raw) - _PROBE, 0) // 2 // width * width
    probe, beside = raw[start : start + _PROBE], base[start : start + _PROBE]
    return len(compress_planes(probe, width, base=beside)) <= 0.9 * len(compress_planes(probe, width))


def expand(header: Header, body: memoryview, base: bytes) -> bytes:
    """Return the plain bytes of a frame. `base`: its base slices, joined (empty for codecs without bases)."""
    try:
        raw = _expand(header, body, base)
    except (zstandard.ZstdError, struct.error, ValueError, IndexError) as fault:
        raise FrameFault(f"its body does not unpack ({fault})") from fault
    if len(raw) != header.raw_length:
        raise FrameFault(f"{len(raw)} bytes, not {header.raw_length}")
    return raw


def _expand(header: Header, body: memoryview, base: bytes) -> bytes:
    match header.codec:
        case 0:
            return bytes(body)
        case 1:
            return _unzstd(body, header.raw_length)
        case 2:
            dictionary = zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
            return _unzstd(body, header.raw_length, dictionary)
        case 3:
            return _planes(body, header.raw_length).tobytes()
        case 5:
            return round_to_bf16(base)
        case _:
            return (_planes(body, header.raw_length) ^ np.frombuffer(base, np.uint8)).tobytes()


def _unzstd(body: bytes | memoryview, size: int, dictionary: zstandard.ZstdCompressionDict | None = None) -> bytes:
    engine = zstandard.ZstdDecompressor(dict_data=dictionary) if dictionary else _tools.decompressor
    if size == 0:
        return b""
    return engine.decompress(body, max_output_size=size, read_across_frames=False, allow_extra_data=False)


def _planes(body: memoryview, size: int) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    width = body[0]
    if not width or size % width:
        raise ValueError(f"planes of width {width} over {size} bytes")
    count = size // width
    out = np.empty((count, width), np.uint8)
    at = 1 + 5 * width
    for index in range(width):
        codec, length = struct.unpack_from("<BI", body, 1 + 5 * index)
        part = body[at : at + length]
        data = bytes(part) if codec == STORED else _unzstd(part, count)
        out[:, index] = np.frombuffer(data, np.uint8)
        at += length
    return out.reshape(-1)
