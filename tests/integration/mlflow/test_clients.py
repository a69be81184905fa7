"""Unmodified MLflow clients against a real server. The stories were run against MLflow's own server too: it says the same."""

import json
from typing import Any

import pytest

pytestmark = pytest.mark.slow


def test_a_client_logs_reads_and_searches_as_on_its_own_server(tell: Any, server: Any) -> None:
    said = json.loads(tell("story_log.py"))
    assert said["experiment"] == ["my experiment/with slash", "active"]
    assert said["twice"] == "RESOURCE_ALREADY_EXISTS"
    assert said["deleted"] == "deleted"
    assert {"my experiment/with slash", "second again"} <= set(said["experiments"])
    assert said["params"] == {"lr": "0.001", "layers": "12", "name": "a b/c", "中文": "值", "flag": "True"}
    assert said["param"] == "INVALID_PARAMETER_VALUE"
    assert said["tags"] == {"kind": "cnn", "x": "1"}
    assert (said["note"], said["run_name"], said["status"]) == ("a note", "first", "FINISHED")
    assert said["files"] == ["conf", "notes", "whole"]
    assert said["inner"] == [["whole/sub/b.bin", False, 1_280_000]]
    assert said["history"] == [[1000, 7, 3.0], [1000, 7, 4.0], [1000, 7, 5.0], [2000, 1, 9.0]]
    assert said["failed"] == "FAILED"
    first, second, both = ["first"], ["second"], ["second", "first"]
    assert said["searches"] == [both, first, first, first, second, both, first, [], second, first, second]
    assert said["filter"] == "INVALID_PARAMETER_VALUE"
    assert said["pages"] == [1, 1]
    assert said["late"] == "INVALID_PARAMETER_VALUE"
    assert (said["resumed"], said["ended"]) == ("RUNNING", "FINISHED")
    assert said["unknown"] == "RESOURCE_DOES_NOT_EXIST"

    # the same run by our own API: one record
    ours = server.json("GET", f"/api/v1/runs/{said['run']}")
    assert (ours["run"]["state"], ours["run"]["outside"], ours["run"]["description"]) == ("finished", True, "a note")
    assert set(ours["run"]["tags"]) == {"kind=cnn", "x=1"}
    assert {"loss", "nan", "inf", "val/acc"} <= set(ours["metric_keys"])
    infinite = server.json("GET", f"/api/v1/runs/{said['run']}/history?key=inf")["points"][0]
    assert "Infinity" in infinite  # exact here, clamped there
    assert server.json("GET", "/api/v1/runs", params={"filter": "params.lr < 0.01"})["total"] >= 1
    assert {one["path"] for one in ours["artifacts"]} >= {"conf/a.json", "notes/深/hello.txt", "whole/sub/b.bin"}


def test_a_client_logs_registers_and_loads_models(tell: Any, server: Any) -> None:
    said = json.loads(tell("story_models.py"))
    assert said["logged"] == "READY"
    assert said["second"] == ["2", "READY", True]
    assert (said["third"], said["alias"], said["no_alias"]) == ("3", "2", "INVALID_PARAMETER_VALUE")
    assert said["twice"] == "RESOURCE_ALREADY_EXISTS"
    assert said["registered"] == ["prices", {"task": "regression"}, ["3"]]
    assert said["one"] == ["the first", {"checked": "yes"}]
    assert (said["versions"], said["by_run"], said["models"]) == (["1", "2", "3"], 3, ["Price model"])
    assert (said["stage"], said["in_stage"]) == ("Production", ["3"])
    assert said["copied"] == ["Copied", "1"]
    assert said["left"] == ["1", "2"]
    assert (said["renamed"], said["back"]) == ("Prices", "Prices")
    assert said["searched"] == ["linear"]
    assert (said["bare"], said["bare_files"]) == (["FAILED", 150], [["empty", 0]])
    assert said["auto"][0] == "0.25"
    assert "training_score" in said["auto"][1]
    assert said["auto_models"] == 1
    assert "estimator.html" in said["auto_files"]

    # our registry has the same versions, deleted ones too, with where they came from
    ours = server.json("GET", "/api/v1/models/Price-model")
    assert ours["latest"] == 3
    assert {one["run_id"] for one in ours["versions"]} == {said["run"]}
    assert ours["versions"][0]["provenance"]["mlflow"]["source"].startswith(
        ("models:/", "runs:/", "mlflow-artifacts:/")
    )


def test_a_token_as_user_name_is_enough(tell: Any, server: Any) -> None:
    tell(
        "story_login.py",
        MLFLOW_TRACKING_TOKEN="",
        MLFLOW_TRACKING_USERNAME=server.admin,
        MLFLOW_TRACKING_PASSWORD="-",
    )
