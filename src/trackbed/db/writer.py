"""The port of a writer: takes jobs from any thread, answers each when it is durable. Two adapters: sqlite, postgres."""

import logging
import math
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from sqlalchemy import ColumnElement, Engine
from sqlalchemy.exc import DBAPIError

from trackbed.db.tx import ReadTx, Tx
from trackbed.domain.scope import Actor

Lane = Literal["control", "bulk"]
log = logging.getLogger("trackbed.db")


@dataclass
class Job:
    """One function to run in a transaction. `future` is answered after the commit, with its result or its own failure."""

    fn: Callable[[Tx], Any]
    actor: Actor
    lane: Lane
    asked_s: float
    future: "Future[Any]" = field(default_factory=lambda: Future[Any]())


class Writer(Protocol):
    def submit(self, job: Job) -> None:
        """Queue the job; never blocks. A job that fails fails alone."""
        ...

    def close(self) -> None:
        """Finish what is queued, then release everything. Later jobs are answered `database_closed`."""
        ...


class JournalOrder(Protocol):
    """How positions are given and which of them a reader may see."""

    def prepare(self, tx: Tx) -> None:
        """Read or write what the stamp says; called inside the transaction that makes the tables."""
        ...

    def bound(self, tx: ReadTx) -> list[ColumnElement[bool]]:
        """Return the conditions that keep a reader behind the oldest open transaction."""
        ...


class Waits:
    """The last waits of a lane, for its 99th percentile. Any thread."""

    def __init__(self, keep: int = 4096) -> None:
        self._lock = threading.Lock()
        self._last: deque[float] = deque(maxlen=keep)
        self.count = 0
        self.total_s = 0.0

    def add(self, seconds: float) -> None:
        with self._lock:
            self._last.append(seconds)
            self.count += 1
            self.total_s += seconds

    def percentile_ms(self, fraction: float) -> float:
        """Return the wait that `fraction` of the last waits did not pass, in milliseconds; 0 before the first."""
        with self._lock:
            waits = sorted(self._last)
        return waits[math.ceil(fraction * len(waits)) - 1] * 1000.0 if waits else 0.0


class Parts(NamedTuple):
    """What an adapter brings to a `Database`."""

    readers: Engine
    writer: Writer
    journal: JournalOrder
    waits: dict[str, Waits]
    commits: Waits
    release: Callable[[], None]
    translate: Callable[[DBAPIError], BaseException]  # names what the driver said, where we know it


def run_hooks(hooks: list[Callable[[], None]]) -> None:
    """Run what must follow a commit; what a hook raises is logged, for the commit already stands."""
    for hook in hooks:
        try:
            hook()
        except Exception:
            log.exception("a function that follows a commit failed")
