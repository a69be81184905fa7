"""Spool frames: the same bytes in the append-only file of a rank, on the wire, and in the server's table.

    frame = "TBF1" | u32 header length | u32 body length | u32 CRC-32 of header and body | header | body

All integers are little-endian. A reader skips what is damaged and says how many bytes it skipped.

Source: docs/formats/spool.md
"""

import struct
import sys
import zlib
from array import array
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

MAGIC = b"TBF1"
VERSION = 1
MAX_HEADER_BYTES = 4096
MAX_BODY_BYTES = 64 * 2**20
MAX_NAME_CHARS = 500  # of a metric, param, tag or summary entry; longer ones are refused by name
RAW, ZSTD = 0, 1  # codecs; 1 is reserved

METRICS, PARAMS, TAGS, DEFINE, SUMMARY = "metrics", "params", "tags", "define", "summary"
LOG, EVENT, FINISH, FILE, MLFLOW = "log", "event", "finish", "file", "mlflow"
KINDS = frozenset({METRICS, PARAMS, TAGS, DEFINE, SUMMARY, LOG, EVENT, FINISH, FILE, MLFLOW})

_PREFIX = struct.Struct("<4sIII")


class Header(msgspec.Struct, kw_only=True):
    """Who wrote a frame and which one it is. (`client`, `seq`) is its identity, for ever.

    `run` is empty where the writer did not know it yet (outside runs); `n` counts points, lines or entries of the body.
    """

    v: int = VERSION
    kind: str
    run: str = ""
    attempt: int = 0
    inc: int = 0
    rank: int = 0
    client: str
    seq: int
    ts: int = 0  # µs
    codec: int = RAW
    n: int = 0


class Frame(NamedTuple):
    """One whole frame. `raw` are all its bytes, prefix included."""

    header: Header
    body: bytes
    raw: bytes


class Decoded(NamedTuple):
    """`used` bytes need not be read again; `lost` of them belonged to no whole frame."""

    frames: list[Frame]
    used: int
    lost: int


class Metrics(NamedTuple):
    """Points in columns of equal length: `keys[key[i]]` had `value[i]` at `step[i]`, logged at `ts[i]` (µs)."""

    keys: list[str]
    key: "array[int]"
    step: "array[int]"
    ts: "array[int]"
    value: "array[float]"


class Line(NamedTuple):
    """One line of a log, its bytes untouched and without the newline. `level` is empty where nobody knows."""

    ts: int
    stream: str
    level: str
    data: bytes


_header_encoder = msgspec.msgpack.Encoder()
_header_decoder = msgspec.msgpack.Decoder(Header)


class _MetricsBody(msgspec.Struct, kw_only=True):
    keys: list[str]
    key: bytes
    step: bytes
    ts: bytes
    value: bytes


_metrics_decoder = msgspec.msgpack.Decoder(_MetricsBody)
_lines_decoder = msgspec.msgpack.Decoder(list[tuple[int, str, str, bytes]])
_document_decoder = msgspec.msgpack.Decoder(dict[str, Any])


def name_ok(name: str) -> bool:
    """Whether a metric, param or summary entry may be called so."""
    return 0 < len(name) <= MAX_NAME_CHARS and name.isprintable()


def encode(header: Header, body: bytes) -> bytes:
    """Return the bytes of a frame.

    Raises:
        ValueError: header or body pass their limits; split the body.
    """
    head = _header_encoder.encode(header)
    if len(head) > MAX_HEADER_BYTES or len(body) > MAX_BODY_BYTES:
        raise ValueError(
            f"frame of {len(head)} + {len(body)} bytes; the limits are {MAX_HEADER_BYTES} + {MAX_BODY_BYTES}"
        )
    checksum = zlib.crc32(body, zlib.crc32(head))
    return b"".join((_PREFIX.pack(MAGIC, len(head), len(body), checksum), head, body))


def decode(data: bytes, *, final: bool = True) -> Decoded:
    """Return the whole frames in `data`, in order.

    `final=False` is for a file that still grows: an unfinished frame at the end is left for the next read. With
    `final` it is a torn tail (its writer was killed), counted as lost, unless a whole frame follows inside it.
    """
    frames: list[Frame] = []
    at = lost = 0
    while at < len(data):
        frame, size = _frame_at(data, at)
        if frame is not None:
            frames.append(frame)
            at += size
            continue
        if size == 0 and not final:
            break  # unfinished: wait for the rest
        following = data.find(MAGIC, at + max(size, 1))
        if following < 0:
            # the first bytes of a magic may be all that is there yet
            keep = 0 if final else _magic_prefix_at_end(data, at + 1)
            lost += len(data) - keep - at
            at = len(data) - keep
            break
        lost += following - at
        at = following
    return Decoded(frames, at, lost)


def _frame_at(data: bytes, at: int) -> tuple[Frame | None, int]:
    """Return the frame at a position and its size; (None, 0) for an unfinished one, (None, bytes to skip) for damage."""
    if data[at : at + 4] != MAGIC[: len(data) - at]:
        return None, 1
    if len(data) - at < _PREFIX.size:
        return None, 0
    _, head_size, body_size, checksum = _PREFIX.unpack_from(data, at)
    if head_size > MAX_HEADER_BYTES or body_size > MAX_BODY_BYTES:
        return None, 1
    start = at + _PREFIX.size
    end = start + head_size + body_size
    if end > len(data):
        return None, 0
    if zlib.crc32(memoryview(data)[start:end]) != checksum:
        return None, 1
    try:
        header = _header_decoder.decode(data[start : start + head_size])
    except msgspec.MsgspecError:
        return None, end - at  # whole, but not of this format
    if header.v != VERSION or header.codec != RAW:
        return None, end - at
    return Frame(header, data[start + head_size : end], data[at:end]), end - at


def _magic_prefix_at_end(data: bytes, start: int) -> int:
    """Return how many bytes at the end of `data` may be the beginning of a magic."""
    for size in (3, 2, 1):
        if len(data) - size >= start and data.endswith(MAGIC[:size]):
            return size
    return 0


def encode_metrics(metrics: Metrics) -> bytes:
    columns = (_little(metrics.key), _little(metrics.step), _little(metrics.ts), _little(metrics.value))
    key, step, ts, value = columns
    return _header_encoder.encode(_MetricsBody(keys=metrics.keys, key=key, step=step, ts=ts, value=value))


def decode_metrics(body: bytes) -> Metrics:
    """Return the columns of a metrics body.

    Raises:
        ValueError: it is no such body, columns differ in length, or a point names a key that is not there.
    """
    try:
        packed = _metrics_decoder.decode(body)
    except msgspec.MsgspecError as broken:
        raise ValueError(str(broken)) from broken
    key = _column("I", packed.key)
    metrics = Metrics(packed.keys, key, _column("q", packed.step), _column("q", packed.ts), _column("d", packed.value))
    if not len(metrics.key) == len(metrics.step) == len(metrics.ts) == len(metrics.value):
        raise ValueError("columns of different lengths")
    if len(key) and max(key) >= len(packed.keys):
        raise ValueError("a point names a key that is not in the list")
    return metrics


def new_metrics() -> Metrics:
    """Return empty columns to fill."""
    return Metrics([], array("I"), array("q"), array("q"), array("d"))


def encode_lines(lines: Iterable[Line]) -> bytes:
    return _header_encoder.encode([tuple(line) for line in lines])


def decode_lines(body: bytes) -> list[Line]:
    """Return the lines of a log body; ValueError where it is none."""
    try:
        return [Line(*line) for line in _lines_decoder.decode(body)]
    except msgspec.MsgspecError as broken:
        raise ValueError(str(broken)) from broken


def encode_document(document: Any) -> bytes:
    """Return the body of every other kind: a msgpack map."""
    return _header_encoder.encode(document)


def decode_document(body: bytes) -> dict[str, Any]:
    """Return the map in a body; ValueError where it is none."""
    try:
        return _document_decoder.decode(body)
    except msgspec.MsgspecError as broken:
        raise ValueError(str(broken)) from broken


def _little(column: "array[Any]") -> bytes:
    if sys.byteorder == "big":
        column = array(column.typecode, column)
        column.byteswap()
    return column.tobytes()


def _column(typecode: str, data: bytes) -> "array[Any]":
    column = array(typecode)
    column.frombytes(data)  # ValueError where the length is no multiple
    if sys.byteorder == "big":
        column.byteswap()
    return column
