"""Live changes to browsers: the journal, read once for all, and progress that is not worth a row; by topic.

A subscriber has a bounded queue. One that does not keep up is dropped (its connection ends); it comes back with
Last-Event-ID and reads what it missed from the journal.
"""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

QUEUE = 512  # changes that a slow client may be behind


@dataclass(frozen=True)
class Change:
    """One thing to tell. `id` is a journal position, or 0 for progress, which is not kept."""

    topic: str
    data: dict[str, Any]
    id: int = 0


@dataclass(eq=False)
class Subscriber:
    """One open stream. `changes` ends with None when the client was too slow or the server stops."""

    loop: asyncio.AbstractEventLoop
    wanted: Callable[[Change], bool]
    changes: "asyncio.Queue[Change | None]" = field(default_factory=lambda: asyncio.Queue(QUEUE + 1))
    dropped: bool = False

    def offer(self, change: Change | None) -> None:
        """Queue a change; on its own loop only."""
        if self.dropped:
            return
        if change is None or self.changes.qsize() >= QUEUE:
            self.dropped = True
            if self.changes.full():
                self.changes.get_nowait()
            self.changes.put_nowait(None)
            return
        self.changes.put_nowait(change)


class Publisher:
    """Hands changes to those who want them. Any thread may publish."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscribers: list[Subscriber] = []

    def publish(self, topic: str, data: dict[str, Any], *, id: int = 0) -> None:
        """Tell all who want `topic` (`run:run_…`, `runs`, `queue`). Never blocks, never raises."""
        change = Change(topic, data, id)
        with self._lock:
            subscribers = self._subscribers
        for subscriber in subscribers:
            if subscriber.wanted(change):
                self._offer(subscriber, change)

    def subscribe(self, wanted: Callable[[Change], bool]) -> Subscriber:
        """Return a new subscriber of the running loop. `wanted` is called on publishing threads and must be quick."""
        subscriber = Subscriber(asyncio.get_running_loop(), wanted)
        with self._lock:
            self._subscribers = [*self._subscribers, subscriber]
        return subscriber

    def unsubscribe(self, subscriber: Subscriber) -> None:
        with self._lock:
            self._subscribers = [other for other in self._subscribers if other is not subscriber]

    def close(self) -> None:
        """End every stream."""
        with self._lock:
            subscribers, self._subscribers = self._subscribers, []
        for subscriber in subscribers:
            self._offer(subscriber, None)

    @property
    def listening(self) -> int:
        return len(self._subscribers)

    def _offer(self, subscriber: Subscriber, change: Change | None) -> None:
        try:
            subscriber.loop.call_soon_threadsafe(subscriber.offer, change)
        except RuntimeError:  # its loop has ended
            self.unsubscribe(subscriber)
