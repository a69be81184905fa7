"""A submit that tries first, with real processes: the run is held, a few steps run on a slice, the record tells what to expect."""

import json
from pathlib import Path
from typing import Any

import pytest
from e2e_harness import Installation, project_from

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

TRAIN = """
import os, pathlib, time
import trackbed
with trackbed.init() as run:
    text = (run.data("corpus") / "all.txt").read_text()
    run.summary["bytes"] = len(text)
    run.summary["cards"] = int(os.environ.get("WORLD_SIZE", "0"))
    for step in range(400):
        time.sleep(0.02)
        run.log({"loss": 5.0 / (step + 1)}, step=step)
        run.progress(step, 400)
        if run.should_save(step) or step == 399:
            place = run.checkpoints / f"step-{step}"
            place.mkdir(exist_ok=True)
            (place / "weights").write_bytes(bytes(50_000))
            run.checkpoint(place, step)
        if run.should_stop(step):
            break
"""
SPEC = """
project: tries
name: line
data: {corpus: trial-corpus@latest}
resources: {cards: 2}
run: python train.py
"""


@pytest.fixture
def folder(inst: Installation, tmp_path: Path) -> Path:
    target = project_from("plain-script", tmp_path)
    (target / "train.py").write_text(TRAIN)
    (target / "trackbed.yaml").write_text(SPEC)
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "all.txt").write_text("a line of text\n" * 20_000)
    inst.cli("data", "add", "trial-corpus", str(corpus))
    return target


def submit(inst: Installation, folder: Path, *args: str, status: int = 0) -> tuple[dict[str, Any], str]:
    done = inst.cli("submit", "--trial", "--trial-steps", "12", "--trial-data", "64 KiB", *args, "--json", cwd=folder, check=False)  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return json.loads(done.stdout), done.stderr


def test_a_trial_tells_what_the_full_run_will_take_and_the_run_waits_for_a_word(
    inst: Installation, folder: Path
) -> None:
    view, told = submit(inst, folder)
    report = view["report"]
    assert view["state"] == "good" and report["steps"] == 12 and "release" in told
    assert 5 < report["steps_per_s"] < 60, "a step sleeps 20 ms"
    assert report["peak_rss_bytes"] > 5_000_000 and 50_000 <= report["checkpoint_bytes"] < 60_000
    assert report["loss"]["trend"] == "falling" and report["loss"]["key"] == "loss"
    forecast = report["forecast"]
    assert (forecast["steps"], forecast["cards"]) == (400, 2)
    assert forecast["seconds_low"] < forecast["seconds"] <= forecast["seconds_high"]
    assert "trial_scaled" in [one["code"] for one in forecast["how"]], "what was not tried is said"
    assert view["data"][0]["of_bytes"] == 300_000 and 0 < view["data"][0]["size_bytes"] <= 65536

    tried, held = inst.show(view["trial_id"]), inst.show(view["run_ids"][0])
    assert tried["run"]["state"] == "finished" and tried["summary"]["cards"] == 1
    assert tried["summary"]["bytes"] == view["data"][0]["size_bytes"]
    assert held["run"]["state"] == "held" and held["run"]["reason"]["code"] == "trial_good" and held["attempts"] == []
    assert held["trial"]["trial_id"] == view["trial_id"] == tried["trial"]["trial_id"]
    shown = inst.cli("show", view["runs"][0]).stdout
    assert "steps/s" in shown and "falling" in shown
    assert inst.cli("reproduce", view["trial_id"], check=False).returncode == 4, "a trial is no run to be had again"

    inst.cli("release", view["run_ids"][0])
    done = inst.wait(view["run_ids"][0])
    assert done["summary"]["bytes"] == 300_000 and done["summary"]["cards"] == 2


def test_then_queue_goes_on_by_itself(inst: Installation, folder: Path) -> None:
    view, _ = submit(inst, folder, "--then-queue")
    assert view["state"] == "good" and view["then_queue"]
    done = inst.wait(view["run_ids"][0])
    assert done["run"]["progress"]["step"] > 12


def test_a_trial_that_fails_keeps_the_run_from_the_queue(inst: Installation, folder: Path) -> None:
    (folder / "train.py").write_text("raise SystemExit(3)\n")
    view, _ = submit(inst, folder, "--then-queue", status=1)
    assert view["state"] == "bad" and view["reason"]["code"] == "trial_failed"
    held = inst.show(view["run_ids"][0])
    assert (held["run"]["state"], held["run"]["reason"]["code"]) == ("held", "trial_failed")
    assert view["trial_ref"] in inst.cli("show", view["run_ids"][0]).stdout
    inst.cli("stop", view["run_ids"][0])


def test_a_plain_script_that_knows_nothing_of_us_is_ended_by_the_limit(inst: Installation, folder: Path) -> None:
    (folder / "train.py").write_text(
        "import os, time\nassert os.environ['TRACKBED_TRIAL'] == '1' and os.environ['TRACKBED_TRIAL_STEPS'] == '12'\ntime.sleep(120)\n"
    )
    (folder / "trackbed.yaml").write_text(SPEC + "on_preempt: {grace: 1s}\n")
    view, _ = submit(inst, folder, "--trial-limit", "3s")
    assert view["state"] == "good", "still busy at the limit is no fault"
    assert {one["code"] for one in view["report"]["remarks"]} >= {"trial_no_steps", "trial_no_checkpoint"}
    assert view["report"]["peak_rss_bytes"] > 1_000_000 and "forecast" not in view["report"]
