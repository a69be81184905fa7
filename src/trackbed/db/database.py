"""The database of an installation: one door for writes, one for reads, the journal, and who listens to it."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Engine, Row, select, text, update
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError

from trackbed.base.clock import Clock
from trackbed.base.errors import BadInput, Conflict
from trackbed.db import postgres, sqlite
from trackbed.db.schema import SCHEMA, event, metadata, stamp
from trackbed.db.tx import ReadTx, Tx
from trackbed.db.writer import Job, JournalOrder, Lane, Waits, Writer
from trackbed.domain.scope import SYSTEM, Actor

T = TypeVar("T")
R = TypeVar("R", bound=ReadTx)
log = logging.getLogger("trackbed.db")
_INDEXES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'index'",
    "postgresql": "SELECT indexname AS name FROM pg_indexes WHERE schemaname = current_schema()",
}


class Database:
    """Same functions on SQLite and PostgreSQL. All methods may be called from any thread."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._listeners: list[_Listener] = []
        self._fatal: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._async_readers = ThreadPoolExecutor(8, thread_name_prefix="trackbed-reader")
        self._readers: Engine
        self._writer: Writer
        self._journal: JournalOrder
        self._release: Callable[[], None] = lambda: None
        self._translate: Callable[[DBAPIError], BaseException]
        self.waits: dict[str, Waits]
        self.commits: Waits

    @classmethod
    def open(cls, url: str, *, clock: Clock) -> "Database":
        """Open `sqlite:///path` or `postgresql://…`. Tables are made by `prepare`.

        Raises:
            BadInput: another kind of URL.
            Conflict: `database_in_use`: another server holds this SQLite file.
        """
        kind = make_url(url).get_backend_name()
        if kind not in ("sqlite", "postgresql") or (kind == "sqlite" and not make_url(url).database):
            raise BadInput("database_url_unknown", url=make_url(url).render_as_string(hide_password=True))
        database = cls(clock=clock)
        opened = sqlite.open_parts if kind == "sqlite" else postgres.open_parts
        parts = opened(url, clock=clock, on_commit=database._committed, on_fatal=database._failed)
        database._readers, database._writer, database._journal = parts.readers, parts.writer, parts.journal
        database.waits, database.commits, database._release = parts.waits, parts.commits, parts.release
        database._translate = parts.translate
        return database

    def prepare(self) -> None:
        """Make the tables that are missing and check the stamp.

        Raises:
            Conflict: `schema_newer`: a newer program has written here.
        """
        self.write(self._make, actor=SYSTEM.actor)

    def _make(self, tx: Tx) -> None:
        metadata.create_all(tx.connection)
        self._index(tx)
        row = tx.one(select(stamp))
        if row is None:
            tx.execute(
                stamp.insert().values(
                    one=1, schema=SCHEMA, program=version("trackbed"), created_us=tx.now_us, journal_base=0
                )
            )
        elif row.schema > SCHEMA:
            raise Conflict("schema_newer", found=row.schema, known=SCHEMA, program=row.program)
        elif row.program != version("trackbed"):
            tx.execute(update(stamp).values(program=version("trackbed")))
        self._journal.prepare(tx)

    def _index(self, tx: Tx) -> None:
        """Make indexes that tables from before do not have, and drop those that a table names as `outgrown`."""
        stand = {row.name for row in tx.rows(text(_INDEXES[tx.connection.dialect.name]))}
        for table in metadata.sorted_tables:
            for index in sorted(table.indexes, key=lambda one: str(one.name)):
                if index.name not in stand:
                    index.create(tx.connection)
            for name in table.info.get("outgrown", ()):
                if name in stand:
                    tx.execute(text(f"DROP INDEX {name}"))

    def write(self, fn: Callable[[Tx], T], *, actor: Actor, lane: Lane = "control") -> T:
        """Return what `fn` returned once it is durable; raise what it raised, with nothing of it kept.

        Blocks the calling thread; inside a coroutine use `awrite`.
        """
        return self._submit(fn, actor, lane).future.result()

    async def awrite(self, fn: Callable[[Tx], T], *, actor: Actor, lane: Lane = "control") -> T:
        """As `write`, without holding the loop. A cancelled caller takes back only a job that has not begun."""
        return await asyncio.wrap_future(self._submit(fn, actor, lane).future)

    def _submit(self, fn: Callable[[Tx], Any], actor: Actor, lane: Lane) -> Job:
        job = Job(_fitting(fn), actor, lane, asked_s=time.monotonic())
        self._writer.submit(job)
        return job

    def read(self, fn: Callable[[ReadTx], T]) -> T:
        """Return what `fn` found in one snapshot; it sees every write that was answered before."""
        try:
            with self._readers.connect() as connection, connection.begin():
                return _fitting(fn)(ReadTx(connection, now_us=self._clock.now_us()))
        except DBAPIError as error:
            raise self._translate(error) from error

    async def aread(self, fn: Callable[[ReadTx], T]) -> T:
        """As `read`, on a reader thread."""
        return await asyncio.get_running_loop().run_in_executor(self._async_readers, self.read, fn)

    def events(self, after: int, *, limit: int = 500, run_id: str = "") -> list[Row[Any]]:
        """Return journal rows behind position `after`, oldest first.

        Never passes the oldest open transaction: what appears later always has a greater `id`.
        """
        return self.read(lambda tx: self.events_in(tx, after, limit=limit, run_id=run_id))

    def events_in(self, tx: ReadTx, after: int, *, limit: int = 500, run_id: str = "") -> list[Row[Any]]:
        """As `events`, inside a snapshot that the caller already has."""
        stmt = select(event).where(event.c.id > after, *self._journal.bound(tx)).order_by(event.c.id).limit(limit)
        return tx.rows(stmt.where(event.c.run_id == run_id) if run_id else stmt)

    def head(self) -> int:
        """Return the newest position that `events` would show; 0 in an empty journal."""
        return self.read(self.head_in)

    def head_in(self, tx: ReadTx) -> int:
        stmt = select(event.c.id).where(*self._journal.bound(tx)).order_by(event.c.id.desc()).limit(1)
        return tx.scalar(stmt) or 0

    def subscribe(self, fn: Callable[[], None]) -> Callable[[], None]:
        """Call `fn` after each commit, on the writer's thread; it must be quick. Returns what takes it back."""
        listener = _Listener(fn)
        with self._lock:
            self._listeners = [*self._listeners, listener]
        return lambda: self._unsubscribe(listener)

    def _unsubscribe(self, listener: "_Listener") -> None:
        with self._lock:
            self._listeners = [other for other in self._listeners if other is not listener]

    def _committed(self) -> None:
        with self._lock:
            listeners = self._listeners
        for listener in listeners:
            try:
                listener.fn()
            except Exception:
                log.exception("a listener of the journal failed")

    def on_fatal(self, fn: Callable[[], None]) -> None:
        """Call `fn` once when the database can write no more; the process must end and start again."""
        self._fatal.append(fn)

    def _failed(self) -> None:
        for fn in self._fatal:
            fn()

    @property
    def lane_wait_p99_ms(self) -> float:
        """How long the slowest hundredth of control writes waited for its turn, over the last few thousand."""
        return self.waits["control"].percentile_ms(0.99)

    def close(self) -> None:
        """Finish what is queued and release files and connections."""
        self._async_readers.shutdown(wait=True)
        self._readers.dispose()  # before the writer, whose last connection then folds the log into the file
        self._writer.close()
        self._release()


class _Listener:
    """One subscription; the same function may be subscribed twice."""

    def __init__(self, fn: Callable[[], None]) -> None:
        self.fn = fn


def sqlite_url(path: Path) -> str:
    """Return the URL of an SQLite file."""
    return f"sqlite:///{path}"


def _fitting(fn: Callable[[R], T]) -> Callable[[R], T]:
    """A number that no column can hold comes from outside: it is refused, not a fault of ours."""

    def checked(tx: R) -> T:
        try:
            return fn(tx)
        except OverflowError as error:
            raise BadInput("number_too_great") from error

    return checked
