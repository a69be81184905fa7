"""Scheduled checks of a node: verdicts by measured values, history, and an event when a verdict changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trackbed.server.loops import doctor as loop
from trackbed.sources import doctor, doctor_sql
from trackbed.sources.doctor import Ground, Look, Memory

World = Any


def by_name(looks: list[Look]) -> dict[str, Look]:
    return {one.check: one for one in looks}


def test_every_check_gives_a_verdict_and_a_number(tmp_path: Path) -> None:
    looks = by_name(doctor.examine(Ground(tmp_path, round_trip=lambda data: data, cards=("cpu", "cpu")), Memory()))
    assert set(looks) == {"disk", "fsync", "storage", "clock", "driver", "packages"}
    assert looks["disk"].value > 0 and looks["disk"].unit == "B"
    assert looks["fsync"].value > 0 and looks["fsync"].unit == "ms"
    assert looks["packages"].value > 5
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_what_cannot_be_looked_at_is_bad_and_stops_no_other(tmp_path: Path) -> None:
    def broken(_: bytes) -> bytes:
        raise OSError("no such bucket")

    looks = by_name(doctor.examine(Ground(tmp_path, "http://127.0.0.1:9", broken), Memory()))
    assert looks["storage"].verdict == "bad" and "no such bucket" in looks["storage"].params["fault"]
    assert looks["network"].verdict == "bad"
    assert looks["disk"].verdict in ("ok", "warn")
    torn = by_name(doctor.examine(Ground(tmp_path, round_trip=lambda data: data[:-1]), Memory()))
    assert torn["storage"].verdict == "bad"


def test_a_moved_clock_a_lost_card_and_a_new_driver_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = Memory()
    doctor.examine(Ground(tmp_path, cards=("nvidia", "nvidia")), memory)
    memory.wall_less_monotonic_s = (memory.wall_less_monotonic_s or 0.0) - 3600.0
    memory.seen["driver"] = "550.1"
    looks = by_name(doctor.examine(Ground(tmp_path, cards=("nvidia", "nvidia")), memory))
    assert looks["clock"].verdict == "bad" and 3599 < looks["clock"].value < 3601
    assert looks["driver"].verdict == "warn"
    assert by_name(doctor.examine(Ground(tmp_path, cards=("nvidia",)), memory))["driver"].verdict == "bad"


def test_a_change_of_verdict_is_an_event_once_and_history_is_kept(world: World) -> None:
    def note(verdict: Any) -> list[str]:
        looks = [Look("disk", verdict, 1.0, "B", {"free_gib": 1, "percent": 1, "path": "/"})]
        return world.write(lambda tx: doctor_sql.note(tx, "n1", looks), loop.ACTOR)

    told = []
    for verdict in ("ok", "ok", "bad", "bad", "ok"):
        world.clock.advance(600)
        told.append(note(verdict))
    assert told == [[], [], ["disk"], [], ["disk"]]
    events = [event for event in world.app.db.events(0, limit=1000) if event.kind == "node.check_changed"]
    assert len(events) == 2
    history = world.app.db.read(lambda tx: doctor_sql.history(tx, check="disk"))
    assert [one.verdict for one in history] == ["ok", "bad", "bad", "ok", "ok"]
    assert [one.verdict for one in world.app.db.read(doctor_sql.newest)] == ["ok"]
    world.clock.advance(doctor_sql.KEEP_US / 1e6)
    note("ok")
    assert len(world.app.db.read(doctor_sql.history)) <= 2


def test_the_loop_looks_after_a_while_and_then_now_and_then(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    monkeypatch.setattr(loop, "look", lambda app, memory: looked.append(1))
    doctor_loop = loop.Doctor()
    for _ in range(50):
        doctor_loop.tick(world.app)
        world.clock.advance(30)
    assert len(looked) == 3, "after one minute, then every ten"


def test_a_look_stands_on_the_record_and_leaves_nothing_in_the_store(world: World) -> None:
    before = sorted(path for path in world.app.home.rglob("*") if "sqlite" not in path.name)
    found = {one.check: one for one in loop.look(world.app, Memory())}
    assert found["storage"].verdict == "ok" and found["disk"].node == "n1"
    assert [
        p for p in sorted(world.app.home.rglob("*")) if "sqlite" not in p.name and p.is_file() and p not in before
    ] == []
