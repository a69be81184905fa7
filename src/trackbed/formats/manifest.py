"""How a file is put together, and what a tree's record says. Page: docs/formats/manifest.md.

    root  ─ page ─ page ─ chunk      rows of (id, bytes below); a page of pages ends where the ids say, so an edit changes few

A file of one chunk has no page. Pages and roots are chunks like any other: deduplicated, compressed, sealed in frames.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from trackbed.base.ids import FileDigest

PAGE_ROWS, MOST_ROWS = 1024, 4096
LEAF, INNER = 1, 2  # levels from here up are INNER
_LEAF_ROW = struct.Struct("<32sI")
_INNER_ROW = struct.Struct("<32sQ")
_ROOT = struct.Struct("<8s32sQB")
_ROOT_MAGIC = b"TBFILE1\n"
_MASK = PAGE_ROWS - 1


class ManifestFault(Exception):
    """The bytes of a page, a root or a record are not of this format; the text says why."""


@dataclass(frozen=True, slots=True)
class Row:
    chunk_id: bytes  # of a chunk of the file, or of a page
    size: int  # of the file's bytes below it


@dataclass(frozen=True, slots=True)
class Root:
    digest: FileDigest
    size: int
    levels: int  # 1: rows are chunks of the file; 2: rows are pages of chunks; …
    rows: list[Row]


def ends_page(rows: int, chunk_id: bytes) -> bool:
    """Tell whether a page of so many rows ends behind a row of this id."""
    return rows >= MOST_ROWS or not int.from_bytes(chunk_id[:2], "little") & _MASK


def write_page(rows: list[Row], *, level: int) -> bytes:
    packer = _LEAF_ROW if level == LEAF else _INNER_ROW
    return b"".join(packer.pack(row.chunk_id, row.size) for row in rows)


def read_page(data: bytes | memoryview, *, level: int) -> list[Row]:
    packer = _LEAF_ROW if level == LEAF else _INNER_ROW
    if len(data) % packer.size or len(data) > MOST_ROWS * packer.size:
        raise ManifestFault("a torn page")
    return [Row(*one) for one in packer.iter_unpack(data)]


def write_root(root: Root) -> bytes:
    head = _ROOT.pack(_ROOT_MAGIC, bytes.fromhex(root.digest), root.size, root.levels)
    return head + write_page(root.rows, level=root.levels)


def read_root(data: bytes | memoryview) -> Root:
    """Return a root; its rows cover exactly its size."""
    try:
        magic, digest, size, levels = _ROOT.unpack_from(data)
    except struct.error as fault:
        raise ManifestFault("a torn root") from fault
    if magic != _ROOT_MAGIC or not 1 <= levels <= 8:
        raise ManifestFault("no root of version 1")
    rows = read_page(data[_ROOT.size :], level=levels)
    if sum(row.size for row in rows) != size:
        raise ManifestFault("a root whose rows do not add up")
    return Root(FileDigest(digest.hex()), size, levels, rows)


class TreeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the sealed object of a tree says. Fields only grow; a greater version is refused."""

    version: int = 1
    tree: str  # public digest, b3:…
    listing_size: int
    files: int
    size_bytes: int
    made_us: int


def write_record(record: TreeRecord) -> bytes:
    return msgspec.json.encode(record)


def read_record(data: bytes) -> TreeRecord:
    try:
        record = msgspec.json.decode(data, type=TreeRecord)
    except msgspec.DecodeError as fault:
        raise ManifestFault(str(fault)) from fault
    if record.version != 1:
        raise ManifestFault(f"version {record.version}, which this version does not know")
    return record


def split_pages(rows: list[Row]) -> Iterator[list[Row]]:
    """Cut a list of rows into pages, by their ids."""
    page: list[Row] = []
    for row in rows:
        page.append(row)
        if ends_page(len(page), row.chunk_id):
            yield page
            page = []
    if page:
        yield page
