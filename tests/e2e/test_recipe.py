"""Must hold 2 and 5 with our own engine under the real supervisor: killed, paused, reproduced, the bits are the same."""

import json
import os
import signal
from pathlib import Path

import pytest
from e2e_harness import Installation

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.torch, pytest.mark.timeout(900)]

SPEC = {
    "project": "demo",
    "name": "tiny",
    "recipe": "pretrain",
    "data": {"corpus": "corpus@latest"},
    "seed": 17,
    "params": {
        "steps": 500,
        "d_model": 32,
        "layers": 2,
        "heads": 2,
        "seq": 32,
        "batch": 8,
        "warmup": 5,
        "checkpoint_every": 20,
    },
}


def corpus(folder: Path) -> Path:
    folder.mkdir()
    for number in range(40):
        (folder / f"f{number}.py").write_text(
            f"def f{number}(x):\n    return x * {number} + sum(range({number}))\n" * 40
        )
    return folder


def submit(inst: Installation, work: Path, cards: int, *sets: str) -> str:
    work.mkdir(exist_ok=True)
    (work / "tiny.yaml").write_text(json.dumps(SPEC | {"resources": {"cards": cards}}))
    return inst.submit(work, *sets, file="tiny.yaml")


def outcome(inst: Installation, run: str) -> tuple[str, list[tuple[int, float]]]:
    """The digest of the weights, and the loss of every counted step."""
    detail = inst.show(run)
    weights = next(a["file_digest"] for a in detail["artifacts"] if a["path"] == "model/model.safetensors")
    return weights, [(point[0], point[2]) for point in inst.history(run, "loss")]


def rank_pids(inst: Installation, run: str) -> list[int]:
    for folder in reversed(inst.attempt_folders()):
        if json.loads((folder / "assignment.json").read_text())["run_id"] == run and (folder / "state.json").exists():
            return [int(rank["pid"]) for rank in json.loads((folder / "state.json").read_text())["ranks"]]
    return []


@pytest.mark.parametrize("cards", [2, 4])
def test_killed_and_paused_runs_of_the_recipe_equal_an_uninterrupted_one(
    inst4: Installation, tmp_path: Path, cards: int
) -> None:
    inst4.cli("data", "add", "corpus", str(corpus(tmp_path / "corpus")))
    whole = submit(inst4, tmp_path / "work", cards)
    inst4.wait(whole, timeout_s=240)
    reference = outcome(inst4, whole)
    assert [step for step, _ in reference[1]] == list(range(1, 501))

    killed = submit(inst4, tmp_path / "work", cards)
    inst4.until(lambda: inst4.show(killed)["checkpoints"], timeout_s=120, what="a first checkpoint")
    os.kill(rank_pids(inst4, killed)[-1], signal.SIGKILL)
    detail = inst4.wait(killed, timeout_s=240)
    assert [attempt["cause"] for attempt in detail["attempts"]] == ["killed", "done"]
    assert detail["attempts"][1]["resumed_from_step"] >= 20
    assert outcome(inst4, killed) == reference

    if cards == 2:
        paused = submit(inst4, tmp_path / "work", cards)
        inst4.until(lambda: inst4.show(paused)["checkpoints"], timeout_s=120, what="a first checkpoint")
        inst4.cli("pause", paused)
        inst4.wait(paused, "paused", timeout_s=90)
        inst4.cli("resume", paused)
        detail = inst4.wait(paused, timeout_s=240)
        assert [attempt["cause"] for attempt in detail["attempts"]] == ["paused", "done"]
        assert outcome(inst4, paused) == reference

        verdict = inst4.json("reproduce", whole, "--verify")
        assert verdict["equal"] is True
        assert outcome(inst4, verdict["run_id"])[0] == reference[0]
