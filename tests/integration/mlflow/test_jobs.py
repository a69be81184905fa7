"""MLflow inside submitted jobs, through the relay of a real supervisor: unmodified clients, and a server that is away."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("mlflow_jobs_harness", HERE.parents[1] / "e2e" / "harness.py")
assert _spec is not None and _spec.loader is not None
harness = importlib.util.module_from_spec(_spec)
sys.modules["mlflow_jobs_harness"] = harness
_spec.loader.exec_module(harness)


@pytest.fixture(scope="module")
def inst(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with harness.installation(tmp_path_factory.mktemp("inst"), cards=2) as running:
        yield running


def submit(inst: Any, folder: Path, command: str, **more: Any) -> str:
    folder.mkdir(exist_ok=True)
    spec = {"project": "demo", "run": command, "environment": "current", "resources": {"cards": 1}, **more}
    (folder / "trackbed.yaml").write_text(json.dumps(spec))
    return inst.submit(folder)


def read(inst: Any, client: str, folder: Path, *runs: str) -> dict[str, Any]:
    """What an unmodified client reads with a person's token."""
    out = folder / "read.json"
    token = json.loads((inst.home / "client" / "credentials.json").read_text())["token"]
    env = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_TRACKING_URI": f"http://127.0.0.1:{inst.port}", "MLFLOW_TRACKING_TOKEN": token,
    }  # fmt: skip
    done = subprocess.run(
        [client, str(HERE / "story_read_job.py"), str(out), *runs],
        env=env, cwd=folder, capture_output=True, text=True, timeout=160,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:] + inst.log.read_text()[-2000:]
    return json.loads(out.read_text())


def test_a_script_written_for_mlflow_runs_as_a_job_while_the_server_is_away(
    inst: Any, client: str, tmp_path: Path
) -> None:
    begun, go, out = tmp_path / "begun", tmp_path / "go", tmp_path / "said.json"
    run = submit(inst, tmp_path / "job", f"{client} {HERE / 'story_job.py'} {out} {begun} {go}")
    inst.until(begun.exists, timeout_s=120, what="the script has begun")
    inst.kill()
    go.touch()
    inst.until(out.exists, timeout_s=160, what="the script ended without a server")
    said = json.loads(out.read_text())
    inst.up()
    inst.wait(run, timeout_s=120)

    assert said["run"] == said["asked"][0] == run
    assert said["experiment"] == [said["asked"][1], "demo"]
    assert said["changed"] == "INVALID_PARAMETER_VALUE"
    assert said["read back"] == "hello"
    assert ["notes", True] in said["listed"]
    assert said["seen"] == {
        "loss": 0.02, "params": {"depth": "4", "lr": "0.1", "name": "多行"}, "status": "RUNNING"
    }  # fmt: skip
    assert said["tags"] == {"team": "nlp", "stage": "one"}
    assert len({said["run"], said["child"], said["second"]}) == 3

    found = read(inst, client, tmp_path, run, said["child"], said["second"])
    own, child, second = found[run], found[said["child"]], found[said["second"]]
    assert own["history"]["loss"] == [[step, str(1.0 / (step + 1))] for step in range(50)]
    assert own["history"]["odd"] == [[3, "nan"]]
    assert own["history"]["big"] == [[3, "1.7976931348623157e+308"]]
    assert sorted(own["history"]["same"]) == [[1, "2.0"], [1, "5.0"]]
    assert own["metrics"]["after"] == "1.0"
    assert own["params"] == {"depth": "4", "lr": "0.1", "name": "多行"}
    assert own["tags"]["team"] == "nlp" and own["tags"]["mlflow.note.content"] == "a note" and "gone" not in own["tags"]
    assert (own["status"], own["experiment"]) == ("FINISHED", said["asked"][1])
    assert own["text"] == {"notes/hello.txt": "hello", "empty.txt": ""}
    assert child["history"] == {"acc": [[1, "0.5"]]} and child["params"] == {"fold": "1"}
    assert child["tags"]["mlflow.parentRunId"] == run
    assert (child["name"], child["status"], child["text"]) == ("fold-1", "FINISHED", {"child.txt": "of the child"})
    assert (second["name"], second["status"], second["history"]) == ("another", "FAILED", {"m": [[0, "7.0"]]})


def test_the_first_run_that_a_logger_makes_is_the_job_s_own(inst: Any, client: str, tmp_path: Path) -> None:
    out = tmp_path / "said.json"
    run = submit(inst, tmp_path / "job", f"{client} {HERE / 'story_lightning_create.py'} {out}")
    detail = inst.wait(run, timeout_s=120)
    said = json.loads(out.read_text())
    assert said["own"] == said["first"] == run
    assert said["second"] != run
    assert detail["run"]["name"] == "lit"  # the spec gave none
    found = read(inst, client, tmp_path, run, said["second"])
    assert found[run]["metrics"]["x"] == "1.0"
    assert found[said["second"]]["status"] == "FINISHED"  # ended with its job: nobody else ended it
