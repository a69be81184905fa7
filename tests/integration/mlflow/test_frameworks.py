"""Frameworks with their own MLflow code inside submitted jobs, unchanged: transformers, Lightning, two autologs."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
REPO = HERE.parents[2]
NAMED = os.environ.get("TRACKBED_MLFLOW_FULL_PYTHON", "")
FULL = Path(NAMED) if NAMED else REPO / ".mlflow-venv" / "full" / "bin" / "python"
ABSENT = "no interpreter with mlflow, torch, lightning and transformers: run `make mlflow-full-venv`, or name one in TRACKBED_MLFLOW_FULL_PYTHON"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not FULL.exists(), reason=ABSENT), pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def inst(jobs: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with jobs.harness.installation(tmp_path_factory.mktemp("inst"), cards=2) as running:
        yield running


def run_example(inst: Any, jobs: Any, tmp_path: Path, name: str) -> dict[str, Any]:
    folder = tmp_path / name
    shutil.copytree(REPO / "examples" / name, folder)
    run = inst.submit(folder, f"run={FULL} train.py")
    detail = inst.wait(run, timeout_s=300)
    return detail | {"mlflow": jobs.read(inst, str(FULL), tmp_path, run)[run]}


def test_transformers_callback_logs_into_the_job_s_run(inst: Any, jobs: Any, tmp_path: Path) -> None:
    detail = run_example(inst, jobs, tmp_path, "mlflow_transformers")
    steps = [step for step, _ in detail["mlflow"]["history"]["loss"]]
    assert steps == [5, 10, 15, 20]
    assert "eval_loss" in detail["mlflow"]["metrics"]
    assert detail["mlflow"]["params"]["max_steps"] == "20"
    assert (detail["mlflow"]["name"], detail["mlflow"]["status"]) == ("parity", "FINISHED")


def test_lightnings_logger_logs_into_the_job_s_run(inst: Any, jobs: Any, tmp_path: Path) -> None:
    detail = run_example(inst, jobs, tmp_path, "mlflow_lightning")
    assert len(detail["mlflow"]["history"]["train_loss"]) == 12
    assert float(detail["mlflow"]["history"]["train_loss"][-1][1]) < float(
        detail["mlflow"]["history"]["train_loss"][0][1]
    )
    assert detail["mlflow"]["params"]["lr"] == "0.05"
    assert (detail["mlflow"]["name"], detail["mlflow"]["status"]) == ("line", "FINISHED")


def test_autologs_of_pytorch_and_sklearn_log_and_register(inst: Any, jobs: Any, tmp_path: Path) -> None:
    out = tmp_path / "said.json"
    run = jobs.submit(inst, tmp_path / "job", f"{FULL} {HERE / 'story_autolog.py'} {out}")
    inst.wait(run, timeout_s=300)
    said = json.loads(out.read_text())
    assert said["run"] == run != said["second"]
    assert said["predicted"] == 8.0
    found = jobs.read(inst, str(FULL), tmp_path, run, said["second"])
    assert any(key.startswith("train_loss") for key in found[run]["metrics"])
    assert found[run]["params"]["epochs"] == "2"
    assert "training_score" in found[said["second"]]["metrics"]
    assert found[said["second"]]["tags"]["mlflow.parentRunId"] == run
