"""Whatever is killed, nothing is left running and the cause names what happened."""

import json
import os
import signal
import time
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(120)

TWO = """
import os, sys, time
from pathlib import Path
rank = os.environ.get("RANK", "0")
Path(os.environ["TRACKBED_SCRATCH"], "up-" + rank).touch()
for i in range(600):
    print("rank", rank, "tick", i, flush=True)
    time.sleep(0.1)
"""


def both_up(bed: Any, attempt: str) -> None:
    bed.until_file(attempt, "scratch/up-0")
    bed.until_file(attempt, "scratch/up-1")


def test_a_killed_rank_ends_the_others_within_ten_seconds(bed: Any, server: Any, kill9: Any, is_alive: Any) -> None:
    attempt = bed.start("python t.py", tree=bed.tree(t__py=TWO), cards=2)
    both_up(bed, attempt)
    pids = bed.rank_pids(attempt)
    kill9(pids[1])
    begun = time.monotonic()
    bed.until(lambda: not any(is_alive(pid) for pid in pids), timeout_s=10, attempt=attempt)
    report = bed.wait(attempt)
    assert time.monotonic() - begun < 15
    assert report.cause == "killed"
    assert report.evidence["first_rank"] == 1 and report.evidence["signal"] == "SIGKILL"
    assert report.evidence["last_lines"][-1].startswith("rank 1 tick")


def test_ranks_that_ignore_term_are_ended_all_the_same(bed: Any, kill9: Any, is_alive: Any) -> None:
    attempt = bed.start("trap '' TERM; touch $TRACKBED_SCRATCH/up-$RANK; while :; do sleep 0.2; done", cards=2)
    both_up(bed, attempt)
    pids = bed.rank_pids(attempt)
    kill9(pids[0])
    bed.until(lambda: not is_alive(pids[1]), timeout_s=10, attempt=attempt)
    assert bed.wait(attempt).cause == "killed"


def test_a_shell_that_reports_a_killed_child_is_killed_too(bed: Any) -> None:
    report = bed.run("python -c 'import os; os.kill(os.getpid(), 9)'; code=$?; exit $code")
    assert report.cause == "killed" and report.evidence["signal"] == "SIGKILL"


def test_ranks_die_with_their_supervisor_and_a_salvager_reports(
    bed: Any, server: Any, kill9: Any, is_alive: Any
) -> None:
    command = "(setsid sleep 300 & echo $! > $TRACKBED_SCRATCH/stray); cd . && python t.py; true"
    attempt = bed.start(command, tree=bed.tree(t__py=TWO), cards=2)
    both_up(bed, attempt)
    stray = int(bed.until_file(attempt, "scratch/stray").read_text())
    folder = bed.folder(attempt)
    (folder / "output" / "half.txt").write_text("so far")
    bed.until(lambda: server.lines(rank=0), attempt=attempt)
    pids = bed.rank_pids(attempt)
    kill9(json.loads((folder / "supervisor.json").read_text())["pid"])
    bed.until(lambda: not any(is_alive(pid) for pid in [*pids, stray]), timeout_s=10, attempt=attempt)
    bed.until(lambda: bed.phase(attempt) == "lost", attempt=attempt)
    assert bed.engine.confirm_gone(attempt)
    server.reports.clear()
    bed.engine.salvage(attempt)
    bed.engine.salvage(attempt)
    report = bed.wait(attempt)
    assert report.cause == "lost" and report.salvaged
    assert [e["path"] for e in server.of("outputs")[-1]["entries"]] == ["half.txt"]
    assert any(b"rank 0 tick" in line for line in server.lines(rank=0))


def test_only_complete_checkpoints_are_salvaged(bed: Any, server: Any, kill9: Any) -> None:
    tree = bed.tree(
        t__py="""
        import os, time
        from pathlib import Path
        c = Path(os.environ["TRACKBED_CHECKPOINTS"])
        (c / ".step-1").mkdir(); (c / ".step-1" / "w").write_text("one"); time.sleep(0.05); (c / ".step-1").rename(c / "step-1")
        (c / "step-2").mkdir(); (c / "step-2" / "w").write_text("half")
        (c / "step-3.tmp").mkdir()
        Path(os.environ["TRACKBED_SCRATCH"], "saved").touch()
        time.sleep(60)
        """
    )
    attempt = bed.start("python t.py", tree=tree)
    bed.until_file(attempt, "scratch/saved")
    server.mode = "away"
    kill9(json.loads((bed.folder(attempt) / "supervisor.json").read_text())["pid"])
    bed.until(lambda: bed.phase(attempt) == "lost", attempt=attempt)
    server.mode = "ok"
    bed.engine.salvage(attempt)
    bed.wait(attempt)
    assert {(c["name"], c["step"]) for c in server.of("checkpoints")} == {("step-1", 1)}


def test_a_supervisor_killed_while_it_reports_keeps_the_cause(bed: Any, server: Any, kill9: Any) -> None:
    server.mode = "broken"
    attempt = bed.start("exit 3")
    bed.until(lambda: any((bed.folder(attempt) / "reports").glob("*-exit.json")), attempt=attempt)
    kill9(json.loads((bed.folder(attempt) / "supervisor.json").read_text())["pid"])
    bed.until(lambda: bed.phase(attempt) == "lost", attempt=attempt)
    server.mode = "ok"
    bed.engine.salvage(attempt)
    report = bed.wait(attempt)
    assert report.cause == "user_error" and report.evidence["exit_code"] == 3


def test_submitting_twice_starts_one_supervisor(bed: Any, server: Any) -> None:
    assignment = bed.assignment("echo once; sleep 1")
    bed.started.append(assignment.attempt_id)
    for _ in range(3):
        bed.engine.submit(assignment)
    bed.wait(assignment.attempt_id)
    bed.engine.submit(assignment)
    time.sleep(0.5)
    assert bed.phase(assignment.attempt_id) == "exited"
    assert server.lines() == [b"once"]


def test_engine_kill_leaves_nothing(bed: Any, is_alive: Any) -> None:
    attempt = bed.start("python t.py", tree=bed.tree(t__py=TWO), cards=2)
    both_up(bed, attempt)
    pids = bed.rank_pids(attempt)
    bed.engine.kill(attempt)
    assert bed.engine.confirm_gone(attempt)
    assert not any(is_alive(pid) for pid in pids)


def test_a_new_engine_adopts_what_the_old_one_started(bed: Any) -> None:
    attempt = bed.start("sleep 2")
    bed.until(lambda: bed.phase(attempt) == "running", attempt=attempt)
    other = type(bed.engine)(bed.home, accelerator=bed.engine.accelerator)
    assert [handle.attempt_id for handle in other.adopt()] == [attempt]
    bed.wait(attempt)
    assert other.adopt() == []
    assert other.clean(keep_s=3600) == []
    assert other.clean(keep_s=0) == [attempt]
    assert not bed.folder(attempt).exists()


def test_a_stopped_supervisor_is_alive_not_lost(bed: Any) -> None:
    attempt = bed.start("sleep 3")
    bed.until(lambda: bed.phase(attempt) == "running", attempt=attempt)
    pid = json.loads((bed.folder(attempt) / "supervisor.json").read_text())["pid"]
    os.kill(pid, signal.SIGSTOP)
    assert bed.phase(attempt) == "running"
    os.kill(pid, signal.SIGCONT)
    assert bed.wait(attempt).cause == "done"
