"""Live changes to browsers: the journal, read once for all, and progress that is not worth a row; by topic.

A subscriber has a bounded queue. One that does not keep up is dropped (its connection ends); it comes back with
Last-Event-ID and reads what it missed from the journal.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Row

from trackbed.base.errors import TrackbedError
from trackbed.db import Database

QUEUE = 512  # changes that a slow client may be behind
BATCH = 500  # journal rows read at once
PAUSE_S = 0.03  # commits within it are told together
_POOL = frozenset({"run", "attempt", "node", "card"})  # nouns whose changes move the queue
log = logging.getLogger("trackbed.server")


@dataclass(frozen=True)
class Change:
    """One thing to tell. `id` is a journal position, or 0 for progress, which is not kept.

    `space_id` is whose it is: a stream of the topic `runs` shows it only to those who may read that space.
    """

    topic: str
    data: dict[str, Any]
    id: int = 0
    space_id: str = ""


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

    def publish(self, topic: str, data: dict[str, Any], *, space_id: str = "") -> None:
        """Tell all who want `topic` (`run:run_…`, `runs`, `queue`). Never blocks, never raises. Nothing is kept."""
        self.offer(Change(topic, {"topic": topic, **data}, space_id=space_id))

    def offer(self, change: Change) -> None:
        """Hand a change to those who want it."""
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


def changes_of(row: Row[Any]) -> Iterator[Change]:
    """Return what a journal row says to each topic. The queue learns that it moved, not by whom: it is everybody's."""
    kind: str = row.kind
    if row.run_id:
        data = {"run_id": row.run_id, "kind": kind}
        yield Change(f"run:{row.run_id}", {"topic": f"run:{row.run_id}", **data}, row.id, row.space_id)
        yield Change("runs", {"topic": "runs", **data}, row.id, row.space_id)
    if kind.partition(".")[0] in _POOL:
        yield Change("queue", {"topic": "queue", "run_id": "", "kind": kind}, row.id)


class Feed:
    """A thread that reads the journal once for all streams, woken by commits."""

    def __init__(self, db: Database, publisher: Publisher) -> None:
        self._db = db
        self._publisher = publisher
        self._position = db.head()
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._unsubscribe = db.subscribe(self._news.set)
        self._thread = threading.Thread(target=self._loop, name="trackbed-feed", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._unsubscribe()
        self._stopping.set()
        self._news.set()
        self._thread.join()

    def _loop(self) -> None:
        while True:
            self._news.wait()
            if self._stopping.wait(PAUSE_S):
                return
            self._news.clear()
            try:
                self._tell()
            except TrackbedError as error:
                log.warning("the journal could not be read for the streams: %s", error)
            except Exception:
                log.exception("the journal could not be read for the streams")

    def _tell(self) -> None:
        # The head is read before we look whether anybody listens: one who comes later reads the journal up to here.
        head = self._db.head()
        if not self._publisher.listening:
            self._position = head
            return
        while rows := self._db.events(self._position, limit=BATCH):
            for row in rows:
                for change in changes_of(row):
                    self._publisher.offer(change)
            self._position = rows[-1].id
