"""What a run of new chunks replaces: the bytes that lie between its two known neighbours, wherever those are kept.

No version is named. Frames hold neighbouring chunks in order, so what follows the left neighbour in its frame and what comes
before the right one in its own is what stood here before, under any file name and in any version.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from trackbed.formats.footer import Base
from trackbed.formats.frame import MAX_DEPTH
from trackbed.storage.index import ChunkAt, FrameAt

MOST_NEW = 256 * 1024  # of new bytes in a delta frame; longer runs are worth a plain frame
MOST_BASE = 512 * 1024  # of base bytes of a delta frame
_SLACK = 48 * 1024  # what was replaced may be longer than what replaces it
_LEAST = 512  # a shorter slice is not worth its 24 bytes and a read


@dataclass(frozen=True, slots=True)
class Slice:
    frame: FrameAt
    start: int
    length: int

    @property
    def base(self) -> Base:
        return Base(self.frame.frame_id, self.start, self.length)


def replaced(left: ChunkAt | None, right: ChunkAt | None, size: int) -> list[Slice]:
    """The stretches that a run of `size` new bytes between two known chunks most likely replaces; none if nobody knows."""
    reach = reach_of(size)
    if left and right and left.frame.frame_id == right.frame.frame_id:
        start, end = left.start + left.length, right.start
        if start <= end <= start + 2 * reach:
            return _usable([Slice(left.frame, start, end - start)])
    found: list[Slice] = []
    if left:
        start = left.start + left.length
        found.append(Slice(left.frame, start, min(left.frame.raw_length - start, reach)))
    if right:
        start = max(right.start - reach, 0)
        found.append(Slice(right.frame, start, right.start - start))
    return _usable(found)


def reach_of(size: int) -> int:
    """How many old bytes are worth a look for so many new ones."""
    return size + _SLACK


def whole(*places: ChunkAt) -> list[Slice]:
    """Known chunks themselves, to compress near copies of them against."""
    return _usable([Slice(place.frame, place.start, place.length) for place in places])


def merged(slices: Iterable[Slice]) -> list[Slice]:
    """The same stretches, touching ones of one frame as one; order of first appearance."""
    by_frame: dict[bytes, list[Slice]] = {}
    for one in slices:
        by_frame.setdefault(one.frame.frame_id, []).append(one)
    out: list[Slice] = []
    for group in by_frame.values():
        group.sort(key=lambda one: one.start)
        now = group[0]
        for one in group[1:]:
            end = now.start + now.length
            if one.start <= end:
                now = Slice(now.frame, now.start, max(end, one.start + one.length) - now.start)
            else:
                out.append(now)
                now = one
        out.append(now)
    return out


def depth_over(slices: Iterable[Slice]) -> int:
    return 1 + max(one.frame.depth for one in slices)


def _usable(slices: list[Slice]) -> list[Slice]:
    return [one for one in slices if one.length >= _LEAST and one.frame.depth < MAX_DEPTH]
