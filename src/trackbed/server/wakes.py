"""Pokes between threads and the event loop: a loop or a long poll sleeps until somebody says that its matter changed.

A poke is only a hint to look early; what is looked at is the state in the database. Names are free: `schedule`,
`order:att_…`. A sleeper passes the count that it saw *before* it looked, so a poke in between is never missed.
"""

import asyncio
import threading
from collections import Counter


class Wakes:
    """Any thread may poke; threads sleep by `wait`, coroutines by `until`."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._counts: Counter[str] = Counter()
        self._closed = False
        self._sleepers: dict[str, set[tuple[asyncio.AbstractEventLoop, asyncio.Event]]] = {}

    def count(self, name: str) -> int:
        """Return how often the name was poked so far."""
        with self._changed:
            return self._counts[name]

    def set(self, name: str) -> None:
        """Wake all who sleep on the name."""
        with self._changed:
            self._counts[name] += 1
            self._changed.notify_all()
            sleepers = list(self._sleepers.get(name, ()))
        for loop, sleeper in sleepers:
            if not loop.is_closed():
                loop.call_soon_threadsafe(sleeper.set)

    def close(self) -> None:
        """End every long poll, now and later: the server stops. Threads keep their own pace."""
        with self._changed:
            self._closed = True
            sleepers = [entry for entries in self._sleepers.values() for entry in entries]
        for loop, sleeper in sleepers:
            if not loop.is_closed():
                loop.call_soon_threadsafe(sleeper.set)

    def forget(self, name: str) -> None:
        """Drop the count of a name that nobody will use again."""
        with self._changed:
            self._counts.pop(name, None)

    def wait(self, name: str, seen: int, timeout_s: float) -> int:
        """Block until the count differs from `seen` or the time is over. Returns the count."""
        with self._changed:
            self._changed.wait_for(lambda: self._counts[name] != seen, timeout_s)
            return self._counts[name]

    async def until(self, name: str, seen: int, timeout_s: float) -> int:
        """As `wait`, for coroutines."""
        sleeper = asyncio.Event()
        entry = (asyncio.get_running_loop(), sleeper)
        with self._changed:
            if self._closed or self._counts[name] != seen:
                return self._counts[name]
            self._sleepers.setdefault(name, set()).add(entry)
        try:
            async with asyncio.timeout(timeout_s):
                await sleeper.wait()
        except TimeoutError:
            pass
        finally:
            with self._changed:
                self._sleepers[name].discard(entry)
                if not self._sleepers[name]:
                    del self._sleepers[name]
        return self.count(name)
