"""Must hold 2 and 4: whatever is killed, the run ends by itself, equal bit for bit, with a cause that names it."""

import json
import os
import signal
from pathlib import Path

import pytest
from e2e_harness import Installation, installation, project_from

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

SETS = ("params.steps=240", "params.sleep_s=0.06", "params.save_every=10")


@pytest.fixture(scope="module")
def reference(inst: Installation, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[int, float]]:
    """The uninterrupted curve."""
    run = inst.submit(project_from("sdk", tmp_path_factory.mktemp("ref")), *SETS[:1], "params.sleep_s=0", SETS[2])
    inst.wait(run)
    return counted(inst, run)


def counted(inst: Installation, run: str) -> list[tuple[int, float]]:
    return [(point[0], point[2]) for point in inst.history(run, "loss")]


def rank_pids(inst: Installation, run: str) -> list[int]:
    folder = next(
        f for f in reversed(inst.attempt_folders()) if json.loads((f / "assignment.json").read_text())["run_id"] == run
    )
    state = folder / "state.json"
    if not state.exists():
        return []
    return [int(r["pid"]) for r in json.loads(state.read_text()).get("ranks", []) if r.get("pid")]


def started(inst: Installation, tmp_path: Path) -> str:
    run = inst.submit(project_from("sdk", tmp_path), *SETS)
    inst.until(lambda: inst.show(run)["checkpoints"], what="a first checkpoint")
    return run


def test_a_killed_rank_costs_one_attempt_and_no_bit(inst: Installation, tmp_path: Path, reference: list) -> None:
    run = started(inst, tmp_path)
    os.kill(rank_pids(inst, run)[1], signal.SIGKILL)
    detail = inst.wait(run)
    assert [a["cause"] for a in detail["attempts"]] == ["killed", "done"]
    assert counted(inst, run) == reference


def test_a_killed_supervisor_is_salvaged_and_the_run_goes_on(
    inst: Installation, tmp_path: Path, reference: list
) -> None:
    run = started(inst, tmp_path)
    ranks = rank_pids(inst, run)
    os.kill(inst.supervisor_pids()[-1], signal.SIGKILL)
    detail = inst.wait(run)
    assert detail["attempts"][0]["cause"] in ("lost", "killed")
    assert detail["attempts"][-1]["cause"] == "done"
    assert not [pid for pid in ranks if Path(f"/proc/{pid}").exists()], "ranks die with their supervisor"
    assert counted(inst, run) == reference


def test_a_killed_server_that_comes_back_disturbs_nothing(inst: Installation, tmp_path: Path, reference: list) -> None:
    run = started(inst, tmp_path)
    inst.kill(signal.SIGKILL)
    inst.up()
    detail = inst.wait(run)
    assert len(detail["attempts"]) == 1, "training did not even notice"
    assert counted(inst, run) == reference


@pytest.mark.slow
def test_pause_and_resume_equal_an_uninterrupted_run(inst: Installation, tmp_path: Path, reference: list) -> None:
    run = started(inst, tmp_path)
    inst.cli("pause", run)
    inst.wait(run, "paused", timeout_s=40)
    inst.cli("resume", run)
    detail = inst.wait(run)
    assert [a["cause"] for a in detail["attempts"]] == ["paused", "done"]
    assert counted(inst, run) == reference


@pytest.mark.slow
def test_the_record_completes_at_the_next_up_when_the_server_never_came_back(
    tmp_path: Path, inst: Installation, reference: list
) -> None:
    with installation(tmp_path / "other") as other:
        run = started(other, tmp_path)
        other.kill(signal.SIGKILL)
        folder = other.attempt_folders()[-1]
        weight = folder / "output" / "weight.json"
        other.until(weight.exists, timeout_s=60, what="training ended without a server")
        other.up()
        detail = other.wait(run, timeout_s=60)
        assert len(detail["attempts"]) == 1
        assert counted(other, run) == reference


@pytest.mark.slow
def test_a_killed_supervisor_with_no_server_is_salvaged_at_the_next_up(
    tmp_path: Path, inst: Installation, reference: list
) -> None:
    with installation(tmp_path / "third") as other:
        run = started(other, tmp_path)
        other.kill(signal.SIGKILL)
        os.kill(other.supervisor_pids()[-1], signal.SIGKILL)
        other.up()
        detail = other.wait(run, timeout_s=90)
        assert detail["attempts"][-1]["cause"] == "done"
        assert counted(other, run) == reference


@pytest.mark.parametrize("verb", ["stop", pytest.param("pause", marks=pytest.mark.slow)])
def test_four_ranks_with_a_slow_one_leave_at_the_same_step(inst4: Installation, tmp_path: Path, verb: str) -> None:
    folder = project_from("sdk", tmp_path)
    run = inst4.submit(folder, "resources.cards=4", "params.steps=100000", "params.sleep_s=0.05", "params.late_s=2")
    inst4.until(lambda: (inst4.show(run)["run"].get("progress") or {}).get("step", 0) > 2, what="a few steps")
    inst4.cli(verb, run)
    inst4.wait(run, "stopped" if verb == "stop" else "paused", timeout_s=60)
    left = {line.rsplit(" ", 1)[1] for line in inst4.cli("logs", run).stdout.splitlines() if "left at step" in line}
    assert len(left) == 1, left
    lines = [line for line in inst4.cli("logs", run).stdout.splitlines() if "left at step" in line]
    assert len(lines) == 4


def test_a_run_that_ignores_term_is_killed_after_the_grace(inst: Installation, tmp_path: Path) -> None:
    folder = project_from("shell", tmp_path)
    run = inst.submit(
        folder, "run=trap '' TERM; (setsid sleep 300 &) ; while true; do sleep 1; done", "on_preempt.grace=2s"
    )
    inst.until(lambda: inst.state(run) == "running", what="running")
    inst.cli("stop", run)
    detail = inst.wait(run, "stopped", timeout_s=40)
    assert detail["attempts"][-1]["cause"] == "stopped"
    alive = [p for p in Path("/proc").glob("[0-9]*/environ") if run.encode() in _read(p)]
    assert alive == [], "the whole tree is gone, new sessions included"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
