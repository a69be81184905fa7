"""Which part of an input a trial is given. Pure.

Whole files, folder by folder and kind by kind in turn, until the size is reached: every folder keeps at least one file of
each kind that lies in it, so a program finds what it looks for. Of a text file that is read by lines the beginning is as
good as the whole; of any other file only the whole is.
"""

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from trackbed.formats.tree import Entry

BY_LINES = frozenset({b".jsonl", b".ndjson", b".txt", b".csv", b".tsv", b".text"})


@dataclass(frozen=True)
class Slice:
    """`whole` as they are (empty folders and links too); of `cut` only the beginning, so many bytes of each."""

    whole: list[Entry]
    cut: list[tuple[Entry, int]]


def choose(entries: Sequence[Entry], most_bytes: int) -> Slice:
    """Return about so many bytes of a tree; more where one file of each kind is more. 0: all of it."""
    if not most_bytes or sum(one.size for one in entries) <= most_bytes:
        return Slice(list(entries), [])
    groups: dict[tuple[bytes, bytes], list[Entry]] = {}
    for one in entries:
        if one.kind == "f":
            groups.setdefault((posixpath.dirname(one.path), posixpath.splitext(one.path)[1]), []).append(one)
    share = most_bytes // max(1, len(groups))
    whole: list[Entry] = [one for one in entries if one.kind != "f"]
    cut: list[tuple[Entry, int]] = []
    left = most_bytes
    for turn, row in enumerate(zip_longest(*groups.values())):
        for one in row:
            if one is None:
                continue
            kind = posixpath.splitext(one.path)[1].lower()
            room = left if turn else max(share, 1)
            if one.size <= left and (turn or one.size <= room or kind not in BY_LINES):
                whole.append(one)
                left -= one.size
            elif not turn and kind in BY_LINES:
                cut.append((one, room))
                left -= room
            elif not turn:  # the only one of its kind: a program may need it
                whole.append(one)
                left -= one.size
        if left <= 0 and turn:
            break
    kept = {one.path for one in whole} | {one.path for one, _ in cut}
    return Slice([one for one in whole if one.kind != "l" or _leads(one, kept)], cut)


def _leads(link: Entry, kept: set[bytes]) -> bool:
    """Whether what a link points to is there too."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(link.path), link.target))
    return any(path == target or path.startswith(target + b"/") for path in kept)


def whole_lines(data: bytes) -> bytes:
    """Return the beginning up to the end of the last whole line; all of it where there is no end of a line."""
    return data[: data.rfind(b"\n") + 1] or data
