"""The outside of a pack: 64 bytes of header, frames, a sealed footer, 32 bytes at the end. Page: docs/formats/packs.md.

    header | (frame header | sealed frame)* | sealed footer | trailer

The footer tells everything an index needs; a pack whose footer is spoiled is read by its frame headers. Rows: formats.footer.
"""

import struct

from trackbed.formats.footer import Base, FileRow, FrameRow, PackRows

HEADER_BYTES, TRAILER_BYTES = 64, 32
MAGIC, END = b"TBPACK1\n", b"TBPKEND\n"
VERSION = b"trackbed pack 1"
_HEADER = struct.Struct("<8s16sB7x32s")
_TRAILER = struct.Struct("<QI12x8s")  # footer's offset and length
_COUNTS = struct.Struct("<II")
_FRAME = struct.Struct("<16sQIIBBHI")  # id, offset, sealed, raw, codec, depth, bases, chunks
_CHUNK = struct.Struct("<32sI")
_FILE = struct.Struct("<32sQ32sB")


class PackFault(Exception):
    """The bytes of a pack are not of this format; the text says why."""


def write_header(pack_id: bytes, kind: int, owner: bytes) -> bytes:
    return _HEADER.pack(MAGIC, pack_id, kind, owner)


def read_header(data: bytes) -> tuple[bytes, int, bytes]:
    """Return pack id, class and owner."""
    if len(data) < HEADER_BYTES or data[:8] != MAGIC:
        raise PackFault("no header of version 1")
    _, pack_id, kind, owner = _HEADER.unpack_from(data)
    return pack_id, kind, owner if any(owner) else b""


def write_trailer(offset: int, length: int) -> bytes:
    return _TRAILER.pack(offset, length, END)


def read_trailer(data: bytes) -> tuple[int, int]:
    """Return the footer's offset and length."""
    if len(data) != TRAILER_BYTES or data[-8:] != END:
        raise PackFault("no end of version 1")
    offset, length, _ = _TRAILER.unpack(data)
    return offset, length


def footer_name(pack_id: bytes, offset: int) -> str:
    """What a footer is bound to when it is sealed."""
    return f"{pack_id.hex()}@{offset}"


def write_footer(frames: list[FrameRow], files: list[FileRow]) -> bytes:
    parts = [_COUNTS.pack(len(frames), len(files))]
    for row in frames:
        parts.append(
            _FRAME.pack(
                row.frame_id,
                row.offset,
                row.length,
                row.raw_length,
                row.codec,
                row.depth,
                len(row.bases),
                len(row.chunks),
            )
        )
        parts += [base.frame_id for base in row.bases]
        parts += [_CHUNK.pack(one, length) for one, length in row.chunks]
    parts += [_FILE.pack(row.file_id, row.size, row.root, row.levels) for row in files]
    return b"".join(parts)


def read_footer(data: bytes, *, pack_id: bytes, size: int, kind: int, owner: bytes) -> PackRows:
    try:
        n_frames, n_files = _COUNTS.unpack_from(data)
        at = _COUNTS.size
        frames: list[FrameRow] = []
        for _ in range(n_frames):
            frame_id, offset, sealed, raw, codec, depth, n_bases, n_chunks = _FRAME.unpack_from(data, at)
            at += _FRAME.size
            until = at + n_bases * 16
            bases = tuple(Base(data[start : start + 16], 0, 0) for start in range(at, until, 16))
            at = until + n_chunks * _CHUNK.size
            chunks = tuple(_CHUNK.iter_unpack(data[until:at]))
            if len(bases) != n_bases or len(chunks) != n_chunks:
                raise PackFault("a torn footer")
            frames.append(FrameRow(frame_id, offset, sealed, codec, depth, raw, bases, chunks))
        files = [FileRow(*one) for one in _FILE.iter_unpack(data[at:])]
    except struct.error as fault:
        raise PackFault("a torn footer") from fault
    if len(files) != n_files:
        raise PackFault("a torn footer")
    return PackRows(pack_id, size, kind, owner, tuple(frames), tuple(files))
