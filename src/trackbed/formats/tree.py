"""The canonical tree listing, and the digest of a tree: `b3:` + BLAKE3 of the listing. Page: docs/formats/tree.md.

The only public content id. The same files give the same bytes on every machine, in every store, under every key.
Paths are bytes as the file system gives them; nothing is normalised. Light: standard library and blake3 only.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from blake3 import blake3

from trackbed.base.errors import BadInput
from trackbed.base.ids import Digest, FileDigest

MAGIC = b"trackbed tree 1\n"
MAX_PATH_BYTES = 4096
MAX_LINKS_FOLLOWED = 40  # as Linux does; a loop stays inside

_U32 = struct.Struct("<I")
_FILE = struct.Struct("<Q32s")
_ENTRY = struct.Struct("<cI")
_CODES = {b"f": ("f", False), b"x": ("f", True), b"d": ("d", False), b"l": ("l", False)}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a listing. A folder is listed only if nothing lies below it."""

    path: bytes
    kind: Literal["f", "d", "l"] = "f"
    executable: bool = False
    size: int = 0
    digest: FileDigest | Literal[""] = ""
    target: bytes = b""


def encode_listing(entries: Iterable[Entry]) -> bytes:
    """Return the canonical listing of entries in any order.

    Raises:
        BadInput: `tree_path_bad`, `tree_path_twice`, `tree_path_below_file` or `storage_link_outside`, naming the path.
    """
    ordered = sorted(entries, key=lambda entry: entry.path)
    check_entries(ordered)
    return join_lines([line_of(entry) for entry in ordered])


def join_lines(lines: list[bytes]) -> bytes:
    """Return the listing of lines that are in order of their paths; for what a walk of a disk found, which is sound."""
    return b"".join([MAGIC, *lines])


def decode_listing(listing: bytes) -> list[Entry]:
    """Return the entries of a listing, checked: whatever passes here can be written below an empty folder and stays there.

    Raises:
        BadInput: `tree_format` (not version 1 of this format, or not canonical), or a code of `encode_listing`.
    """
    if listing[: len(MAGIC)] != MAGIC:
        raise BadInput("tree_format", at=0, why="no header of version 1")
    entries = list(_decode(listing))
    for before, after in pairwise(entries):
        if before.path >= after.path:
            raise BadInput("tree_format", at=0, why=f"{show(after.path)} is out of order")
    check_entries(entries)
    return entries


def tree_digest(listing: bytes) -> Digest:
    """Return `b3:` + the BLAKE3 of a canonical listing in hex."""
    return Digest("b3:" + blake3(listing).hexdigest())


def file_digest(data: bytes) -> FileDigest:
    """Return the BLAKE3 of a file's bytes in hex."""
    return FileDigest(blake3(data).hexdigest())


def is_digest(text: str) -> bool:
    """Tell whether a text has the form of a tree digest."""
    return text.startswith("b3:") and is_file_digest(text[3:])


def is_file_digest(text: str) -> bool:
    """Tell whether a text has the form of a file digest: 64 lower-case hex digits."""
    return len(text) == 64 and not text.strip("0123456789abcdef")


def show(path: bytes) -> str:
    """Return a path for people: UTF-8 where it is, else with \\x escapes."""
    return path.decode("utf-8", "backslashreplace")


def check_entries(ordered: list[Entry]) -> None:
    """Refuse what could leave the folder it is written to. `ordered` is sorted by path."""
    leaves: dict[bytes, Entry] = {}
    for entry in ordered:
        _check_path(entry.path)
        if entry.path in leaves:
            raise BadInput("tree_path_twice", path=show(entry.path))
        leaves[entry.path] = entry
    parents: set[bytes] = set()
    for path in leaves:
        above = path.rpartition(b"/")[0]
        while above and above not in parents:
            if above in leaves:
                raise BadInput("tree_path_below_file", path=show(path), parent=show(above))
            parents.add(above)
            above = above.rpartition(b"/")[0]
    links = {entry.path: entry.target for entry in ordered if entry.kind == "l"}
    for path in links:
        if link_leaves(path, links):
            raise BadInput("storage_link_outside", path=show(path), target=show(links[path]))


def link_leaves(path: bytes, links: dict[bytes, bytes]) -> bool:
    """Tell whether following the link at `path` would step out of the tree, other links on the way included.

    `links` are all links of the tree. A dangling link and a loop stay inside; an absolute target never does.
    """
    place = path.split(b"/")[:-1]
    todo = links[path].split(b"/")[::-1]
    if links[path].startswith(b"/") or not links[path] or b"\0" in links[path]:
        return True
    followed = 0
    while todo:
        part = todo.pop()
        if part in (b"", b"."):
            continue
        if part == b"..":
            if not place:
                return True
            place.pop()
            continue
        place.append(part)
        target = links.get(b"/".join(place))
        if target is not None:
            followed += 1
            if followed > MAX_LINKS_FOLLOWED:
                return False
            if target.startswith(b"/"):
                return True
            place.pop()
            todo += target.split(b"/")[::-1]
    return False


def _check_path(path: bytes) -> None:
    parts = path.split(b"/")
    if not path or len(path) > MAX_PATH_BYTES or b"\0" in path or any(p in (b"", b".", b"..") for p in parts):
        raise BadInput("tree_path_bad", path=show(path[:MAX_PATH_BYTES]))


def line_of(entry: Entry) -> bytes:
    """Return the line of one entry."""
    if entry.kind == "f":
        if not is_file_digest(entry.digest) or entry.size < 0:
            raise BadInput("tree_format", at=0, why=f"{show(entry.path)} has no file digest")
        code = b"x" if entry.executable else b"f"
        tail = _FILE.pack(entry.size, bytes.fromhex(entry.digest))
    elif entry.kind == "l":
        code, tail = b"l", _U32.pack(len(entry.target)) + entry.target
    else:
        code, tail = b"d", b""
    return _ENTRY.pack(code, len(entry.path)) + entry.path + tail


def _decode(listing: bytes) -> Iterator[Entry]:
    at, end = len(MAGIC), len(listing)
    while at < end:
        start = at
        try:
            code, length = _ENTRY.unpack_from(listing, at)
            at += _ENTRY.size
            kind, executable = _CODES[code]
            path, at = _take(listing, at, length)
            if kind == "f":
                size, raw = _FILE.unpack_from(listing, at)
                at += _FILE.size
                yield Entry(path, "f", executable, size, FileDigest(raw.hex()))
            elif kind == "l":
                (length,) = _U32.unpack_from(listing, at)
                target, at = _take(listing, at + _U32.size, length)
                yield Entry(path, "l", target=target)
            else:
                yield Entry(path, "d")
        except (struct.error, KeyError, IndexError) as fault:
            raise BadInput("tree_format", at=start, why="an entry is torn or of an unknown type") from fault


def _take(listing: bytes, at: int, length: int) -> tuple[bytes, int]:
    if length > MAX_PATH_BYTES or at + length > len(listing):
        raise IndexError(at)
    return listing[at : at + length], at + length
