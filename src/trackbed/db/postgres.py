"""PostgreSQL: the same functions on a pool, each in a SERIALIZABLE transaction of its own, tried again when it clashed.

SQLite's lane is serial by nature; SERIALIZABLE gives rooms the same promise here. After two clashes a function waits for
the advisory lock of those that clash, so a hot row costs a queue and not a storm.

A journal id is (transaction number + base) × 2¹⁶ + n. A reader stops below the oldest transaction that is still open,
so nothing can appear behind its cursor (docs/decisions/0021-journal-order.md).
"""

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, create_engine, func, select, text, update
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, OperationalError

from trackbed.base.clock import Clock
from trackbed.base.errors import Internal, StorageFull, TooLarge, Unavailable
from trackbed.db.schema import event, stamp
from trackbed.db.tx import ReadTx, Tx
from trackbed.db.writer import Job, Parts, Waits, run_hooks

_EVENTS_BITS = 16  # events of one transaction: 65,536
_CLASH = ("40001", "40P01")
_CLASH_LOCK = 0x7472_6B62
_MOST_TRIES = 50
_current = text("SELECT CAST(CAST(pg_current_xact_id() AS text) AS bigint)")
_oldest_open = text("SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)")


def open_parts(url: str, *, clock: Clock, on_commit: Callable[[], None], on_fatal: Callable[[], None]) -> Parts:
    """Return pools for writes and reads of this URL. `on_fatal` is never called: a lost server is `Unavailable`."""
    del on_fatal
    target = make_url(url).set(drivername="postgresql+psycopg")
    engine = create_engine(target, pool_size=16, max_overflow=16, pool_pre_ping=True, isolation_level="SERIALIZABLE")
    engine = engine.execution_options(preserve_rowcount=True)  # of inserts too, as on SQLite
    readers = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    journal = Journal()
    pool = Pool(engine, journal, clock=clock, on_commit=on_commit)
    return Parts(readers, pool, journal, pool.waits, pool.commits, engine.dispose, translated)


class Journal:
    """Positions by transaction number. `base` lifts them over those of a database that was loaded from a dump."""

    def __init__(self) -> None:
        self._base = 0

    def prepare(self, tx: Tx) -> None:
        newest = (tx.scalar(select(func.max(event.c.id))) or 0) >> _EVENTS_BITS
        base: int = tx.scalar(select(stamp.c.journal_base)) or 0
        missing = newest - (base + tx.scalar(_current))
        if missing > 0:
            base += missing + 1
            tx.execute(update(stamp).values(journal_base=base))
        self._base = base

    def positions(self, connection: Connection, count: int) -> list[int]:
        if count > 1 << _EVENTS_BITS:
            raise TooLarge("events_too_many", count=count, most=1 << _EVENTS_BITS)
        first = (self._base + connection.scalar(_current)) << _EVENTS_BITS
        return list(range(first, first + count))

    def bound(self, tx: ReadTx) -> list[ColumnElement[bool]]:
        return [event.c.id < (self._base + tx.scalar(_oldest_open)) << _EVENTS_BITS]


class Pool:
    """The writer: control and bulk have threads of their own, so bulk can never hold control back."""

    def __init__(self, engine: Engine, journal: Journal, *, clock: Clock, on_commit: Callable[[], None]) -> None:
        self._engine = engine
        self._journal = journal
        self._clock = clock
        self._on_commit = on_commit
        self._closed = False
        self._threads = {
            "control": ThreadPoolExecutor(8, thread_name_prefix="trackbed-writer"),
            "bulk": ThreadPoolExecutor(4, thread_name_prefix="trackbed-bulk"),
        }
        self._inside = threading.local()
        self.waits = {"control": Waits(), "bulk": Waits()}
        self.commits = Waits()

    def submit(self, job: Job) -> None:
        if getattr(self._inside, "writing", False):
            raise Internal("nested_write")
        if self._closed:
            job.future.set_exception(Unavailable("database_closed"))
            return
        self._threads[job.lane].submit(self._work, job)

    def close(self) -> None:
        self._closed = True
        for threads in self._threads.values():
            threads.shutdown(wait=True)

    def _work(self, job: Job) -> None:
        if not job.future.set_running_or_notify_cancel():
            return
        self.waits[job.lane].add(time.monotonic() - job.asked_s)
        self._inside.writing = True
        try:
            result, hooks = self._until_it_stands(job)
        except BaseException as error:
            job.future.set_exception(error)
            return
        finally:
            self._inside.writing = False
        run_hooks(hooks)
        job.future.set_result(result)
        self._on_commit()

    def _until_it_stands(self, job: Job) -> tuple[Any, list[Callable[[], None]]]:
        for clashes in range(_MOST_TRIES):
            try:
                return self._once(job, alone=clashes >= 2)
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) not in _CLASH:
                    raise translated(error) from error
            time.sleep(random.uniform(0, 0.002 * min(clashes + 1, 10)))
        raise Unavailable("database_busy")

    def _once(self, job: Job, *, alone: bool) -> tuple[Any, list[Callable[[], None]]]:
        with self._engine.connect() as connection:
            raw: Any = connection.connection.dbapi_connection
            if alone:  # taken before the snapshot is: a lock inside the transaction would come too late
                with raw.cursor() as cursor:
                    cursor.execute("SELECT pg_advisory_lock(%s)", (_CLASH_LOCK,))
                raw.rollback()
            try:
                with connection.begin() as transaction:
                    tx = Tx(connection, now_us=self._clock.now_us(), actor=job.actor, positions=self._journal.positions)
                    result = job.fn(tx)
                    tx.flush()
                    committing_s = time.monotonic()
                    transaction.commit()
                    self.commits.add(time.monotonic() - committing_s)
                return result, tx.hooks
            finally:
                if alone and not raw.closed:
                    with raw.cursor() as cursor:
                        cursor.execute("SELECT pg_advisory_unlock(%s)", (_CLASH_LOCK,))
                    raw.rollback()


def translated(error: DBAPIError) -> Exception:
    """Name what PostgreSQL said: a full disk, a lost server; anything else stays as it is."""
    state = getattr(error.orig, "sqlstate", None) or ""
    if state == "53100":
        return StorageFull("database_full")
    lost = isinstance(error, OperationalError) and not state  # psycopg names no state where it could not connect
    if lost or error.connection_invalidated or state.startswith(("08", "57P")):
        return Unavailable("database_away")
    return error
