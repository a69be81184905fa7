"""The file as it was before, as far as it is known: what stood between two of its chunks. A window of it is in memory."""

from collections.abc import Iterator

from trackbed.base.errors import Damaged
from trackbed.storage.reader import Want

_AHEAD, _BEHIND = 4096, 2048  # chunks


class Former:
    """Chunks of the former version in order, read as the new one moves along. One that cannot be read just ends."""

    def __init__(self, chunks: Iterator[Want]) -> None:
        self._chunks = chunks
        self._window: list[Want] = []
        self._first = 0  # place of the window's first chunk
        self._place: dict[bytes, int] = {}
        self._reach(0)

    def between(self, left: bytes | None, right: bytes | None, reach: int) -> list[bytes]:
        """Ids of what stood behind one chunk and before the other, about `reach` bytes from each; none if neither is known."""
        after = self._place.get(left) if left else None
        before = self._place.get(right) if right else None
        if before is not None:
            self._reach(before)
        elif after is not None:
            self._reach(after)
        if after is not None and before is not None and after < before:
            return self._near(range(after + 1, before), reach)
        if after is not None:
            return self._take(range(after + 1, self._first + len(self._window)), reach)
        if before is not None:
            return self._take(range(before - 1, self._first - 1, -1), reach)[::-1]
        return []

    def _near(self, places: range, reach: int) -> list[bytes]:
        head = self._take(places, reach)
        if len(head) == len(places):
            return head
        tail = self._take(places[len(head) :][::-1], reach)
        return head + tail[::-1]

    def _take(self, places: range, reach: int) -> list[bytes]:
        taken: list[bytes] = []
        for place in places:
            if reach <= 0 or not 0 <= place - self._first < len(self._window):
                break
            want = self._window[place - self._first]
            taken.append(want.chunk_id)
            reach -= want.size
        return taken

    def _reach(self, place: int) -> None:
        """Have the window go well beyond a place."""
        end = self._first + len(self._window)
        if place + _AHEAD // 2 < end:
            return
        try:
            for want in self._chunks:
                self._place[want.chunk_id] = end
                self._window.append(want)
                end += 1
                if end >= place + _AHEAD:
                    break
        except Damaged:
            self._chunks = iter(())
        drop = place - _BEHIND - self._first
        if drop > 0:
            for want in self._window[:drop]:
                if self._place.get(want.chunk_id, end) < self._first + drop:
                    del self._place[want.chunk_id]
            del self._window[:drop]
            self._first += drop
