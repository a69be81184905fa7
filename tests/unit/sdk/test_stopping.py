"""One answer for all ranks, by the files of the control folder."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from trackbed.client import stopping
from trackbed.client.stopping import Saving, Stopping


def write(path: Path, document: Any) -> None:
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(document))
    part.replace(path)


@pytest.fixture
def control(tmp_path: Path) -> Path:
    (tmp_path / "asked").mkdir()
    return tmp_path


def test_without_an_order_a_call_is_one_stat(control: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rank = Stopping(control, 0)
    rank.should_stop(0)
    looked: list[object] = []
    stat = stopping.os.stat
    monkeypatch.setattr(stopping.os, "stat", lambda path: looked.append(path) or stat(path))
    monkeypatch.setattr(Path, "exists", lambda _: pytest.fail("a second look"))
    assert not any(rank.should_stop(step) for step in range(1, 100))
    assert len(looked) == 99


def test_a_rank_says_that_it_takes_part(control: Path) -> None:
    Stopping(control, 3).should_stop(0)
    assert (control / "calls" / "3").exists()


def test_a_rank_asks_goes_on_one_step_and_waits_for_the_verdict(control: Path) -> None:
    rank = Stopping(control, 2)
    write(control / "stop.json", {"order": "ord_1", "reason": "stop", "grace": 30})
    assert rank.should_stop(7) is False
    assert (control / "asked" / "2").read_text() == "7"
    threading.Timer(0.1, write, (control / "verdict.json", {"order": "ord_1", "stop_at": 10})).start()
    began = time.monotonic()
    assert rank.should_stop(8) is False
    assert time.monotonic() - began > 0.05, "it waited"
    assert [rank.should_stop(step) for step in (9, 10, 11)] == [False, True, True]


def test_a_verdict_of_an_earlier_order_is_no_answer(control: Path) -> None:
    write(control / "verdict.json", {"order": "ord_1", "stop_at": 1})
    write(control / "stop.json", {"order": "ord_2", "reason": "pause", "grace": 0.1})
    rank = Stopping(control, 0)
    assert rank.should_stop(5) is False
    assert rank.should_stop(6) is False, "the grace is over without a verdict: the supervisor does the rest"


def test_a_withdrawn_order_is_never(control: Path) -> None:
    rank = Stopping(control, 0)
    write(control / "stop.json", {"order": "ord_1", "grace": 30})
    assert rank.should_stop(1) is False
    write(control / "verdict.json", {"order": "ord_1", "stop_at": None})
    (control / "stop.json").unlink()
    assert not any(rank.should_stop(step) for step in range(2, 6))
    write(control / "stop.json", {"order": "ord_2", "grace": 30})
    assert rank.should_stop(6) is False
    assert (control / "asked" / "0").read_text() == "6"
    write(control / "verdict.json", {"order": "ord_2", "stop_at": 7})
    assert rank.should_stop(7) is True


def test_an_order_taken_back_while_a_rank_waits_lets_it_go_on(control: Path) -> None:
    rank = Stopping(control, 0)
    write(control / "stop.json", {"order": "ord_1", "grace": 30})
    rank.should_stop(1)
    threading.Timer(0.05, (control / "stop.json").unlink).start()
    assert rank.should_stop(2) is False


def test_half_written_files_are_not_an_order(control: Path) -> None:
    (control / "stop.json").write_text('{"ord')
    assert Stopping(control, 0).should_stop(1) is False
    assert list((control / "asked").iterdir()) == []


def test_checkpoints_by_steps_are_counted_by_every_rank_for_itself(control: Path) -> None:
    ranks = [Saving(control, rank, 2, every_steps=3, every_s=None) for rank in range(2)]
    assert [[step for step in range(10) if rank.should_save(step)] for rank in ranks] == [[3, 6, 9], [3, 6, 9]]


def test_checkpoints_by_time_are_at_the_same_step_for_ranks_that_are_a_step_apart(
    control: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(stopping.time, "monotonic", lambda: now[0])
    first, second = (Saving(control, rank, 2, every_steps=None, every_s=5.0) for rank in range(2))
    saved: list[tuple[int, int]] = []
    for step in range(1, 30):
        now[0] += 1.0
        order = ((0, first), (1, second)) if step % 2 else ((1, second), (0, first))
        saved += [(rank, step) for rank, one in order if one.should_save(step)]
    steps = [step for rank, step in saved if rank == 0]
    assert steps and [step for rank, step in saved if rank == 1] == steps


def test_without_a_policy_nobody_is_told_to_save() -> None:
    assert not Saving(None, 0, 1, every_steps=None, every_s=None).should_save(100)
