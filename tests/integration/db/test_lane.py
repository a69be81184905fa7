"""The SQLite lane: order, group commit, and honest answers when the disk or the process fails."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Column, Integer, Table, Text, func, select, text

from trackbed.base import faults
from trackbed.base.clock import SystemClock
from trackbed.base.errors import Conflict, Internal, StorageFull, Unavailable
from trackbed.db import Database, Tx, metadata
from trackbed.db.sqlite import Lane
from trackbed.domain.events import Event
from trackbed.domain.scope import SYSTEM
from trackbed.testing.database import new_database

line = Table("lane_line", metadata, Column("n", Integer, primary_key=True), Column("body", Text, default=""))
WHO = SYSTEM.actor


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    database = new_database("sqlite", tmp_path)
    yield database
    faults.arm("")
    database.close()


def put(n: int, body: str = "") -> Callable[[Tx], None]:
    def work(tx: Tx) -> None:
        tx.execute(line.insert().values(n=n, body=body))
        tx.emit(Event("line.put", f"{n}"))

    return work


def rows(db: Database) -> int:
    return db.read(lambda tx: tx.scalar(select(func.count()).select_from(line))) or 0


def queued(db: Database) -> int:
    lane = db._writer
    assert isinstance(lane, Lane)
    return len(lane._control) + len(lane._bulk)


def started(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_control_goes_before_bulk_that_was_queued_earlier(db: Database) -> None:
    order: list[str] = []
    gate = threading.Event()
    threads = [started(lambda: db.write(lambda tx: gate.wait(10), actor=WHO, lane="bulk"))]
    time.sleep(0.05)  # the lane is now busy
    for n in range(4):
        threads.append(started(lambda n=n: db.write(lambda tx: order.append(f"bulk{n}"), actor=WHO, lane="bulk")))
        while queued(db) <= n:
            time.sleep(0.001)
    for n in range(2):
        threads.append(started(lambda n=n: db.write(lambda tx: order.append(f"control{n}"), actor=WHO)))
        while queued(db) <= n + 4:
            time.sleep(0.001)
    gate.set()
    for thread in threads:
        thread.join(10)
    assert order == ["control0", "control1", "bulk0", "bulk1", "bulk2", "bulk3"]


def test_control_waits_no_longer_than_one_slice_of_a_flood_of_bulk(db: Database) -> None:
    stop = threading.Event()

    def flood() -> None:
        while not stop.is_set():
            db.write(lambda tx: time.sleep(0.004), actor=WHO, lane="bulk")

    threads = [started(flood) for _ in range(32)]
    for n in range(40):
        db.write(put(n), actor=WHO)
    stop.set()
    for thread in threads:
        thread.join(10)
    assert 0 < db.lane_wait_p99_ms < 250
    assert db.waits["bulk"].count > 40


def test_many_writers_share_commits(db: Database) -> None:
    before = db.commits.count
    threads = [started(lambda n=n: [db.write(put(n * 100 + i), actor=WHO) for i in range(20)]) for n in range(16)]
    for thread in threads:
        thread.join(30)
    assert rows(db) == 320
    assert db.commits.count - before < 200


def test_a_full_disk_is_answered_as_such_and_the_lane_goes_on(db: Database) -> None:
    def limit(pages: int) -> Callable[[Tx], None]:
        return lambda tx: tx.connection.execute(text(f"PRAGMA max_page_count={pages}")) and None

    db.write(put(1), actor=WHO)
    db.write(limit(db.write(lambda tx: tx.scalar(text("PRAGMA page_count")), actor=WHO) + 2), actor=WHO)
    with pytest.raises(StorageFull) as refused:
        db.write(put(2, body="x" * 200_000), actor=WHO)
    assert refused.value.code == "database_full"
    assert rows(db) == 1
    db.write(limit(10**6), actor=WHO)
    db.write(put(2, body="x" * 200_000), actor=WHO)
    assert [row.subject for row in db.events(0)] == ["1", "2"]


def test_no_space_at_the_commit_is_told_to_everyone_in_the_group(db: Database) -> None:
    gate = threading.Event()
    told: list[str] = []

    def work(fn: Callable[[Tx], object]) -> None:
        try:
            db.write(fn, actor=WHO)
        except StorageFull as error:
            told.append(error.code)

    threads = [started(lambda: work(lambda tx: gate.wait(10)))]
    time.sleep(0.05)
    threads += [started(lambda n=n: work(put(n))) for n in range(5)]
    while queued(db) < 5:
        time.sleep(0.001)
    faults.arm("db.commit=ENOSPC")
    gate.set()
    for thread in threads:
        thread.join(10)
    assert told == ["database_full"] * 6
    assert (rows(db), db.head()) == (0, 0)
    db.write(put(99), actor=WHO)
    assert rows(db) == 1


def test_a_failed_sync_is_never_tried_again_and_stops_the_lane(db: Database) -> None:
    fatal = threading.Event()
    db.on_fatal(fatal.set)
    db.write(put(1), actor=WHO)
    faults.arm("db.commit=EIO")
    with pytest.raises(Internal) as refused:
        db.write(put(2), actor=WHO)
    assert refused.value.code == "database_failed"
    assert fatal.wait(5)
    faults.arm("")
    with pytest.raises(Internal):
        db.write(put(3), actor=WHO)
    assert rows(db) == 1, "what was acknowledged is still there to read"


def test_a_second_server_on_the_same_file_is_refused_with_the_first_ones_pid(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.sqlite3'}"
    first = Database.open(url, clock=SystemClock())
    code = "import sys; from trackbed.db import Database; from trackbed.base.clock import SystemClock\nDatabase.open(sys.argv[1], clock=SystemClock())"
    other = subprocess.run([sys.executable, "-c", code, url], capture_output=True, text=True, timeout=60, check=False)
    assert "database_in_use" in other.stderr or f"pid {os.getpid()}" in other.stderr
    with pytest.raises(Conflict):
        Database.open(url, clock=SystemClock())
    first.close()
    Database.open(url, clock=SystemClock()).close()


def test_the_file_is_closed_to_other_users_and_folded_together_at_the_end(tmp_path: Path) -> None:
    db = Database.open(f"sqlite:///{tmp_path / 'x.sqlite3'}", clock=SystemClock())
    db.prepare()
    db.write(put(1), actor=WHO)
    files = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert set(files) == {"x.sqlite3", "x.sqlite3-wal", "x.sqlite3-shm", "x.sqlite3.lock"}
    assert set(files.values()) == {0o600}
    db.close()
    assert {path.name for path in tmp_path.iterdir()} == {"x.sqlite3", "x.sqlite3.lock"}


WRITER = """
import sys, threading
from trackbed.base.clock import SystemClock
from trackbed.db import Database, metadata
from trackbed.domain.events import Event
from trackbed.domain.scope import SYSTEM
from sqlalchemy import Column, Integer, Table, Text
line = Table("lane_line", metadata, Column("n", Integer, primary_key=True), Column("body", Text, default=""))
db = Database.open(sys.argv[1], clock=SystemClock())
db.prepare()
def work(writer):
    n = writer
    while True:
        def fn(tx):
            tx.execute(line.insert().values(n=n))
            tx.emit(Event("line.put", str(n)))
        db.write(fn, actor=SYSTEM.actor, lane="bulk" if writer % 2 else "control")
        sys.stdout.write(f"{n}\\n"); sys.stdout.flush()
        n += 8
for w in range(8):
    threading.Thread(target=work, args=(w,), daemon=True).start()
threading.Event().wait()
"""


def test_kill_9_of_a_writing_process_loses_no_acknowledged_row_and_no_event(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.sqlite3'}"
    acknowledged: set[int] = set()
    for wait_s in (0.2, 0.35, 0.5):
        if acknowledged:
            (tmp_path / "x.sqlite3").rename(tmp_path / "old.sqlite3")  # each round counts from a new file
            for tail in ("-wal", "-shm"):
                (tmp_path / f"x.sqlite3{tail}").unlink(missing_ok=True)
        process = subprocess.Popen([sys.executable, "-c", WRITER, url], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(wait_s)
        process.send_signal(signal.SIGKILL)
        told = first + process.stdout.read()
        process.wait(10)
        acknowledged = {int(n) for n in told.split("\n")[:-1]}
        assert len(acknowledged) > 20
        db = Database.open(url, clock=SystemClock())
        kept = {row.n for row in db.read(lambda tx: tx.rows(select(line.c.n)))}
        told_of = {int(row.subject) for row in db.events(0, limit=10**6)}
        assert acknowledged <= kept
        assert kept == told_of, "an event without its row, or a row without its event"
        assert db.read(lambda tx: tx.scalar(text("PRAGMA integrity_check"))) == "ok"
        db.close()


def test_writes_after_a_stop_are_refused_not_hung(tmp_path: Path) -> None:
    db = new_database("sqlite", tmp_path)
    db.close()
    with pytest.raises(Unavailable):
        db.write(put(1), actor=WHO)
