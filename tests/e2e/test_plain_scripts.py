"""Must hold 9: scripts that never import trackbed get data, parameters, outputs, preemption and a cause."""

import json
from pathlib import Path

import pytest
from e2e_harness import Installation, project_from

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def test_a_shell_script_runs_and_its_output_is_archived(inst: Installation, tmp_path: Path) -> None:
    run = inst.submit(project_from("shell", tmp_path))
    detail = inst.wait(run)
    assert detail["run"]["cause"] == "done"
    assert {a["path"] for a in detail["artifacts"]} >= {"count.txt"}
    logs = inst.cli("logs", run).stdout
    assert "counted" not in logs.splitlines()[0]
    assert "counting 20/20" in logs
    assert "counting 3/20" not in logs, "a progress bar keeps its last state only"


def test_a_plain_script_gets_data_and_leaves_a_report(inst: Installation, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "points.csv").write_text("".join(f"{x},{2 * x + 5}\n" for x in range(-5, 6)))
    assert inst.json("data", "add", "points", str(data))["version"] == 1
    assert inst.json("data", "add", "points", str(data))["version"] == 1, "an unchanged folder is no new version"
    run = inst.submit(
        project_from("plain-script", tmp_path),
        "data.points=points@latest",
        "params.sleep_s=0",
        "params.lr=0.05",
        "params.steps=400",
    )
    detail = inst.wait(run)
    target = tmp_path / "got"
    inst.cli("artifacts", "get", run, "report.json", "--to", str(target))
    report = json.loads((target / "report.json").read_text() if target.is_dir() else target.read_text())
    assert abs(report["a"] - 2) < 0.01 and abs(report["b"] - 5) < 0.1
    assert detail["spec"]["data"]["points"]["version"] == 1
    assert any(c["step"] == 400 for c in detail["checkpoints"])
    assert any(key.startswith("system/") for key in detail["metric_keys"])


def test_a_plain_script_is_paused_and_resumes_from_its_newest_checkpoint(inst: Installation, tmp_path: Path) -> None:
    run = inst.submit(project_from("plain-script", tmp_path), "params.sleep_s=0.05", "params.steps=120")
    inst.until(lambda: inst.show(run)["checkpoints"], what="a first checkpoint")
    inst.cli("pause", run)
    paused = inst.wait(run, "paused", timeout_s=40)
    assert paused["attempts"][-1]["cause"] == "paused"
    inst.cli("resume", run)
    detail = inst.wait(run)
    assert len(detail["attempts"]) == 2
    assert "resumed at step" in inst.cli("logs", run).stdout


def test_an_urgent_run_preempts_and_the_victim_goes_on_afterwards(inst: Installation, tmp_path: Path) -> None:
    folder = project_from("plain-script", tmp_path)
    victim = inst.submit(
        folder, "resources.cards=2", "launcher=none", "params.sleep_s=0.05", "params.steps=150", "priority=low"
    )
    inst.until(lambda: inst.show(victim)["checkpoints"], what="a first checkpoint")
    urgent = inst.submit(
        folder, "resources.cards=2", "launcher=none", "params.sleep_s=0.01", "params.steps=20", "priority=urgent"
    )
    inst.wait(urgent)
    detail = inst.wait(victim)
    assert [a["cause"] for a in detail["attempts"]] == ["preempted", "done"]


def test_a_script_that_fails_is_failed_with_its_code_and_last_lines(inst: Installation, tmp_path: Path) -> None:
    folder = project_from("plain-script", tmp_path)
    run = inst.submit(folder, "run=echo about to fail; exit 7")
    detail = inst.wait(run, "failed")
    assert detail["run"]["cause"] == "user_error"
    attempt = detail["attempts"][-1]
    assert "7" in json.dumps(attempt["evidence"])
    assert "about to fail" in json.dumps(attempt["evidence"])
    assert len(detail["attempts"]) == 1, "a user's error is not retried"


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("file", ["trackbed.yaml", "torchrun.yaml"])
def test_an_unmodified_ddp_script_trains_on_two_ranks(inst: Installation, tmp_path: Path, file: str) -> None:
    run = inst.submit(project_from("ddp-script", tmp_path), file=file)
    detail = inst.wait(run, timeout_s=240)
    assert any(c["step"] == 200 for c in detail["checkpoints"])
    assert "world 2" in inst.cli("logs", run).stdout
    assert any(a["path"] == "model.pt" for a in detail["artifacts"])
