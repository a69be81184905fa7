"""The verdict: one step for all ranks that ask. Times are given, files are real."""

import json
from pathlib import Path

import pytest

from trackbed.client.spool import Writer
from trackbed.clusters import NodeFolder
from trackbed.domain.states import OrderKind
from trackbed.formats.spool import new_metrics
from trackbed.supervisor.stopping import Stopping
from trackbed.wire.attempts import Order

FOUR = frozenset({0, 1, 2, 3})


@pytest.fixture
def folder(tmp_path: Path) -> NodeFolder:
    made = NodeFolder(tmp_path / "attempts" / "att_1")
    made.make()
    return made


def order(kind: str = "stop", id: str = "ord_1", grace_s: float = 10.0) -> Order:
    return Order(id=id, kind=kind, grace_s=grace_s)


def sdk(folder: NodeFolder, *ranks: int) -> None:
    for rank in ranks:
        (folder.spool / f"{rank}-cli_0000000000000000.tbs").touch()


def ask(folder: NodeFolder, **steps: int) -> None:
    for name, step in steps.items():
        (folder.asked / name[1:]).write_text(str(step))


def verdict(folder: NodeFolder) -> object:
    path = folder.control / "verdict.json"
    return json.loads(path.read_text())["stop_at"] if path.exists() else "none yet"


def test_the_verdict_waits_for_all_and_is_one_after_the_greatest_step(folder: NodeFolder) -> None:
    stopping = Stopping(folder)
    sdk(folder, 0, 1, 2, 3)
    stopping.begin(order(), 0.0)
    assert json.loads((folder.control / "stop.json").read_text())["order"] == "ord_1"
    ask(folder, r0=10, r1=11, r2=10)
    assert not stopping.tick(0.1, askers=FOUR, processes=FOUR).signal
    assert verdict(folder) == "none yet"
    ask(folder, r3=9)
    assert not stopping.tick(2.1, askers=FOUR, processes=FOUR).signal
    assert verdict(folder) == 12 == stopping.verdict_at


def test_a_rank_that_ended_is_not_waited_for(folder: NodeFolder) -> None:
    stopping = Stopping(folder)
    sdk(folder, 0, 1)
    stopping.begin(order(), 0.0)
    ask(folder, r0=10)
    stopping.tick(0.1, askers={0}, processes={0})
    assert verdict(folder) == 11


def test_a_rank_that_never_asks_is_waited_for_half_of_the_grace_then_all_get_the_signal(folder: NodeFolder) -> None:
    stopping = Stopping(folder)
    sdk(folder, 0, 1)
    stopping.begin(order(), 0.0)
    ask(folder, r0=10)
    assert not stopping.tick(4.9, askers={0, 1}, processes={0, 1}).signal
    assert stopping.tick(5.0, askers={0, 1}, processes={0, 1}).signal == {0, 1}
    assert verdict(folder) == 11
    assert not stopping.tick(5.1, askers={0, 1}, processes={0, 1}).signal, "once"
    assert stopping.tick(10.0, askers={0, 1}, processes={0, 1}).kill


def test_where_nobody_asks_the_signal_goes_out_at_once(folder: NodeFolder) -> None:
    stopping = Stopping(folder)
    stopping.begin(order(), 0.0)
    assert stopping.tick(0.0, askers=FOUR, processes=FOUR).signal == FOUR


def test_only_ranks_that_call_are_waited_for_once_they_are_known(folder: NodeFolder) -> None:
    stopping = Stopping(folder)
    sdk(folder, 0, 1, 2, 3)
    (folder.control / "calls").mkdir()
    (folder.control / "calls" / "0").touch()
    stopping.begin(order(), 0.0)
    ask(folder, r0=10)
    stopping.tick(0.1, askers=FOUR, processes=FOUR)
    assert verdict(folder) == 11


def test_a_rank_that_logs_and_never_asks_gets_the_signal_at_once(folder: NodeFolder) -> None:
    stopping = Stopping(folder)
    writer = Writer(folder.spool, run="run_1", rank=0)
    stopping.begin(order(), 0.0)
    assert not stopping.tick(0.1, askers={0}, processes={0}).signal, "it may still be on its way to the first step"
    for step in (1, 2):
        points = new_metrics()
        points.keys.append("loss")
        points.key.append(0)
        points.step.append(step)
        points.ts.append(step)
        points.value.append(0.5)
        writer.metrics(points)
    writer.close()
    assert stopping.tick(0.2, askers={0}, processes={0}).signal == {0}


def test_a_withdrawn_order_is_the_verdict_never_and_a_later_one_starts_clean(folder: NodeFolder) -> None:
    stopping = Stopping(folder)
    sdk(folder, 0, 1)
    stopping.begin(order("preempt"), 0.0)
    ask(folder, r0=10)
    stopping.tick(0.1, askers={0, 1}, processes={0, 1})
    assert stopping.withdraw()
    assert verdict(folder) is None and not (folder.control / "stop.json").exists()
    assert not stopping.tick(9.0, askers={0, 1}, processes={0, 1}).kill
    stopping.begin(order("stop", "ord_2"), 20.0)
    assert verdict(folder) == "none yet" and list(folder.asked.iterdir()) == []


def test_it_is_too_late_to_withdraw_when_ranks_were_told(folder: NodeFolder) -> None:
    stopping = Stopping(folder)
    stopping.begin(order(), 0.0)
    stopping.tick(0.0, askers={0}, processes={0})
    assert not stopping.withdraw() and stopping.kind is OrderKind.STOP


def test_a_second_order_changes_what_it_is_called_and_never_lengthens_the_grace(folder: NodeFolder) -> None:
    stopping = Stopping(folder)
    stopping.begin(order("pause"), 0.0)
    stopping.begin(order("stop", "ord_2", grace_s=60), 1.0)
    assert stopping.kind is OrderKind.STOP and stopping.deadline_s == 10.0
    assert json.loads((folder.control / "stop.json").read_text())["order"] == "ord_1", "ranks were asked already"
