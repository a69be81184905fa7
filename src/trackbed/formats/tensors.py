"""Where a safetensors file is cut: at its tensors, each in pieces of 1 MiB, with the width of its numbers. Page: docs/formats/chunks.md.

An edit of one tensor touches its own pieces, and a piece of the next checkpoint lies over the same numbers. Light: no numpy.
"""

import itertools
import json
import struct
from dataclasses import dataclass
from typing import Any

PIECE = 1024 * 1024
MAX_HEADER = 16 * 1024 * 1024
MOST_BYTES = 1 << 50  # of a file whose size is not known yet
_WIDTHS = {
    "F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stretch:
    size: int
    width: int  # bytes of a number; 1 where nothing is known


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
    try:
        described: dict[str, Any] = json.loads(header[8:])
        spans = sorted(
            (int(one["data_offsets"][0]), int(one["data_offsets"][1]), _WIDTHS.get(str(one["dtype"]), 1))
            for name, one in described.items()
            if name != "__metadata__"
        )
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None
    pieces = list(_pieces(len(header), 1))
    at = 0
    for start, end, width in spans:
        if start < at or end < start or len(header) + end > size:
            return None
        pieces += itertools.chain(_pieces(start - at, 1), _pieces(end - start, width))
        at = end
    return [*pieces, *_pieces(size - len(header) - at, 1)]


def _pieces(size: int, width: int) -> list[Stretch]:
    full, rest = divmod(size, PIECE)
    last = [Stretch(rest, width if rest % width == 0 else 1)] if rest else []
    return [Stretch(PIECE, width)] * full + last
