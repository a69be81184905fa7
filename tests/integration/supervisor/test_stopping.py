"""Stop, pause, preempt, limit, withdrawn: who is asked how, and what it is called afterwards."""

import json
import time
from typing import Any

import msgspec
import pytest

pytestmark = pytest.mark.timeout(120)

ASKING = """
import os, sys, time
import trackbed
run = trackbed.init()
rank = int(os.environ["RANK"])
slow = float(os.environ.get("SLOW_S", "0")) if rank == 3 else 0.0
for step in range(10_000):
    time.sleep(0.02 + slow)
    run.log({"loss": 1.0 / (step + 1)}, step=step)
    if run.should_stop(step=step):
        print("left at", step, flush=True)
        sys.exit(0)
"""
# ranks in step, as a collective would keep them: nobody is more than one step ahead of the slowest
TOGETHER = """
import os, sys, time
from pathlib import Path
import trackbed
run = trackbed.init()
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
folder = Path(os.environ["TRACKBED_SCRATCH"])
for step in range(10_000):
    time.sleep(float(os.environ["SLOW_S"]) if rank == 3 else 0.005)
    (folder / f"at-{rank}-{step}").touch()
    while not all((folder / f"at-{r}-{step}").exists() for r in range(world)):
        time.sleep(0.001)
    if run.should_stop(step=step):
        print("left at", step, flush=True)
        sys.exit(0)
"""


def left(server: Any) -> list[int]:
    return [int(line.split()[-1]) for line in server.lines() if line.startswith(b"left at")]


@pytest.mark.parametrize(
    ("kind", "cause"), [("stop", "stopped"), ("pause", "paused"), ("preempt", "preempted"), ("limit", "limit")]
)
def test_a_program_without_the_sdk_gets_the_signal_at_once(bed: Any, kind: str, cause: str) -> None:
    attempt = bed.start("sleep 60 & wait")
    bed.until(lambda: bed.phase(attempt) == "running", attempt=attempt)
    begun = time.monotonic()
    bed.order(attempt, kind, grace_s=20)
    report = bed.wait(attempt)
    assert time.monotonic() - begun < 8
    assert report.cause == cause and report.evidence["order"] == kind


def test_the_signal_of_the_spec_is_used_and_a_handler_may_end_well(bed: Any, server: Any) -> None:
    attempt = bed.start(
        "trap 'echo saving; exit 0' USR1; touch $TRACKBED_SCRATCH/up; while :; do sleep 0.1; done",
        on_preempt={"signal": "USR1", "grace_s": 6},
    )
    bed.until_file(attempt, "scratch/up")
    bed.order(attempt, "preempt")
    assert bed.wait(attempt).cause == "preempted"
    assert server.lines() == [b"saving"]


def test_a_program_behind_a_shell_may_save_before_its_rank_counts_as_ended(bed: Any, server: Any) -> None:
    tree = bed.tree(
        t__py="""
        import os, signal, sys, time
        from pathlib import Path
        def leave(*_):
            time.sleep(1.0); print("saved", flush=True); sys.exit(0)
        signal.signal(signal.SIGTERM, leave)
        Path(os.environ["TRACKBED_SCRATCH"], "up").touch()
        time.sleep(60)
        """
    )
    attempt = bed.start("echo first; python t.py; echo after", tree=tree)
    bed.until_file(attempt, "scratch/up")
    bed.order(attempt, "pause")
    assert bed.wait(attempt).cause == "paused"
    assert server.lines() == [b"first", b"saved"]


def test_term_ignored_and_a_grandchild_in_a_session_of_its_own_are_killed_after_the_grace(
    bed: Any, is_alive: Any
) -> None:
    attempt = bed.start(
        "trap '' TERM; (setsid sleep 300 & echo $! > $TRACKBED_SCRATCH/stray); touch $TRACKBED_SCRATCH/up; while :; do sleep 0.1; done"
    )
    stray = bed.until_file(attempt, "scratch/stray")
    bed.until_file(attempt, "scratch/up")
    pid = int(stray.read_text())
    begun = time.monotonic()
    bed.order(attempt, "stop", grace_s=2)
    report = bed.wait(attempt)
    assert 2 <= time.monotonic() - begun < 10
    assert report.cause == "stopped" and report.ranks[0].signal == 9
    assert not is_alive(pid)


def stop_four(bed: Any, server: Any, tree: str, slow_s: float, kind: str) -> None:
    attempt = bed.start("python t.py", tree=tree, cards=4, env={"SLOW_S": str(slow_s)})
    bed.until(lambda: len(list((bed.folder(attempt) / "control" / "spool").glob("3-cli_*"))) == 1, attempt=attempt)
    time.sleep(0.3)
    bed.order(attempt, kind, grace_s=20)
    report = bed.wait(attempt, timeout_s=40)
    steps = left(server)
    assert len(steps) == 4 and len(set(steps)) == 1, steps
    assert report.cause == {"stop": "stopped", "pause": "paused"}[kind]
    assert report.stop_step == steps[0]


@pytest.mark.parametrize("kind", ["stop", "pause"])
def test_four_ranks_in_step_leave_together_though_one_is_slower(bed: Any, server: Any, kind: str) -> None:
    stop_four(bed, server, bed.tree(t__py=TOGETHER), 0.5, kind)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_four_ranks_leave_together_in_twenty_of_twenty_tries(bed: Any, server: Any) -> None:
    tree = bed.tree(t__py=TOGETHER)
    for i in range(20):
        server.reports.clear()
        server.frames.clear()
        stop_four(bed, server, tree, 2.0 if i % 5 == 0 else 0.2 * (i % 5), ["stop", "pause"][i % 2])


def test_ranks_of_their_own_pace_leave_at_one_step_too(bed: Any, server: Any) -> None:
    attempt = bed.start("python t.py", tree=bed.tree(t__py=ASKING), cards=2)
    bed.until(lambda: len(list((bed.folder(attempt) / "control" / "spool").glob("*-cli_*"))) == 2, attempt=attempt)
    bed.order(attempt, "pause")
    assert bed.wait(attempt).cause == "paused"
    assert len(set(left(server))) == 1 and len(left(server)) == 2


def test_a_withdrawn_order_lets_the_ranks_go_on_and_a_later_one_counts(bed: Any, server: Any) -> None:
    attempt = bed.start("python t.py", tree=bed.tree(t__py=TOGETHER), cards=4, env={"SLOW_S": "1.5"})
    bed.until_file(attempt, "scratch/at-3-0")
    bed.order(attempt, "preempt", grace_s=30, id="ord_a")
    bed.until_file(attempt, "control/stop.json")
    bed.order(attempt, "preempt", withdrawn=True, id="ord_a")
    verdict = bed.until_file(attempt, "control/verdict.json")
    assert json.loads(verdict.read_text())["stop_at"] is None
    time.sleep(2.0)
    assert bed.phase(attempt) == "running" and left(server) == []
    bed.order(attempt, "stop", grace_s=20, id="ord_b")
    report = bed.wait(attempt, timeout_s=40)
    assert report.cause == "stopped" and len(set(left(server))) == 1


def test_ranks_that_finish_before_they_are_told_are_done(bed: Any) -> None:
    attempt = bed.start('python -c "import trackbed, time; trackbed.init(); time.sleep(3)"')
    bed.until(lambda: list((bed.folder(attempt) / "control" / "spool").glob("0-cli_*")), attempt=attempt)
    bed.order(attempt, "stop", grace_s=30)
    assert bed.wait(attempt).cause == "done"


def test_an_order_before_the_ranks_start_starts_none(bed: Any, server: Any) -> None:
    assignment = bed.assignment("echo never")
    bed.order(assignment.attempt_id, "stop")
    bed.started.append(assignment.attempt_id)
    digest = bed.tree(big="x")
    bed.engine.submit(msgspec.structs.replace(assignment, inputs={f"i{n}": digest for n in range(3)}))
    assert bed.wait(assignment.attempt_id).cause == "stopped"


def test_the_time_limit_is_kept_without_a_server(bed: Any, server: Any) -> None:
    server.mode = "away"
    attempt = bed.start("sleep 60", time_limit_s=1.0)
    bed.until(lambda: any((bed.folder(attempt) / "reports").glob("*-exit.json")), attempt=attempt)
    server.mode = "ok"
    assert bed.wait(attempt).cause == "limit"


def test_a_superseded_attempt_stops_and_its_spool_is_still_shipped(bed: Any, server: Any) -> None:
    attempt = bed.start("echo before; sleep 60")
    bed.until(lambda: server.lines() == [b"before"], attempt=attempt)
    server.superseded = True
    report = bed.wait(attempt)
    assert report.cause == "lost" and report.evidence["order"] == "superseded"


def test_strict_fencing_ends_ranks_before_the_lease_does(bed: Any, server: Any, is_alive: Any) -> None:
    lease = {"heartbeat_s": 0.3, "lease_s": 3, "orphan_limit_s": 60, "fencing": "strict"}
    attempt = bed.start("trap '' TERM; while :; do sleep 0.1; done", lease=lease)
    bed.until(lambda: bed.phase(attempt) == "running", attempt=attempt)
    pid = bed.rank_pids(attempt)[0]
    server.mode = "away"
    begun = time.monotonic()
    bed.until(lambda: not is_alive(pid), attempt=attempt)
    assert time.monotonic() - begun < 4.5
    server.mode = "ok"
    assert bed.wait(attempt).cause == "network"
