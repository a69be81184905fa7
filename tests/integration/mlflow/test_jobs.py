"""MLflow inside submitted jobs, through the relay of a real supervisor: unmodified clients, and a server that is away."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def inst(jobs: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with jobs.harness.installation(tmp_path_factory.mktemp("inst"), cards=2) as running:
        yield running


def test_a_script_written_for_mlflow_runs_as_a_job_while_the_server_is_away(
    inst: Any, jobs: Any, client: str, tmp_path: Path
) -> None:
    begun, go, out = tmp_path / "begun", tmp_path / "go", tmp_path / "said.json"
    run = jobs.submit(inst, tmp_path / "job", f"{client} {HERE / 'story_job.py'} {out} {begun} {go}")
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

    found = jobs.read(inst, client, tmp_path, run, said["child"], said["second"])
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


def test_the_first_run_that_a_logger_makes_is_the_job_s_own(inst: Any, jobs: Any, client: str, tmp_path: Path) -> None:
    out = tmp_path / "said.json"
    run = jobs.submit(inst, tmp_path / "job", f"{client} {HERE / 'story_lightning_create.py'} {out}")
    detail = inst.wait(run, timeout_s=120)
    said = json.loads(out.read_text())
    assert said["own"] == said["first"] == run
    assert said["second"] != run
    assert detail["run"]["name"] == "lit"  # the spec gave none
    found = jobs.read(inst, client, tmp_path, run, said["second"])
    assert found[run]["metrics"]["x"] == "1.0"
    assert found[said["second"]]["status"] == "FINISHED"  # ended with its job: nobody else ended it
