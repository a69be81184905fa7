"""Where a safetensors file is cut: at its tensors, each in pieces of 1 MiB, with the width of its numbers. Page: docs/formats/chunks.md.

An edit of one tensor touches its own pieces, and a piece of the next checkpoint lies over the same numbers.
"""

import itertools
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

PIECE = 1024 * 1024
MAX_HEADER = 16 * 1024 * 1024
_SAMPLE = 64
MOST_BYTES = 1 << 50  # of a file whose size is not known yet
_WIDTHS = {
    "F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stretch:
    size: int
    width: int  # bytes of a number; 1 where nothing is known


Peek = Callable[[int, int], bytes]  # bytes of the file from a place


@dataclass(frozen=True, slots=True)
class _Span:
    start: int  # in the file
    end: int
    dtype: str


def header_size(head: bytes, size: int) -> int | None:
    """Bytes of the header of what may be a safetensors file, by its first bytes; None if it is none."""
    if len(head) < 9 or head[8:9] != b"{":
        return None
    (length,) = struct.unpack_from("<Q", head)
    return 8 + length if 2 <= length <= min(MAX_HEADER, size - 8) else None


def told_size(header: bytes) -> int:
    """Bytes of the file that a header describes; 0 if it describes none."""
    try:
        ends = [int(one["data_offsets"][1]) for name, one in json.loads(header[8:]).items() if name != "__metadata__"]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return 0
    return len(header) + max(ends, default=0)


def stretches(header: bytes, size: int) -> list[Stretch] | None:
    """Pieces that cover a safetensors file of `size` bytes, its header first; None if the header does not fit the file."""
    spans = _spans(header, size)
    if spans is None:
        return None
    pieces = list(_pieces(len(header), 1))
    at = len(header)
    for span in spans:
        pieces += itertools.chain(
            _pieces(span.start - at, 1), _pieces(span.end - span.start, _WIDTHS.get(span.dtype, 1))
        )
        at = span.end
    return [*pieces, *_pieces(size - at, 1)]


def rounded_places(header: bytes, size: int, peek: Peek) -> dict[int, int]:
    """Places of pieces of BF16 tensors that look like an F32 tensor before them, rounded, with the place of its numbers.

    Looks at 64 numbers from the middle of each; who relies on it compares all.
    """
    sources: dict[tuple[int, bytes], _Span] = {}
    found: dict[int, int] = {}
    for span in _spans(header, size) or []:
        count = (span.end - span.start) // (4 if span.dtype == "F32" else 2)
        middle = count // 2
        if span.dtype == "F32" and count >= _SAMPLE:
            numbers = peek(span.start + 4 * middle, 4 * min(_SAMPLE, count - middle))
            sources.setdefault((count, round_to_bf16(numbers)), span)
        elif span.dtype == "BF16" and count >= _SAMPLE:
            numbers = peek(span.start + 2 * middle, 2 * min(_SAMPLE, count - middle))
            if source := sources.get((count, numbers)):
                for at in range(0, span.end - span.start, PIECE):
                    found[span.start + at] = source.start + 2 * at
    return found


def round_to_bf16(numbers: bytes | memoryview) -> bytes:
    """F32 numbers as BF16, to nearest, ties to even, as training casts them (what a NaN becomes may differ)."""
    bits = np.frombuffer(numbers, "<u4")
    return ((bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16).astype("<u2").tobytes()


def _spans(header: bytes, size: int) -> list[_Span] | None:
    """Tensors by their place in the file; None if they overlap or pass its end."""
    try:
        described: dict[str, Any] = json.loads(header[8:])
        spans = sorted(
            (int(one["data_offsets"][0]), int(one["data_offsets"][1]), str(one["dtype"]))
            for name, one in described.items()
            if name != "__metadata__"
        )
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None
    at, found = 0, list[_Span]()
    for start, end, dtype in spans:
        if start < at or end < start or len(header) + end > size:
            return None
        found.append(_Span(len(header) + start, len(header) + end, dtype))
        at = end
    return found


def _pieces(size: int, width: int) -> list[Stretch]:
    full, rest = divmod(size, PIECE)
    last = [Stretch(rest, width if rest % width == 0 else 1)] if rest else []
    return [Stretch(PIECE, width)] * full + last
