"""How fast bytes may go, how far they are, and how many are in memory at once."""

import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from trackbed.base.errors import BadInput
from trackbed.storage.store import Progress

_T = TypeVar("_T")
_R = TypeVar("_R")
_BURST_S = 0.25  # of bytes that may go at once after a pause


class Pace:
    """A limit in bytes a second, shared by every thread that holds it. None is no limit."""

    def __init__(
        self,
        bytes_per_s: float | None,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if bytes_per_s is not None and bytes_per_s <= 0:
            raise BadInput("storage_rate_bad", rate=bytes_per_s)
        self._rate = bytes_per_s
        self._now, self._sleep = now, sleep
        self._lock = threading.Lock()
        self._free_at = now()

    def take(self, count: int) -> None:
        """Wait until `count` more bytes may go."""
        if self._rate is None or count <= 0:
            return
        with self._lock:
            now = self._now()
            start = max(self._free_at, now - _BURST_S)
            self._free_at = start + count / self._rate
            wait = start - now
        if wait > 0:
            self._sleep(wait)


class Paces:
    """A pace that obeys several: of the job and of the process."""

    def __init__(self, *paces: Pace) -> None:
        self._paces = paces

    def take(self, count: int) -> None:
        for pace in self._paces:
            pace.take(count)


@dataclass(frozen=True, slots=True)
class Speed:
    done: int
    total: int
    bytes_per_s: float
    left_s: float | None  # None: not known yet


class Meter:
    """Turns bytes done into a speed and a time left, over the last seconds rather than since the start."""

    def __init__(
        self, on_speed: Callable[[Speed], None], *, window_s: float = 10.0, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._on_speed = on_speed
        self._window_s, self._now = window_s, now
        self._seen: list[tuple[float, int]] = [(now(), 0)]
        self._lock = threading.Lock()

    def __call__(self, done: int, total: int) -> None:
        """A `Progress`."""
        with self._lock:
            now = self._now()
            self._seen.append((now, done))
            while len(self._seen) > 2 and now - self._seen[1][0] > self._window_s:
                self._seen.pop(0)
            since, before = self._seen[0]
            rate = (done - before) / (now - since) if now > since else 0.0
        left = (total - done) / rate if rate > 0 else (0.0 if done >= total else None)
        self._on_speed(Speed(done, total, rate, left))


class Tally:
    """Adds up bytes of many threads for one `Progress`, which sees a number that only grows."""

    def __init__(self, total: int, on_progress: Progress | None) -> None:
        self._total, self._on_progress = total, on_progress
        self._done = 0
        self._lock = threading.Lock()

    def add(self, count: int) -> None:
        with self._lock:
            self._done += count
            if self._on_progress:
                self._on_progress(self._done, max(self._total, self._done))


class Window:
    """Lets so many bytes be in memory at once: whoever wants more waits until others gave theirs back."""

    def __init__(self, size_bytes: int) -> None:
        self._free = self._size = size_bytes
        self._changed = threading.Condition()

    def take(self, count: int) -> int:
        """Wait for room; return what was taken (never more than the whole window, so nothing waits for ever)."""
        wanted = min(count, self._size)
        with self._changed:
            self._changed.wait_for(lambda: self._free >= wanted)
            self._free -= wanted
        return wanted

    def give(self, count: int) -> None:
        with self._changed:
            self._free += count
            self._changed.notify_all()


def ahead(items: Iterable[_T], fetch: Callable[[_T], _R], *, threads: int = 4, depth: int = 8) -> Iterator[_R]:
    """Yield `fetch(item)` in order, with up to `depth` of them fetched or under way: read-ahead with bounded memory.

    An error of one stops the rest and is raised in its turn.
    """
    pool = ThreadPoolExecutor(threads, thread_name_prefix="ahead")
    waiting: list[Future[_R]] = []
    try:
        for item in items:
            waiting.append(pool.submit(fetch, item))
            if len(waiting) >= depth:
                yield waiting.pop(0).result()
        while waiting:
            yield waiting.pop(0).result()
    finally:
        for one in waiting:
            one.cancel()
        pool.shutdown(wait=True, cancel_futures=True)


def one_ahead(items: Iterator[_T]) -> Generator[_T]:
    """The same items, the next one made by another thread while one is used; at most two are in use at a time. Without a
    second item there is no thread; once it is closed, none works any more."""
    now, after = next(items, None), None
    if now is not None:
        after = next(items, None)
        yield now
    if after is None:
        return
    with ThreadPoolExecutor(1, thread_name_prefix="ahead") as pool:
        while after is not None:
            now, coming = after, pool.submit(next, items, None)
            yield now
            after = coming.result()
