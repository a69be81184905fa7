"""What a pack says about itself, as values: rows of its footer, of the index, and of a rebuild. Bytes: formats.pack.

pack ─ frame ─ chunk     a frame holds neighbouring chunks one after the other, compressed and sealed together
pack ─ file              how a whole file is put together: one chunk, or a page of rows, or a page of pages
"""

from dataclasses import dataclass

SHARED, PRIVATE = 0, 1  # classes: deduplicated in the domain | one run's own, dropped with its pointer


@dataclass(frozen=True, slots=True)
class Base:
    """A stretch of another frame's plain bytes that a delta frame is compressed against. In rows only the frame is named:
    start and length are 0 there."""

    frame_id: bytes
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class FrameRow:
    frame_id: bytes  # 16, random
    offset: int  # of the sealed bytes in the pack, behind the plain header
    length: int  # of the sealed bytes
    codec: int
    depth: int  # 0: needs no other frame
    raw_length: int
    bases: tuple[Base, ...]
    chunks: tuple[tuple[bytes, int], ...]  # keyed id (32 bytes), length; in order


@dataclass(frozen=True, slots=True)
class FileRow:
    file_id: bytes  # 32, keyed hash of the file's digest
    size: int
    root: bytes  # chunk id: of the data (levels 0), of a page of rows (1), of a page of pages (2) …; b"" for no bytes
    levels: int


@dataclass(frozen=True, slots=True)
class PackRows:
    pack_id: bytes  # 16, random
    size: int  # of the whole object
    kind: int  # SHARED | PRIVATE
    owner: bytes  # keyed hash of the run, for PRIVATE; b"" else
    frames: tuple[FrameRow, ...]
    files: tuple[FileRow, ...]
