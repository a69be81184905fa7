"""SQLite: one writer thread with two classes of jobs, group commit, and a pool of read-only connections.

Durable: WAL with synchronous=FULL; a group of functions shares one BEGIN IMMEDIATE, one COMMIT and one fsync, each in a
savepoint of its own. A failed commit is answered to everyone in the group: a full disk is `StorageFull` and the lane goes
on; anything else (a failed fsync above all) is never tried again: the lane stops and the process must be restarted.
Source: shared design, reliability.md sections 0 and 3.
"""

import errno
import fcntl
import os
import sqlite3
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pysqlite3.dbapi2 as bundled  # pyright: ignore[reportMissingTypeStubs]
from sqlalchemy import URL, ColumnElement, Connection, Engine, create_engine, event, func, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool, StaticPool

from trackbed.base import faults
from trackbed.base.clock import Clock
from trackbed.base.errors import BadInput, Conflict, Internal, StorageFull, TrackbedError, Unavailable
from trackbed.db.schema import event as event_table
from trackbed.db.tx import ReadTx, Tx
from trackbed.db.writer import Job, Parts, Waits, log, run_hooks

FIXED = (3, 51, 3)  # the first SQLite without the WAL-reset fault
GROUP = 256  # functions that share a commit
BULK_SLICE_S = 0.05  # most bulk work in one commit, and most time for the commit itself: control waits no longer
_LEAST_SLICE_S = 0.001
_READERS = 8
NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "afs"})


def driver() -> ModuleType:
    """Return the DB-API module with a sound SQLite: the bundled one, else the standard library's (said once)."""
    if bundled.sqlite_version_info >= FIXED:
        return bundled
    if sqlite3.sqlite_version_info < FIXED:
        warnings.warn(
            f"SQLite {sqlite3.sqlite_version} has the WAL-reset fault fixed in 3.51.3; only the writer checkpoints. "
            "Install pysqlite3 0.6.1 or newer.",
            RuntimeWarning,
            stacklevel=2,
        )
    return sqlite3


def lock_file(path: Path) -> int:
    """Hold the lock that makes this process the only server on the file. Returns the descriptor to keep open.

    Raises:
        Conflict: `database_in_use`, with the pid of the other server.
    """
    lock = path.with_name(path.name + ".lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        other = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "?"
        os.close(descriptor)
        raise Conflict("database_in_use", path=str(path), pid=other) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def open_parts(url: str, *, clock: Clock, on_commit: Callable[[], None], on_fatal: Callable[[], None]) -> Parts:
    """Lock the file, then return its lane and its readers.

    Raises:
        Conflict: `database_in_use`.
        BadInput: `database_on_network`.
    """
    path = Path(make_url(url).database or "").absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    refuse_network(path.parent.resolve())
    descriptor = lock_file(path)
    try:
        lane = Lane(writer_engine(path), clock=clock, on_commit=on_commit, on_fatal=on_fatal)
    except BaseException:
        os.close(descriptor)
        raise
    release = partial(os.close, descriptor)
    return Parts(reader_engine(path), lane, Journal(), lane.waits, lane.commits, release, _translated)


def refuse_network(path: Path) -> None:
    """Raise where the file would lie on a network file system, whose locks and syncs cannot be relied on.

    Raises:
        BadInput: `database_on_network`.
    """
    best, kind = Path("/"), ""
    for line in Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines():
        _, mount, found, *_ = line.split(" ")
        place = Path(mount.replace("\\040", " "))
        if path.is_relative_to(place) and len(place.parts) >= len(best.parts):
            best, kind = place, found
    if kind in NETWORK:
        raise BadInput("database_on_network", path=str(path), kind=kind)


class Journal:
    """Positions count up in the order of the lane, which is the order of commits: readers need no bound."""

    def prepare(self, tx: Tx) -> None:
        pass

    def bound(self, tx: ReadTx) -> list[ColumnElement[bool]]:
        del tx
        return []


def writer_engine(path: Path) -> Engine:
    """Return the engine of the one writing connection."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # SQLite gives -wal and -shm the same mode
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        module=driver(),
        poolclass=StaticPool,
        connect_args={"check_same_thread": False, "isolation_level": None},
    )

    @event.listens_for(engine, "connect")
    def _(connection: Any, _record: Any) -> None:
        for pragma in (
            "busy_timeout=10000",
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            "journal_size_limit=67108864",
            "cache_size=-65536",
            "temp_store=MEMORY",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def reader_engine(path: Path) -> Engine:
    """Return the engine of the read-only connections; they never checkpoint."""
    engine = create_engine(
        URL.create("sqlite", database=f"file:{path}", query={"mode": "ro", "uri": "true"}),
        module=driver(),
        poolclass=QueuePool,
        pool_size=_READERS,
        max_overflow=24,
        connect_args={"check_same_thread": False, "isolation_level": None},
    )

    @event.listens_for(engine, "connect")
    def _(connection: Any, _record: Any) -> None:
        for pragma in ("busy_timeout=10000", "query_only=ON", "wal_autocheckpoint=0", "cache_size=-16384"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    return engine


class Lane:
    """The writer thread. Control goes before bulk; bulk takes at most one slice of a commit while control waits."""

    def __init__(self, engine: Engine, *, clock: Clock, on_commit: Callable[[], None], on_fatal: Callable[[], None]):
        self._engine = engine
        self._clock = clock
        self._on_commit = on_commit
        self._on_fatal = on_fatal
        self._wake = threading.Condition()
        self._control: deque[Job] = deque()
        self._bulk: deque[Job] = deque()
        self._closing = False
        self._dead: TrackbedError | None = None
        self._last_event = -1
        self._slice_s = BULK_SLICE_S
        self.waits = {"control": Waits(), "bulk": Waits()}
        self.commits = Waits()
        self._thread = threading.Thread(target=self._loop, name="trackbed-writer", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        if threading.current_thread() is self._thread:
            raise Internal("nested_write")
        with self._wake:
            refusal = self._dead or (Unavailable("database_closed") if self._closing else None)
            if refusal is None:
                (self._control if job.lane == "control" else self._bulk).append(job)
                self._wake.notify()
                return
        job.future.set_exception(refusal)

    def close(self) -> None:
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()
        self._engine.dispose()

    def _loop(self) -> None:
        with self._engine.connect() as connection:
            while True:
                with self._wake:
                    self._wake.wait_for(lambda: self._control or self._bulk or self._closing)
                    if not (self._control or self._bulk):
                        return
                self._group(connection)

    def _next(self, bulk_until_s: float) -> Job | None:
        with self._wake:
            while True:
                if self._control:
                    job = self._control.popleft()
                elif self._bulk and time.monotonic() < bulk_until_s:
                    job = self._bulk.popleft()
                else:
                    return None
                if job.future.set_running_or_notify_cancel():
                    self.waits[job.lane].add(time.monotonic() - job.asked_s)
                    return job

    def _group(self, connection: Connection) -> None:
        """Run what is queued in one transaction, commit, answer everyone."""
        ran: list[tuple[Job, Any, list[Callable[[], None]]]] = []
        taken: list[Job] = []
        try:
            transaction = connection.begin()
            started_s = time.monotonic()
            while len(taken) < GROUP and (job := self._next(started_s + self._slice_s)):
                taken.append(job)
                try:
                    ran.append((job, *self._run(connection, job)))
                except _Lost:
                    raise
                except BaseException as error:
                    job.future.set_exception(error)
            committing_s = time.monotonic()
            faults.point("db.commit")
            transaction.commit()
            self._measure(time.monotonic() - committing_s, bulk=any(job.lane == "bulk" for job in taken))
        except BaseException as error:
            self._last_event = -1
            self._abandon(connection, taken, error.__cause__ if isinstance(error, _Lost) else error)
            return
        for _, _, hooks in ran:
            run_hooks(hooks)
        for job, result, _ in ran:
            job.future.set_result(result)
        if ran:
            self._on_commit()

    def _measure(self, commit_s: float, *, bulk: bool) -> None:
        """Take less bulk into the next commits while they take longer than a slice: big frames, a slow disk."""
        self.commits.add(commit_s)
        if bulk:
            grown = self._slice_s / 2 if commit_s > BULK_SLICE_S else self._slice_s * 1.2
            self._slice_s = min(max(grown, _LEAST_SLICE_S), BULK_SLICE_S)

    def _run(self, connection: Connection, job: Job) -> tuple[Any, list[Callable[[], None]]]:
        tx = Tx(connection, now_us=self._clock.now_us(), actor=job.actor, positions=self._positions)
        connection.exec_driver_sql("SAVEPOINT job")
        last_event = self._last_event
        try:
            result = job.fn(tx)
            tx.flush()
        except BaseException as error:
            self._last_event = last_event
            if not connection.connection.dbapi_connection.in_transaction:  # pyright: ignore - SQLite gave up all of it
                raise _Lost from error
            connection.exec_driver_sql("ROLLBACK TO job")
            connection.exec_driver_sql("RELEASE job")
            answer = _translated(error)
            if answer is error:
                raise
            raise answer from error
        connection.exec_driver_sql("RELEASE job")
        return result, tx.hooks

    def _positions(self, connection: Connection, count: int) -> list[int]:
        if self._last_event < 0:
            self._last_event = connection.scalar(select(func.coalesce(func.max(event_table.c.id), 0))) or 0
        first = self._last_event + 1
        self._last_event += count
        return list(range(first, first + count))

    def _abandon(self, connection: Connection, taken: list[Job], error: BaseException | None) -> None:
        """Nothing of this group stands. Say so to everyone; go on only after a full disk or a busy file."""
        answer = _translated(error)
        if not isinstance(answer, StorageFull | Unavailable):
            log.critical("the database cannot write any more: %s", error, exc_info=error)
            answer = Internal("database_failed", what=str(getattr(error, "orig", error)))
        try:
            connection.rollback()
        except Exception:
            log.exception("rolling back failed")
        with self._wake:
            waiting = [*self._control, *self._bulk] if isinstance(answer, Internal | Unavailable) else []
            if isinstance(answer, Internal):
                self._dead = answer
            if waiting:
                self._control.clear()
                self._bulk.clear()
        for job in waiting:
            if not job.future.set_running_or_notify_cancel():
                continue
            taken.append(job)
        for job in taken:
            if not job.future.done():
                job.future.set_exception(answer)
        if isinstance(answer, Internal):
            self._on_fatal()


class _Lost(Exception):
    """SQLite rolled the whole transaction back, not only the statement."""


def _translated(error: BaseException | None) -> BaseException:
    """Name what the driver said: a full disk, a busy file; anything else stays as it is."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return StorageFull("database_full")
    if not isinstance(error, DBAPIError):
        return error or Internal("internal", what="database")
    said = str(error.orig)
    if "disk is full" in said:
        return StorageFull("database_full")
    if "database is locked" in said:
        return Unavailable("database_busy")
    return error
