"""A JSON document whose long columns of numbers follow it as raw bytes: the binary answer. Page: docs/formats/columns.md.

    "TBC1" | u32 length of the head | head (JSON) | zeros to a multiple of 8 | columns, each filled up to a multiple of 8

Light: no numpy, so that the SDK reads it. In the document a column is its number.
"""

import struct
import sys
from array import array
from typing import Any, NamedTuple

import msgspec

MEDIA_TYPE = "application/vnd.trackbed.columns"
MAGIC = b"TBC1"
_PREFIX = struct.Struct("<4sI")
_KINDS = {"f8": "d", "i8": "q", "u4": "I"}


class ColumnsFault(ValueError):
    """The bytes are not of this format; the text says why."""


class Column(NamedTuple):
    kind: str  # f8 | i8 | u4
    data: bytes  # little-endian


class _Head(msgspec.Struct, kw_only=True):
    document: Any
    columns: list[tuple[str, int]]  # kind and number of values


_decode_head = msgspec.json.Decoder(_Head).decode


def encode(document: Any, columns: list[Column]) -> bytes:
    head = msgspec.json.encode(
        _Head(document=document, columns=[(one.kind, len(one.data) // _size(one.kind)) for one in columns])
    )
    parts = [_PREFIX.pack(MAGIC, len(head)), head, b"\0" * (-(len(head) + _PREFIX.size) % 8)]
    for one in columns:
        parts += [one.data, b"\0" * (-len(one.data) % 8)]
    return b"".join(parts)


def decode(data: bytes) -> tuple[Any, "list[array[Any]]"]:
    """Return the document and its columns.

    Raises:
        ColumnsFault: the bytes are something else.
    """
    if len(data) < _PREFIX.size or not data.startswith(MAGIC):
        raise ColumnsFault("no columns of version 1")
    _, length = _PREFIX.unpack_from(data)
    at = _PREFIX.size + length
    try:
        head = _decode_head(data[_PREFIX.size : at])
    except msgspec.MsgspecError as fault:
        raise ColumnsFault(f"a head that cannot be read ({fault})") from fault
    at += -at % 8
    found: list[array[Any]] = []
    for kind, count in head.columns:
        if kind not in _KINDS:
            raise ColumnsFault(f"a column of kind {kind!r}, which this version does not know")
        size = count * _size(kind)
        if count < 0 or at + size > len(data):
            raise ColumnsFault("a torn column")
        column = array(_KINDS[kind], data[at : at + size])
        if sys.byteorder == "big":
            column.byteswap()
        found.append(column)
        at += size + -size % 8
    return head.document, found


def _size(kind: str) -> int:
    return 4 if kind == "u4" else 8
