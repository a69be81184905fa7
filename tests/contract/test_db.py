"""The port of the database: what rooms may rely on, on SQLite and on PostgreSQL alike."""

import asyncio
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Column, Integer, LargeBinary, Table, Text, select, update
from sqlalchemy.exc import IntegrityError

from trackbed.base.errors import BadInput, Conflict, Internal, Unavailable
from trackbed.db import Database, ReadTx, Tx, metadata, scope_clause, upsert
from trackbed.db.schema import event, stamp
from trackbed.domain.events import Event
from trackbed.domain.scope import SYSTEM, Actor, ActorKind, Permission, Role, Scope
from trackbed.testing.clock import FakeClock
from trackbed.testing.database import KINDS, new_database, new_url

counter = Table(
    "contract_counter",
    metadata,
    Column("name", Text, primary_key=True),
    Column("space_id", Text, nullable=False, default=""),
    Column("n", Integer, nullable=False, default=0),
    Column("body", LargeBinary, nullable=True),
)
ME = Actor(ActorKind.PERSON, "per_1", "ada")
WHO = SYSTEM.actor


@pytest.fixture(params=KINDS)
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    database = new_database(request.param, tmp_path)
    yield database
    database.close()


def put(name: str, **values: Any) -> Callable[[Tx], None]:
    return lambda tx: tx.execute(counter.insert().values(name=name, **values)) and None


def count(tx: ReadTx, name: str = "k") -> int:
    return tx.scalar(select(counter.c.n).where(counter.c.name == name)) or 0


def together(*works: Callable[[], object]) -> list[BaseException]:
    """Run each in a thread of its own; return what they raised."""
    raised: list[BaseException] = []

    def guarded(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    return raised


def test_a_write_returns_what_its_function_returned_and_the_next_read_sees_it(db: Database) -> None:
    assert db.write(lambda tx: tx.execute(counter.insert().values(name="a", n=3)).rowcount, actor=WHO) == 1
    assert db.read(lambda tx: tx.one(select(counter.c.name, counter.c.n))) == ("a", 3)
    assert db.read(lambda tx: tx.one(select(counter).where(counter.c.name == "b"))) is None


def test_sixteen_threads_count_through_one_row_without_a_lost_update(db: Database) -> None:
    db.write(put("k"), actor=WHO)

    def add_one(tx: Tx) -> None:
        seen = count(tx)  # read, then write: the shape that loses updates
        tx.execute(update(counter).where(counter.c.name == "k").values(n=seen + 1))

    def work() -> None:
        for _ in range(15):
            db.write(add_one, actor=WHO)

    assert together(*[work] * 16) == []
    assert db.read(count) == 240


def test_a_function_that_fails_fails_alone_and_leaves_nothing(db: Database) -> None:
    def half(tx: Tx) -> None:
        put("half")(tx)
        tx.emit(Event("counter.made", "half"))
        raise ValueError("in the middle")

    barrier = threading.Barrier(9)
    outcomes: list[str] = []

    def work(index: int) -> None:
        barrier.wait()
        if index % 2:
            db.write(put(f"whole{index}"), actor=WHO)
        else:
            with pytest.raises(ValueError):
                db.write(half, actor=WHO)
        outcomes.append("ok")

    assert together(*[lambda i=i: work(i) for i in range(9)]) == []
    names = [row.name for row in db.read(lambda tx: tx.rows(select(counter).order_by(counter.c.name)))]
    assert names == ["whole1", "whole3", "whole5", "whole7"]
    assert db.events(0) == []


def test_an_error_of_the_database_reaches_its_own_caller_only(db: Database) -> None:
    db.write(put("a"), actor=WHO)
    with pytest.raises(IntegrityError):
        db.write(put("a"), actor=WHO)
    db.write(put("b"), actor=WHO)


def test_an_event_stands_or_falls_with_its_change_and_says_who_and_when(tmp_path: Path) -> None:
    clock = FakeClock()
    for kind in KINDS:
        db = new_database(kind, tmp_path, clock=clock)

        def change(tx: Tx) -> None:
            put("a")(tx)
            tx.emit(Event("a.made", "a", space_id="spc_1", run_id="run_1", attempt_id="att_1", data={"损失": 1.5}))
            tx.emit(Event("a.told", "a"))

        db.write(change, actor=ME)
        made, told = db.events(0)
        assert (made.kind, made.actor_kind, made.actor, made.actor_name) == ("a.made", "person", "per_1", "ada")
        assert (made.subject, made.space_id, made.run_id, made.attempt_id) == ("a", "spc_1", "run_1", "att_1")
        assert (made.time_us, made.data) == (clock.now_us(), '{"损失":1.5}')
        assert made.id < told.id == db.head()
        assert [row.kind for row in db.events(made.id)] == ["a.told"]
        assert [row.kind for row in db.events(0, run_id="run_1")] == ["a.made"]
        assert len(db.events(0, limit=1)) == 1
        db.close()


def test_a_cursor_reader_meets_every_event_once_and_in_order_while_many_write(db: Database) -> None:
    writers, each = 8, 25
    done = threading.Event()
    met: list[Any] = []

    def write(writer: int) -> None:
        dice = random.Random(writer)
        for n in range(each):

            def work(tx: Tx, n: int = n) -> None:
                tx.emit(Event("x.first", f"{writer}", data={"n": 2 * n}))
                tx.execute(upsert(counter, {"name": f"{writer}", "n": n}, key=["name"], update=["n"]))
                time.sleep(dice.uniform(0, 0.004))  # on PostgreSQL transactions overlap here
                tx.emit(Event("x.second", f"{writer}", data={"n": 2 * n + 1}))

            db.write(work, actor=WHO, lane=dice.choice(["control", "bulk"]))

    def follow() -> None:
        position = 0
        while True:
            last = done.is_set()
            rows = db.events(position, limit=7)
            if rows:
                met.extend(rows)
                position = rows[-1].id
            elif last:
                return

    follower = threading.Thread(target=follow)
    follower.start()
    raised = together(*[lambda w=w: write(w) for w in range(writers)])
    done.set()
    follower.join(60)
    assert raised == []
    assert len(met) == writers * each * 2, "an event appeared behind the cursor"
    assert [row.id for row in met] == sorted({row.id for row in met})
    for writer in range(writers):
        mine = [row.data for row in met if row.subject == f"{writer}"]
        assert mine == [f'{{"n":{n}}}' for n in range(2 * each)]


def test_what_follows_a_commit_runs_once_before_the_answer_and_never_after_a_failure(db: Database) -> None:
    ran: list[str] = []

    def good(tx: Tx) -> None:
        put("a")(tx)
        tx.after_commit(lambda: ran.append(f"good {db.read(lambda r: r.one(select(counter.c.name)))}"))

    def bad(tx: Tx) -> None:
        tx.after_commit(lambda: ran.append("bad"))
        raise ValueError

    db.write(good, actor=WHO)
    assert ran == ["good ('a',)"]
    with pytest.raises(ValueError):
        db.write(bad, actor=WHO)
    assert ran == ["good ('a',)"]


def test_listeners_are_called_after_commits_until_they_unsubscribe(db: Database) -> None:
    calls: list[int] = []
    stop = db.subscribe(lambda: calls.append(1))

    def failing() -> None:
        raise ValueError("a listener's own fault")

    db.subscribe(failing)
    db.write(put("a"), actor=WHO)
    deadline = time.monotonic() + 5
    while not calls and time.monotonic() < deadline:
        time.sleep(0.005)
    assert calls
    stop()
    time.sleep(0.05)
    before = len(calls)
    db.write(put("b"), actor=WHO)
    time.sleep(0.05)
    assert len(calls) == before


def test_a_read_is_one_snapshot_whatever_is_written_meanwhile(db: Database) -> None:
    db.write(put("k"), actor=WHO)

    def look_twice(tx: ReadTx) -> tuple[int, int]:
        first = count(tx)
        db.write(lambda w: w.execute(update(counter).values(n=7)).rowcount, actor=WHO)
        return first, count(tx)

    assert db.read(look_twice) == (0, 0)
    assert db.read(count) == 7


def test_a_reader_cannot_write(db: Database) -> None:
    with pytest.raises(Exception, match=r"(?i)read.?only"):
        db.read(lambda tx: tx.connection.execute(counter.insert().values(name="a")))


def test_coroutines_write_and_read_without_holding_the_loop(db: Database) -> None:
    async def story() -> tuple[int, int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.001)
                ticks += 1

        ticker = asyncio.create_task(tick())

        def slow(tx: Tx) -> None:
            time.sleep(0.1)
            put("a", n=5)(tx)

        await asyncio.gather(db.awrite(slow, actor=WHO), db.awrite(put("b"), actor=WHO))
        ticker.cancel()
        return await db.aread(lambda tx: count(tx, "a")), ticks

    value, ticks = asyncio.run(story())
    assert value == 5
    assert ticks > 3


def test_upsert_ignores_or_updates_by_key(db: Database) -> None:
    def ignore(n: int) -> Any:
        return upsert(counter, {"name": "a", "n": n}, key=["name"])

    assert db.write(lambda tx: tx.execute(ignore(1)).rowcount, actor=WHO) == 1
    assert db.write(lambda tx: tx.execute(ignore(2)).rowcount, actor=WHO) == 0
    assert db.read(lambda tx: count(tx, "a")) == 1
    taking = upsert(counter, {"name": "a", "n": 9}, key=["name"], update=["n"]).returning(counter.c.n)
    assert db.write(lambda tx: tx.execute(taking).scalar(), actor=WHO) == 9
    rows = [{"name": name, "n": 4, "space_id": ""} for name in ("a", "b", "c")]
    db.write(lambda tx: tx.execute(upsert(counter, key=["name"], update=["n"]), rows).rowcount, actor=WHO)
    assert db.read(lambda tx: [count(tx, name) for name in "abc"]) == [4, 4, 4]


def test_integers_hold_microseconds_and_bytes_come_back_as_they_were(db: Database) -> None:
    body = bytes(range(256)) * 4
    db.write(put("a", n=2**53 + 1, body=body), actor=WHO)
    row = db.read(lambda tx: tx.one(select(counter).where(counter.c.n > 2**52)))
    assert row is not None
    assert (row.n, bytes(row.body)) == (2**53 + 1, body)


def test_the_scope_clause_shows_only_rows_of_permitted_spaces(db: Database) -> None:
    for name, space in (("a", "s1"), ("b", "s2"), ("c", "s3")):
        db.write(put(name, space_id=space), actor=WHO)
    scope = Scope(ME, {"s1": Role.VIEWER, "s2": Role.MEMBER})

    def names(scope: Scope, permission: Permission = Permission.READ) -> str:
        stmt = select(counter.c.name).where(scope_clause(counter, scope, permission)).order_by(counter.c.name)
        return "".join(row.name for row in db.read(lambda tx: tx.rows(stmt)))

    assert names(scope) == "ab"
    assert names(scope, Permission.WRITE) == "b"
    assert names(scope, Permission.MAINTAIN) == ""
    assert names(Scope(ME)) == ""
    assert names(Scope(ME, admin=True)) == "abc"
    assert names(SYSTEM) == "abc"


def test_a_write_inside_a_write_is_refused_instead_of_hanging(db: Database) -> None:
    with pytest.raises(Internal) as refused:
        db.write(lambda tx: db.write(put("a"), actor=WHO), actor=WHO)
    assert refused.value.code == "nested_write"


def test_a_closed_database_says_so(tmp_path: Path) -> None:
    for kind in KINDS:
        db = new_database(kind, tmp_path)
        db.close()
        with pytest.raises(Unavailable) as refused:
            db.write(put("a"), actor=WHO)
        assert refused.value.code == "database_closed"


def test_closing_finishes_what_is_queued(tmp_path: Path) -> None:
    url = new_url("sqlite", tmp_path)
    db = Database.open(url, clock=FakeClock())
    db.prepare()
    raised: list[BaseException] = []

    def work(n: int) -> None:
        try:
            db.write(put(f"{n}"), actor=WHO)
        except Unavailable as error:
            raised.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(40)]
    for thread in threads:
        thread.start()
    db.close()
    for thread in threads:
        thread.join(30)
    again = Database.open(url, clock=FakeClock())
    assert again.read(lambda tx: len(tx.rows(select(counter)))) == 40 - len(raised)
    again.close()


@pytest.mark.parametrize("kind", KINDS)
def test_preparing_twice_changes_nothing_and_a_newer_stamp_is_refused(kind: str, tmp_path: Path) -> None:
    url = new_url(kind, tmp_path)
    db = Database.open(url, clock=FakeClock())
    db.prepare()
    db.write(put("a"), actor=WHO)
    db.write(lambda tx: tx.emit(Event("a.made", "a")), actor=WHO)
    before = db.head()
    db.close()
    db = Database.open(url, clock=FakeClock())
    db.prepare()
    assert db.head() == before
    db.write(lambda tx: tx.emit(Event("a.made", "a")), actor=WHO)
    assert db.head() > before
    db.write(lambda tx: tx.execute(update(stamp).values(schema=99, program="9.9")).rowcount, actor=WHO)
    with pytest.raises(Conflict) as refused:
        db.prepare()
    assert refused.value.code == "schema_newer"
    assert refused.value.params["program"] == "9.9"
    db.close()


def test_positions_never_fall_behind_those_of_a_loaded_dump(tmp_path: Path) -> None:
    url = new_url("postgresql", tmp_path)
    db = Database.open(url, clock=FakeClock())
    db.prepare()
    old = 10**9 << 16  # written by a server whose transaction numbers were far higher
    row = dict.fromkeys(event.columns.keys(), "") | {"id": old, "time_us": 1, "data": "{}"}
    db.write(lambda tx: tx.execute(event.insert(), [row]).rowcount, actor=WHO)
    db.prepare()
    db.write(lambda tx: tx.emit(Event("a.made", "a")), actor=WHO)
    assert [r.kind for r in db.events(old)] == ["a.made"]
    db.close()


def test_an_address_that_is_no_database_of_ours_is_refused_without_its_password() -> None:
    with pytest.raises(BadInput) as refused:
        Database.open("mysql://me:secret@h/x", clock=FakeClock())
    assert "secret" not in str(refused.value)


def test_a_server_that_is_away_is_said_in_reads_and_writes() -> None:
    db = Database.open("postgresql://nobody@127.0.0.1:1/none", clock=FakeClock())
    for work in (lambda: db.read(count), lambda: db.write(put("a"), actor=WHO)):
        with pytest.raises(Unavailable) as refused:
            work()
        assert refused.value.code == "database_away"
    db.close()
