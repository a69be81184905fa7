"""Every route of the MLflow surface by plain HTTP, on both databases: answers, codes, order, duplicates, latest, walls."""

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from trackbed import access
from trackbed.db import Tx
from trackbed.domain.scope import SYSTEM
from trackbed.server import main
from trackbed.server.app import App, Settings
from trackbed.server.auth import declared
from trackbed.server.installation import first_admin
from trackbed.server.mlflow.errors import is_ours
from trackbed.testing.database import KINDS, new_url

API = "/api/2.0/mlflow/"
FILES = "/api/2.0/mlflow-artifacts/artifacts"
LARGEST = 1.7976931348623157e308


class Bed:
    """An application without a socket, and people who ask it."""

    def __init__(self, app: App) -> None:
        self.app, self.loop = app, asyncio.new_event_loop()
        self.board = main.build_app(app)
        transport = httpx.ASGITransport(self.board)  # pyright: ignore[reportArgumentType]
        self.http = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")
        self.admin = self.token("")
        self.asked: set[tuple[str, str]] = set()

    def token(self, name: str, **roles: str) -> str:
        def work(tx: Tx) -> str:
            person = access.create_person(tx, SYSTEM, name=name, admin=False).id if name else first_admin(tx)
            for space, role in ({"default": "", **roles} if name else roles).items():
                access.set_role(tx, SYSTEM, space, person=name, role=role)
            return access.issue_token(tx, SYSTEM, person_id=person).secret

        return self.app.db.write(work, actor=SYSTEM.actor)

    def ask(
        self, method: str, path: str, fields: Any = None, *, token: str | None = None, **more: Any
    ) -> httpx.Response:
        url = path if path.startswith("/") else API + path
        headers = more.pop("headers", None) or {"Authorization": f"Bearer {self.admin if token is None else token}"}
        if method == "GET" and fields:
            more["params"] = fields
        elif fields is not None:
            more["content"] = json.dumps(fields)
        return self.loop.run_until_complete(self.http.request(method, url, headers=headers, **more))

    def json(self, method: str, path: str, fields: Any = None, **more: Any) -> Any:
        answer = self.ask(method, path, fields, **more)
        assert answer.status_code == 200, (path, answer.status_code, answer.text)
        return answer.json()

    def post(self, path: str, /, **fields: Any) -> Any:
        return self.json("POST", path, fields)

    def get(self, path: str, /, **fields: Any) -> Any:
        return self.json("GET", path, fields)

    def refused(self, method: str, path: str, fields: Any = None, **more: Any) -> tuple[int, str]:
        answer = self.ask(method, path, fields, **more)
        document = answer.json()
        assert set(document) == {"error_code", "message"}, answer.text
        assert document["message"]
        return answer.status_code, document["error_code"]

    def run(self, experiment: str = "0", **fields: Any) -> str:
        return self.post("runs/create", experiment_id=experiment, **fields)["run"]["info"]["run_id"]

    def upload(self, path: str, data: bytes, **more: Any) -> httpx.Response:
        return self.ask("PUT", f"{FILES}/{path}", content=data, **more)


@pytest.fixture(params=[pytest.param(kind, marks=[pytest.mark.slow] if kind != "sqlite" else []) for kind in KINDS])
def bed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bed]:
    url = new_url(request.param, tmp_path)
    app = main.open_app(Settings(home=tmp_path / "home", loops=False, cards=1, database_url=url))
    made = Bed(app)
    yield made
    made.loop.run_until_complete(made.http.aclose())
    made.loop.close()
    app.db.close()


MISSING = (400, "INVALID_PARAMETER_VALUE")
UNKNOWN = (404, "RESOURCE_DOES_NOT_EXIST")
EXISTS = (400, "RESOURCE_ALREADY_EXISTS")


# --- the server ------------------------------------------------------------------------------------------------------


def test_health_version_and_info(bed: Bed) -> None:
    assert bed.ask("GET", "/health", token="").text == "OK"
    assert bed.ask("GET", "/version").text.startswith("3.")
    assert bed.json("GET", "/api/3.0/mlflow/server-info")["workspaces_enabled"] is False
    assert bed.json("GET", "/ajax-api/3.0/mlflow/server-info")["multipart_uploads_enabled"] is False


def test_what_is_not_there_is_told_in_mlflows_form(bed: Bed) -> None:
    for prefix in ("/api/2.0/mlflow", "/ajax-api/2.0/mlflow"):
        assert bed.refused("GET", f"{prefix}/nothing/here") == (404, "ENDPOINT_NOT_FOUND")
        assert bed.refused("PATCH", f"{prefix}/nothing/here", {}) in (
            (404, "ENDPOINT_NOT_FOUND"),
            (405, "ENDPOINT_NOT_FOUND"),
        )
        assert bed.refused("GET", f"{prefix}/runs/create") == (405, "ENDPOINT_NOT_FOUND")
    for method, path in (
        ("POST", "/api/3.0/mlflow/traces"),
        ("GET", "/api/3.0/mlflow/traces/tr-1"),
        ("POST", "/v1/traces"),
        ("GET", "/api/2.0/mlflow-artifacts/presigned/a/b"),
        ("POST", "/api/2.0/mlflow-artifacts/mpu/create/a"),
        ("GET", "/api/3.0/mlflow/scorers/list"),
    ):
        assert bed.refused(method, path) == (501, "NOT_IMPLEMENTED"), path


def test_every_route_refuses_strangers_and_bodies_that_are_no_objects(bed: Bed) -> None:
    for path, method, handler in main.walk(bed.board):
        if not is_ours(path) or method == "OPTIONS" or declared(handler) is None:
            continue
        url = (
            path.replace("{path:path}", "a/b/artifacts/c")
            .replace("{model_id:str}", "m-1")
            .replace("{tag_key:str}", "k")
        )
        assert bed.refused(method, url, token="tbp_no") == (401, "UNAUTHENTICATED"), path
        if method in ("POST", "PATCH") and not path.startswith(FILES):
            assert bed.refused(method, url, token=bed.admin, content=b"[1]") == MISSING, path
            assert bed.refused(method, url, token=bed.admin, content=b"{nonsense") == MISSING, path


def test_a_token_comes_as_bearer_or_by_basic_auth_and_only_here(bed: Bed) -> None:
    for pair in (f"{bed.admin}:", f"token:{bed.admin}", f"{bed.admin}:x"):
        headers = {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
        assert bed.ask("GET", "experiments/get?experiment_id=0", headers=headers).status_code == 200
        assert bed.ask("GET", "/api/v1/me", headers=headers).status_code == 401
    for wrong in ("root:root", "tbs_abc:", ""):
        headers = {"Authorization": "Basic " + base64.b64encode(wrong.encode()).decode()}
        assert bed.refused("GET", "experiments/get?experiment_id=0", headers=headers) == (401, "UNAUTHENTICATED")
    headers = {"Authorization": "Basic ???"}
    assert bed.refused("GET", "experiments/get?experiment_id=0", headers=headers) == (401, "UNAUTHENTICATED")


# --- experiments -----------------------------------------------------------------------------------------------------


def test_experiments_are_projects_with_names_of_any_form(bed: Bed) -> None:
    made = bed.post("experiments/create", name="/Users/me/my 实验", tags=[{"key": "a", "value": "b"}])["experiment_id"]
    found = bed.get("experiments/get", experiment_id=made)["experiment"]
    assert (found["name"], found["lifecycle_stage"], found["tags"]) == (
        "/Users/me/my 实验",
        "active",
        [{"key": "a", "value": "b"}],
    )
    assert found["artifact_location"] == f"mlflow-artifacts:/{made}"
    assert isinstance(found["creation_time"], int)
    assert (
        bed.get("experiments/get-by-name", experiment_name="/Users/me/my 实验")["experiment"]["experiment_id"] == made
    )
    projects = bed.json("GET", "/api/v1/projects")
    assert "Users-me-my-实验" in [one["name"] for one in projects]
    assert bed.refused("POST", "experiments/create", {"name": "/Users/me/my 实验"}) == EXISTS
    assert bed.refused("POST", "experiments/create", {"name": "Default"}) == EXISTS
    assert bed.refused("POST", "experiments/create", {}) == MISSING
    assert bed.refused("POST", "experiments/create", {"name": "a\0b"}) == MISSING
    assert bed.refused("GET", "experiments/get", {"experiment_id": "77"}) == UNKNOWN
    assert bed.refused("GET", "experiments/get-by-name", {"experiment_name": "no"}) == UNKNOWN
    other = bed.post("experiments/create", name="Users me my 实验")["experiment_id"]  # the same word, another project
    assert other != made


def test_an_experiment_is_renamed_hidden_and_brought_back(bed: Bed) -> None:
    made = bed.post("experiments/create", name="one")["experiment_id"]
    assert bed.post("experiments/update", experiment_id=made, new_name="two words") == {}
    assert bed.get("experiments/get", experiment_id=made)["experiment"]["name"] == "two words"
    assert (
        bed.get("experiments/get-by-name", experiment_name="one")["experiment"]["experiment_id"] == made
    )  # as an alias
    bed.post("experiments/create", name="three")
    assert bed.refused("POST", "experiments/update", {"experiment_id": made, "new_name": "three"}) == EXISTS
    bed.post("experiments/delete", experiment_id=made)
    assert bed.get("experiments/get", experiment_id=made)["experiment"]["lifecycle_stage"] == "deleted"
    assert bed.refused("POST", "runs/create", {"experiment_id": made}) == MISSING
    assert bed.refused("POST", "experiments/delete", {"experiment_id": made}) == MISSING
    bed.post("experiments/restore", experiment_id=made)
    assert bed.refused("POST", "experiments/restore", {"experiment_id": made}) == MISSING
    bed.post("experiments/set-experiment-tag", experiment_id=made, key="k", value="v")
    bed.post("experiments/delete-experiment-tag", experiment_id=made, key="k")
    assert bed.refused("POST", "experiments/delete-experiment-tag", {"experiment_id": made, "key": "k"}) == UNKNOWN


def test_experiments_are_searched_in_pages(bed: Bed) -> None:
    for name in ("alpha", "beta", "gamma"):
        bed.post("experiments/create", name=name, tags=[{"key": "len", "value": str(len(name))}])

    def names(**fields: Any) -> list[str]:
        return [one["name"] for one in bed.post("experiments/search", **fields)["experiments"]]

    assert names(order_by=["name DESC"]) == ["gamma", "demo", "beta", "alpha"]
    assert names(filter="name LIKE '%eta'") == ["beta"]
    assert names(filter="name ILIKE '%ETA'") == ["beta"]
    assert names(filter="name LIKE '%ETA'") == []
    assert names(filter="tags.len = '5'", order_by=["name"]) == ["alpha", "gamma"]
    assert names(filter="creation_time > 0 and name != 'beta'", order_by=["name"]) == ["alpha", "demo", "gamma"]
    page = bed.post("experiments/search", max_results=2, order_by=["name ASC"])
    rest = bed.get("experiments/search", max_results=2, order_by="name ASC", page_token=page["next_page_token"])
    assert [one["name"] for one in page["experiments"] + rest["experiments"]] == ["alpha", "beta", "demo", "gamma"]
    for wrong in (
        {"filter": "nonsense"},
        {"filter": "size = 1"},
        {"max_results": 0},
        {"page_token": "x"},
        {"view_type": "X"},
    ):
        assert bed.refused("POST", "experiments/search", wrong) == MISSING


# --- runs ------------------------------------------------------------------------------------------------------------


def test_a_run_is_made_updated_and_ended_by_its_client(bed: Bed) -> None:
    run = bed.post(
        "runs/create", experiment_id="0", user_id="somebody", run_name="first", start_time="1700000000000",
        tags=[{"key": "kind", "value": "cnn"}, {"key": "mlflow.source.name", "value": "a.py"}],
    )["run"]  # fmt: skip
    info = run["info"]
    ident = info["run_id"]
    assert (info["run_name"], info["status"], info["start_time"]) == ("first", "RUNNING", 1_700_000_000_000)
    assert (info["lifecycle_stage"], info["run_uuid"]) == ("active", ident)
    assert "end_time" not in info
    assert info["artifact_uri"] == f"mlflow-artifacts:/{info['experiment_id']}/{ident}/artifacts"
    tags = {one["key"]: one["value"] for one in run["data"]["tags"]}
    assert tags == {
        "kind": "cnn",
        "mlflow.source.name": "a.py",
        "mlflow.runName": "first",
        "mlflow.user": tags["mlflow.user"],
    }
    ended = bed.post("runs/update", run_id=ident, status="FINISHED", end_time=1_700_000_005_000, run_name="renamed")
    assert (ended["run_info"]["status"], ended["run_info"]["end_time"]) == ("FINISHED", 1_700_000_005_000)
    assert ended["run_info"]["run_name"] == "renamed"
    ours = bed.json("GET", f"/api/v1/runs/{ident}")["run"]
    assert (ours["state"], ours["cause"], ours["name"]) == ("finished", "done", "renamed")
    for status, state in ((4, "failed"), ("KILLED", "stopped")):
        other = bed.run()
        bed.post("runs/update", run_uuid=other, status=status)
        assert bed.json("GET", f"/api/v1/runs/{other}")["run"]["state"] == state
    kinds = [one["kind"] for one in bed.json("GET", f"/api/v1/runs/{ident}/events")]
    assert {"run.began", "run.tagged", "run.changed", "run.finished"} <= set(kinds)
    assert bed.refused("POST", "runs/update", {"run_id": ident, "status": "DONE"}) == MISSING
    assert bed.refused("GET", "runs/get", {"run_id": "f" * 32}) == UNKNOWN
    assert bed.refused("GET", "runs/get") == MISSING
    assert bed.refused("POST", "runs/create", {"experiment_id": "prj_none"}) == UNKNOWN


def test_a_run_that_ended_goes_on_for_mlflow_and_stays_ended_for_us(bed: Bed) -> None:
    ident = bed.run()
    bed.post("runs/update", run_id=ident, status="FINISHED")
    assert bed.post("runs/update", run_id=ident, status="RUNNING")["run_info"]["status"] == "RUNNING"
    bed.post("runs/log-metric", run_id=ident, key="late", value=1, timestamp=1)
    assert bed.json("GET", f"/api/v1/runs/{ident}")["run"]["state"] == "finished"
    assert bed.post("runs/update", run_id=ident, status="FAILED")["run_info"]["status"] == "FAILED"
    assert bed.json("GET", f"/api/v1/runs/{ident}")["run"]["state"] == "finished"
    failed = bed.run()
    bed.post("runs/update", run_id=failed, status="FAILED")
    bed.post("runs/update", run_id=failed, status="RUNNING")
    assert bed.json("GET", f"/api/v1/runs/{failed}")["run"]["state"] == "running"


def test_a_run_is_hidden_and_brought_back(bed: Bed) -> None:
    ident = bed.run()
    bed.post("runs/delete", run_id=ident)
    assert bed.get("runs/get", run_id=ident)["run"]["info"]["lifecycle_stage"] == "deleted"
    assert bed.json("GET", f"/api/v1/runs/{ident}")["run"]["tags"] == ["deleted"]
    assert bed.refused("POST", "runs/log-metric", {"run_id": ident, "key": "a", "value": 1, "timestamp": 1}) == MISSING
    assert bed.refused("POST", "runs/set-tag", {"run_id": ident, "key": "a", "value": "b"}) == MISSING
    assert bed.post("runs/search", experiment_ids=["0"])["runs"] == []
    assert len(bed.post("runs/search", experiment_ids=["0"], run_view_type="DELETED_ONLY")["runs"]) == 1
    assert len(bed.post("runs/search", experiment_ids=["0"], run_view_type="ALL")["runs"]) == 1
    bed.post("runs/restore", run_id=ident)
    assert bed.refused("POST", "runs/restore", {"run_id": ident}) == MISSING
    assert bed.json("GET", f"/api/v1/runs/{ident}")["run"].get("tags", []) == []


# --- points ----------------------------------------------------------------------------------------------------------


def history(bed: Bed, ident: str, key: str, **more: Any) -> list[tuple[Any, ...]]:
    found = bed.get("metrics/get-history", run_id=ident, metric_key=key, **more)["metrics"]
    return [(one["timestamp"], one["step"], one["value"]) for one in found]


def latest(bed: Bed, ident: str) -> dict[str, Any]:
    return {one["key"]: one["value"] for one in bed.get("runs/get", run_id=ident)["run"]["data"].get("metrics", [])}


def test_points_are_kept_exactly_and_answered_as_mlflow_does(bed: Bed) -> None:
    ident = bed.run()
    for value in (5, 5, "5.0", "NaN", "Infinity", "-Infinity", 1e-320, -0.5):
        bed.post("runs/log-metric", run_id=ident, key="m", value=value, timestamp="7", step="3")
    assert history(bed, ident, "m") == [
        (7, 3, -LARGEST), (7, 3, -0.5), (7, 3, "NaN"), (7, 3, 1e-320), (7, 3, 5.0), (7, 3, LARGEST),
    ]  # fmt: skip
    assert latest(bed, ident) == {"m": LARGEST}
    ours = bed.json("GET", f"/api/v1/runs/{ident}/history?key=m")["points"]
    assert [point[2] for point in ours] == [5, 5, 5, "NaN", "Infinity", "-Infinity", 1e-320, -0.5]


def test_the_latest_is_of_the_greatest_step_then_time_then_value(bed: Bed) -> None:
    ident = bed.run()
    points = [(4.0, 1000, 7), (5.0, 1000, 7), (3.0, 1000, 7), (9.0, 2000, 1)]
    metrics = [{"key": "m", "value": value, "timestamp": ts, "step": step} for value, ts, step in points]
    bed.post("runs/log-batch", run_id=ident, metrics=metrics)
    assert latest(bed, ident) == {"m": 5.0}
    bed.post("runs/log-batch", run_id=ident, metrics=[{"key": "m", "value": 1.0, "timestamp": 999, "step": 7}])
    assert latest(bed, ident) == {"m": 5.0}
    bed.post("runs/log-batch", run_id=ident, metrics=[{"key": "m", "value": 1.0, "timestamp": 1001, "step": 7}])
    assert latest(bed, ident) == {"m": 1.0}
    bed.post("runs/log-metric", run_id=ident, key="m", value="NaN", timestamp=0, step=8)
    assert latest(bed, ident) == {"m": "NaN"}
    bed.post("runs/log-metric", run_id=ident, key="m", value=-3, timestamp=0, step=9)
    assert latest(bed, ident) == {"m": -3.0}
    searched = bed.post("runs/search", experiment_ids=["0"], filter="metrics.m = -3")["runs"]
    assert [one["info"]["run_id"] for one in searched] == [ident]


def test_histories_come_in_pages_and_several_at_once(bed: Bed) -> None:
    runs = [bed.run(), bed.run()]
    for ident in runs:
        metrics = [{"key": "m", "value": step, "timestamp": 1000 + step, "step": step} for step in range(100)]
        bed.post("runs/log-batch", run_id=ident, metrics=metrics)
    found: list[Any] = []
    token = ""
    while True:
        page = bed.get("metrics/get-history", run_id=runs[0], metric_key="m", max_results=30, page_token=token)
        found += [one["step"] for one in page["metrics"]]
        token = page.get("next_page_token", "")
        if not token:
            break
    assert found == list(range(100))
    assert history(bed, runs[0], "nothing") == []
    sampled = bed.get("metrics/get-history-bulk-interval", run_ids=runs, metric_key="m", max_results=10)["metrics"]
    assert {one["run_id"] for one in sampled} == set(runs)
    assert [one["step"] for one in sampled if one["run_id"] == runs[0]] == [*range(0, 100, 10), 99]
    part = bed.get(
        "metrics/get-history-bulk-interval", run_ids=runs[0], metric_key="m", start_step=10, end_step=12
    )["metrics"]  # fmt: skip
    assert [one["step"] for one in part] == [10, 11, 12]
    both = bed.get("metrics/get-history-bulk", run_id=runs, metric_key="m")["metrics"]
    assert len(both) == 200
    assert bed.refused("GET", "metrics/get-history", {"run_id": runs[0]}) == MISSING
    assert bed.refused("GET", "metrics/get-history", {"run_id": "no", "metric_key": "m"}) == UNKNOWN
    assert bed.refused("GET", "metrics/get-history-bulk-interval", {"metric_key": "m"}) == MISSING
    wrong = {"metric_key": "m", "run_ids": runs, "start_step": 5}
    assert bed.refused("GET", "metrics/get-history-bulk-interval", wrong) == MISSING


def test_a_wrong_point_refuses_its_whole_request(bed: Bed) -> None:
    ident = bed.run()
    good = {"key": "a", "value": 1, "timestamp": 1}
    for wrong in (
        {"value": 1, "timestamp": 1}, {"key": "a", "timestamp": 1}, {"key": "a", "value": 1},
        {"key": "a", "value": "much", "timestamp": 1}, {"key": "a", "value": None, "timestamp": 1},
        {"key": "a", "value": True, "timestamp": 1}, {"key": "a\nb", "value": 1, "timestamp": 1},
        {"key": "x" * 501, "value": 1, "timestamp": 1}, {"key": "a", "value": 1, "timestamp": 2**62},
        {"key": "a", "value": 1, "timestamp": 1, "step": 2**63}, {"key": "a", "value": 10**400, "timestamp": 1},
        {"key": "\ud800", "value": 1, "timestamp": 1}, {"key": ["a", "b"], "value": 1, "timestamp": 1},
    ):  # fmt: skip
        assert bed.refused("POST", "runs/log-metric", {"run_id": ident, **wrong}) == MISSING, wrong
        assert bed.refused("POST", "runs/log-batch", {"run_id": ident, "metrics": [good, wrong]}) == MISSING
    assert bed.refused("POST", "runs/log-batch", {"run_id": ident, "metrics": "a"}) == MISSING
    assert bed.refused("POST", "runs/log-batch", {"run_id": ident, "metrics": [1]}) == MISSING
    assert latest(bed, ident) == {}


# --- params, tags, links ---------------------------------------------------------------------------------------------


def params(bed: Bed, ident: str) -> dict[str, str]:
    return {one["key"]: one["value"] for one in bed.get("runs/get", run_id=ident)["run"]["data"]["params"]}


def test_params_are_texts_here_and_numbers_where_they_spell_one(bed: Bed) -> None:
    ident = bed.run()
    given = {
        "lr": "0.001", "n": "12", "padded": "007", "e": "1e-05", "E": "1E-5", "t": "True", "x": "", "long": "y" * 6000,
        "big": str(10**30), "inf": "inf", "名": "值", "json": '{"a": 1}', "q": '"', "zero": "-0.0",
    }  # fmt: skip
    bed.post("runs/log-batch", run_id=ident, params=[{"key": key, "value": value} for key, value in given.items()])
    assert params(bed, ident) == given
    assert bed.json("GET", "/api/v1/runs", params={"filter": "params.lr < 0.01 and params.n = 12"})["total"] == 1
    bed.post("runs/log-parameter", run_id=ident, key="lr", value="0.001")
    assert bed.refused("POST", "runs/log-parameter", {"run_id": ident, "key": "lr", "value": "0.0010"}) == MISSING
    both = {"run_id": ident, "params": [{"key": "new", "value": "1"}, {"key": "n", "value": "13"}]}
    assert bed.refused("POST", "runs/log-batch", both) == MISSING
    twice = {"run_id": ident, "params": [{"key": "new", "value": "1"}, {"key": "new", "value": "2"}]}
    assert bed.refused("POST", "runs/log-batch", twice) == MISSING
    assert params(bed, ident) == given  # nothing of what was refused


def test_tags_change_and_stand_as_labels_on_our_pages(bed: Bed) -> None:
    ident = bed.run()
    bed.post("runs/set-tag", run_id=ident, key="kind", value="cnn")
    bed.post("runs/set-tag", run_id=ident, key="kind", value="mlp")
    bed.post(
        "runs/log-batch", run_id=ident, tags=[{"key": "a", "value": ""}, {"key": "mlflow.note.content", "value": "n"}]
    )
    ours = bed.json("GET", f"/api/v1/runs/{ident}")["run"]
    assert (set(ours["tags"]), ours["description"]) == ({"kind=mlp", "a"}, "n")
    bed.post("runs/delete-tag", run_id=ident, key="kind")
    assert bed.json("GET", f"/api/v1/runs/{ident}")["run"]["tags"] == ["a"]
    assert bed.refused("POST", "runs/delete-tag", {"run_id": ident, "key": "kind"}) == UNKNOWN
    bed.post("runs/delete-tag", run_id=ident, key="mlflow.note.content")
    shown = {one["key"]: one["value"] for one in bed.get("runs/get", run_id=ident)["run"]["data"]["tags"]}
    assert "mlflow.note.content" not in shown
    assert shown["a"] == ""
    too_long = {"run_id": ident, "key": "k", "value": "v" * 70_000}
    assert bed.refused("POST", "runs/set-tag", too_long) == MISSING


def test_inputs_and_outputs_stand_with_the_run(bed: Bed) -> None:
    ident = bed.run()
    data = {"name": "corpus", "digest": "abc", "source_type": "local", "source": "{}", "profile": "{}"}
    context = [{"key": "mlflow.data.context", "value": "training"}]
    bed.post(
        "runs/log-inputs", run_id=ident, datasets=[{"dataset": data, "tags": context}], models=[{"model_id": "m-1"}]
    )
    bed.post("runs/log-inputs", run_id=ident, datasets=[{"dataset": data, "tags": context}])
    bed.post("runs/outputs", run_id=ident, models=[{"model_id": "m-2", "step": "5"}])
    bed.post("runs/log-model", run_id=ident, model_json='{"artifact_path": "model"}')
    run = bed.get("runs/get", run_id=ident)["run"]
    assert run["inputs"] == {
        "dataset_inputs": [{"tags": context, "dataset": data}],
        "model_inputs": [{"model_id": "m-1"}],
    }
    assert run["outputs"] == {"model_outputs": [{"model_id": "m-2", "step": 5}]}
    shown = {one["key"]: one["value"] for one in run["data"]["tags"]}
    assert json.loads(shown["mlflow.log-model.history"]) == [{"artifact_path": "model"}]
    assert bed.refused("POST", "runs/log-inputs", {"run_id": ident, "datasets": [{"tags": []}]}) == MISSING
    assert bed.refused("POST", "runs/outputs", {"run_id": ident, "models": [{}]}) == MISSING
    assert bed.refused("POST", "runs/log-model", {"run_id": ident, "model_json": "no"}) == MISSING


# --- search ----------------------------------------------------------------------------------------------------------


def test_runs_are_searched_by_mlflows_language(bed: Bed) -> None:
    made: dict[str, str] = {}
    for at, name in enumerate(("a", "b", "c")):
        made[name] = bed.run(run_name=name, start_time=1000 * (at + 1), tags=[{"key": "it's", "value": name.upper()}])
        metrics = [{"key": "loss", "value": "NaN" if name == "c" else at, "timestamp": 1, "step": 1}]
        texts = [{"key": "opt", "value": "adam" if at else "sgd"}, {"key": "my param", "value": str(at * 10)}]
        bed.post("runs/log-batch", run_id=made[name], metrics=metrics, params=texts)
    bed.post("runs/update", run_id=made["b"], status="FINISHED")

    def names(text: str = "", *order: str) -> list[str]:
        found = bed.post("runs/search", experiment_ids=["0"], filter=text, order_by=list(order))["runs"]
        return [one["info"]["run_name"] for one in found]

    assert names() == ["c", "b", "a"]
    assert names("metrics.loss >= 0 and metrics.`loss` < 1") == ["a"]
    assert names("metric.loss != 5", "metrics.loss ASC") == ["a", "b", "c"]  # NaN is not 5, and comes last
    assert names("", "metrics.loss DESC") == ["b", "a", "c"]
    assert names("", "params.`my param` ASC") == ["a", "b", "c"]
    assert names("params.opt = 'adam'", "attributes.start_time ASC") == ["b", "c"]
    assert names("params.opt != 'adam'") == ["a"]
    assert names('params."my param" = "10"') == ["b"]
    assert names("params.`my param` LIKE '2%'") == ["c"]
    assert names("params.opt ILIKE 'AD%' AND attributes.status = 'RUNNING'") == ["c"]
    assert names("params.opt LIKE 'AD%'") == []
    assert names("tags.`it's` = 'A' ") == ["a"]
    assert names("tags.`it's` IS NULL") == []
    assert names("tags.nothing IS NULL", "start_time ASC") == ["a", "b", "c"]
    assert names("tags.`it's` IN ('A', 'C')") == ["c", "a"]
    assert names(f"run_id NOT IN ('{made['a']}', '{made['b']}')") == ["c"]
    assert names("attributes.start_time > 1500 and attributes.end_time > 0") == ["b"]
    assert (
        names("run_name = 'a'") == names("attributes.`Run name` = 'a'") == names("tags.mlflow.runName = 'a'") == ["a"]
    )
    assert names("dataset.name = 'x'") == []
    assert bed.post("runs/search", experiment_ids=["nope"])["runs"] == []
    page = bed.post("runs/search", experiment_ids=["0"], max_results=2)
    rest = bed.post("runs/search", experiment_ids=["0"], max_results=2, page_token=page["next_page_token"])
    assert [one["info"]["run_name"] for one in page["runs"] + rest["runs"]] == ["c", "b", "a"]
    assert "next_page_token" not in rest
    for wrong in (
        "nonsense", "metrics.loss <", "metrics.loss < 'x'", "params.a = 1", "foo.bar = 1", "metrics.a = 1 OR metrics.b = 2",
        "metrics.loss LIKE 'a'", "attributes.colour = 'red'", "params.a IN 'b'", "params.a = 'b", "dataset.colour = 'a'",
    ):  # fmt: skip
        assert bed.refused("POST", "runs/search", {"experiment_ids": ["0"], "filter": wrong}) == MISSING, wrong
    for wrong in ("foo.bar", "metrics.a UP", ""):
        assert bed.refused("POST", "runs/search", {"experiment_ids": ["0"], "order_by": [wrong]}) == MISSING, wrong
    assert bed.refused("POST", "runs/search", {"experiment_ids": ["0"], "max_results": 50_001}) == MISSING


# --- files -----------------------------------------------------------------------------------------------------------


def test_files_go_in_and_out_by_the_proxy(bed: Bed) -> None:
    ident = bed.run()
    root = bed.get("runs/get", run_id=ident)["run"]["info"]["artifact_uri"].removeprefix("mlflow-artifacts:/")
    files = {"a.txt": b"one", "sub/深/b c.bin": bytes(range(256)) * 9000, "sub/empty": b"", "sub2": b"x"}
    for path, data in files.items():
        assert bed.upload(f"{root}/{path}", data).status_code == 200
    assert bed.upload(f"{root}/a.txt", b"two").status_code == 200  # again: the newer one counts
    for path, data in {**files, "a.txt": b"two"}.items():
        answer = bed.ask("GET", f"{FILES}/{root}/{path}")
        assert (answer.status_code, answer.content) == (200, data)
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["content-security-policy"].startswith("sandbox")
    listed = bed.get("artifacts/list", run_id=ident)
    assert listed["root_uri"] == f"mlflow-artifacts:/{root}"
    assert listed["files"] == [
        {"path": "a.txt", "is_dir": False, "file_size": 3}, {"path": "sub", "is_dir": True},
        {"path": "sub2", "is_dir": False, "file_size": 1},
    ]  # fmt: skip
    assert [one["path"] for one in bed.get("artifacts/list", run_id=ident, path="sub")["files"]] == [
        "sub/empty",
        "sub/深",
    ]
    assert bed.get("artifacts/list", run_id=ident, path="a.txt")["files"] == []
    assert [one["path"] for one in bed.json("GET", FILES, {"path": f"{root}/sub"})["files"]] == ["empty", "深"]
    assert {one["path"] for one in bed.json("GET", f"/api/v1/runs/{ident}/artifacts")} == set(files)
    assert bed.ask("DELETE", f"{FILES}/{root}/sub").status_code == 200
    assert {one["path"] for one in bed.json("GET", f"/api/v1/runs/{ident}/artifacts")} == {"a.txt", "sub2"}
    assert bed.refused("DELETE", f"{FILES}/{root}/sub") == UNKNOWN
    assert bed.refused("GET", f"{FILES}/{root}/sub/empty") == UNKNOWN
    assert bed.refused("PUT", f"{FILES}/somewhere/else") == UNKNOWN
    assert bed.refused("PUT", f"{FILES}/p/{'f' * 32}/artifacts/x") == UNKNOWN
    for wrong in (f"{root}/a/%2e%2e/b", f"{root}/a%0Ab", f"{root}/%2e/b", f"{root}/a%5Cb"):
        assert bed.refused("PUT", f"{FILES}/{wrong}") in (MISSING, UNKNOWN), wrong
    assert bed.refused("GET", FILES, {"path": "../etc"}) == MISSING
    assert {one["path"] for one in bed.json("GET", f"/api/v1/runs/{ident}/artifacts")} == {"a.txt", "sub2"}
    kinds = [one["kind"] for one in bed.json("GET", f"/api/v1/runs/{ident}/events")]
    assert kinds.count("artifact.uploaded") == 5
    assert "artifact.deleted" in kinds


# --- models ----------------------------------------------------------------------------------------------------------


def logged(bed: Bed, run: str = "", **fields: Any) -> str:
    made = bed.post("logged-models", experiment_id="0", source_run_id=run, **fields)["model"]["info"]
    root = made["artifact_uri"].removeprefix("mlflow-artifacts:/")
    assert bed.upload(f"{root}/MLmodel", b"flavors: {}").status_code == 200
    assert bed.upload(f"{root}/data/weights", b"w" * 100).status_code == 200
    return made["model_id"]


def test_a_logged_model_lives_from_pending_to_deleted(bed: Bed) -> None:
    run = bed.run()
    given = [{"key": f"p{at}", "value": str(at)} for at in range(3)]
    ident = logged(bed, run, name="net", model_type="cnn", params=given, tags=[{"key": "t", "value": "v"}])
    found = bed.json("GET", f"logged-models/{ident}")["model"]
    info = found["info"]
    assert (info["name"], info["model_type"], info["status"]) == ("net", "cnn", "LOGGED_MODEL_PENDING")
    assert (info["source_run_id"], info["tags"]) == (run, [{"key": "t", "value": "v"}])
    assert found["data"]["params"] == given
    assert (
        bed.json("PATCH", f"logged-models/{ident}", {"status": "LOGGED_MODEL_READY"})["model"]["info"]["status"]
        == "LOGGED_MODEL_READY"
    )
    assert bed.json("POST", f"logged-models/{ident}/params", {"params": [{"key": "q", "value": "1"}]}) == {}
    wrong = {"params": [{"key": "q", "value": "2"}]}
    assert bed.refused("POST", f"logged-models/{ident}/params", wrong) == MISSING
    bed.json("PATCH", f"logged-models/{ident}/tags", {"tags": [{"key": "x", "value": "y"}]})
    bed.json("DELETE", f"logged-models/{ident}/tags/x")
    assert bed.refused("DELETE", f"logged-models/{ident}/tags/x") == UNKNOWN
    listed = bed.json("GET", f"logged-models/{ident}/artifacts/directories")["files"]
    assert listed == [{"path": "MLmodel", "is_dir": False, "file_size": 11}, {"path": "data", "is_dir": True}]
    inner = bed.json("GET", f"logged-models/{ident}/artifacts/directories", {"artifact_directory_path": "data"})[
        "files"
    ]
    assert [one["path"] for one in inner] == ["data/weights"]
    assert bed.refused("PATCH", f"logged-models/{ident}", {"status": "LOST"}) == MISSING
    assert bed.json("DELETE", f"logged-models/{ident}") == {}
    assert bed.refused("GET", f"logged-models/{ident}") == UNKNOWN
    assert bed.json("GET", f"logged-models/{ident}?allow_deleted=true")["model"]["info"]["model_id"] == ident
    assert bed.refused("GET", "logged-models/m-none") == UNKNOWN
    assert bed.refused("POST", "logged-models", {"name": "x"}) == MISSING
    assert bed.refused("POST", "logged-models", {"experiment_id": "0", "name": "a/b"}) == MISSING


def test_logged_models_are_searched_by_metrics_on_data(bed: Bed) -> None:
    run = bed.run()
    names = {logged(bed, run, name=name): name for name in ("one", "two")}
    for at, ident in enumerate(names):
        bed.post(
            "runs/log-metric", run_id=run, key="acc", value=at / 2, timestamp=1, step=1, model_id=ident,
            dataset_name="test", dataset_digest="d",
        )  # fmt: skip
    experiment = bed.get("runs/get", run_id=run)["run"]["info"]["experiment_id"]

    def found(text: str = "", **more: Any) -> list[str]:
        reply = bed.post("logged-models/search", experiment_ids=[experiment], filter=text, **more)
        return [one["info"]["name"] for one in reply["models"]]

    assert found(order_by=[{"field_name": "metrics.acc", "ascending": True}]) == ["one", "two"]
    assert found(order_by=[{"field_name": "metrics.acc", "ascending": False, "dataset_name": "test"}]) == ["two", "one"]
    assert found("metrics.acc > 0.1") == ["two"]
    assert found("metrics.acc > 0.1", datasets=[{"dataset_name": "other"}]) == []
    assert found("metrics.acc > 0.1", datasets=[{"dataset_name": "test", "dataset_digest": "d"}]) == ["two"]
    assert found("name = 'one' and status = 'PENDING'") == ["one"]
    page = bed.post("logged-models/search", experiment_ids=[experiment], max_results=1)
    assert len(page["models"]) == 1
    assert page["next_page_token"]
    measured = bed.json("GET", f"logged-models/{next(iter(names))}")["model"]["data"]["metrics"][0]
    assert (measured["dataset_name"], measured["run_id"], measured["value"]) == ("test", run, 0.0)
    assert bed.refused("POST", "logged-models/search", {"experiment_ids": [experiment], "filter": "a.b = 1"}) == MISSING
    wrong = {"run_id": run, "key": "acc", "value": 1, "timestamp": 1, "model_id": "m-none"}
    assert bed.refused("POST", "runs/log-metric", wrong) == UNKNOWN


def version(bed: Bed, name: str, number: int | str = 1) -> Any:
    return bed.get("model-versions/get", name=name, version=number)["model_version"]


def test_a_version_is_a_version_of_our_registry_and_its_files_never_change(bed: Bed) -> None:
    run = bed.run()
    ident = logged(bed, run)
    bed.post("registered-models/create", name="my net", description="d", tags=[{"key": "k", "value": "v"}])
    made = bed.post("model-versions/create", name="my net", source=f"models:/{ident}", run_id=run, description="first")
    assert (made["model_version"]["version"], made["model_version"]["status"]) == ("1", "READY")
    assert made["model_version"]["model_id"] == ident
    again = bed.post(
        "model-versions/create", name="my net", source=f"models:/{ident}", tags=[{"key": "a", "value": "b"}]
    )
    assert (again["model_version"]["version"], again["model_version"]["run_id"]) == ("2", run)
    ours = bed.json("GET", "/api/v1/models/my-net")
    assert [one["version"] for one in ours["versions"]] == [2, 1]
    assert ours["versions"][0]["run_id"] == run
    root = bed.json("GET", f"logged-models/{ident}")["model"]["info"]["artifact_uri"].removeprefix("mlflow-artifacts:/")
    bed.upload(f"{root}/MLmodel", b"changed")
    place = bed.get("model-versions/get-download-uri", name="my net", version="1")["artifact_uri"]
    place = place.removeprefix("mlflow-artifacts:/")
    assert bed.ask("GET", f"{FILES}/{place}/MLmodel").content == b"flavors: {}"
    assert [one["path"] for one in bed.json("GET", FILES, {"path": place})["files"]] == ["MLmodel", "data"]
    assert bed.refused("PUT", f"{FILES}/{place}/MLmodel", content=b"x") == MISSING
    assert bed.refused("DELETE", f"{FILES}/{place}/MLmodel") == MISSING
    copied = bed.post("registered-models/create", name="copy") and bed.post(
        "model-versions/create", name="copy", source="models:/my net/1"
    )
    assert copied["model_version"]["run_id"] == run
    bed.upload(f"x/{run}/artifacts/m/MLmodel", b"m")
    by_path = bed.post("model-versions/create", name="copy", source=f"runs:/{run}/m")["model_version"]
    assert by_path["version"] == "2"
    for source, refusal in (
        ("s3://elsewhere/x", MISSING), ("/a/path", MISSING), (f"runs:/{run}/nothing", UNKNOWN),
        ("models:/m-none", UNKNOWN), ("runs:/none/m", UNKNOWN), (f"runs:/{run}/../m", MISSING),
    ):  # fmt: skip
        assert bed.refused("POST", "model-versions/create", {"name": "copy", "source": source}) == refusal, source
    assert bed.refused("POST", "model-versions/create", {"name": "none", "source": f"runs:/{run}/m"}) == UNKNOWN
    kinds = [one["kind"] for one in bed.json("GET", f"/api/v1/runs/{run}/events")]
    assert kinds.count("run.registered") == 4


def test_registered_models_their_versions_aliases_tags_and_stages(bed: Bed) -> None:
    run = bed.run()
    ident = logged(bed, run)
    bed.post("registered-models/create", name="net")
    for _ in range(3):
        bed.post("model-versions/create", name="net", source=f"models:/{ident}")
    assert bed.refused("POST", "registered-models/create", {"name": "net"}) == EXISTS
    assert bed.refused("POST", "registered-models/create", {"name": "a/b"}) == MISSING
    assert (
        bed.json("PATCH", "registered-models/update", {"name": "net", "description": "d"})["registered_model"][
            "description"
        ]
        == "d"
    )
    bed.post("registered-models/set-tag", name="net", key="task", value="vision")
    bed.post("model-versions/set-tag", name="net", version="1", key="ok", value="yes")
    assert version(bed, "net")["tags"] == [{"key": "ok", "value": "yes"}]
    assert (
        bed.json("PATCH", "model-versions/update", {"name": "net", "version": "1", "description": "x"})[
            "model_version"
        ]["description"]
        == "x"
    )
    bed.post("registered-models/alias", name="net", alias="best", version="2")
    bed.post("registered-models/alias", name="net", alias="best", version="1")
    assert bed.get("registered-models/alias", name="net", alias="best")["model_version"]["version"] == "1"
    assert bed.get("registered-models/get", name="net")["registered_model"]["aliases"] == [
        {"alias": "best", "version": "1"}
    ]
    assert version(bed, "net")["aliases"] == ["best"]
    assert bed.json("GET", "/api/v1/models/net")["aliases"] == {"best": 1}
    assert bed.refused("POST", "registered-models/alias", {"name": "net", "alias": "latest", "version": "1"}) == MISSING
    assert bed.refused("POST", "registered-models/alias", {"name": "net", "alias": "a", "version": "9"}) == UNKNOWN
    moved = bed.post("model-versions/transition-stage", name="net", version="1", stage="production")["model_version"]
    assert moved["current_stage"] == "Production"
    bed.post(
        "model-versions/transition-stage", name="net", version="2", stage="Production", archive_existing_versions=True
    )
    assert version(bed, "net")["current_stage"] == "Archived"
    newest = bed.get("registered-models/get-latest-versions", name="net", stages=["Production", "None"])[
        "model_versions"
    ]
    assert sorted(one["version"] for one in newest) == ["2", "3"]
    assert (
        bed.post("registered-models/get-latest-versions", name="net", stages=["Archived"])["model_versions"][0][
            "version"
        ]
        == "1"
    )
    wrong = {"name": "net", "version": "1", "stage": "Somewhere"}
    assert bed.refused("POST", "model-versions/transition-stage", wrong) == MISSING

    def models(text: str = "", **more: Any) -> list[str]:
        return [one["name"] for one in bed.get("registered-models/search", filter=text, **more)["registered_models"]]

    def versions(text: str = "", **more: Any) -> list[str]:
        return [one["version"] for one in bed.get("model-versions/search", filter=text, **more)["model_versions"]]

    bed.post("registered-models/create", name="other")
    assert models(order_by="name DESC") == ["other", "net"]
    assert models("name LIKE 'ne%'") == models("tags.task = 'vision'") == ["net"]
    assert models("tags.`mlflow.prompt.is_prompt` != 'true'") == ["net", "other"]
    assert versions("name = 'net'", order_by="version_number ASC") == ["1", "2", "3"]
    assert versions(f"run_id = '{run}' and version_number > 1", order_by=["version_number DESC"]) == ["3", "2"]
    assert versions("tags.ok = 'yes'") == ["1"]
    page = bed.get("model-versions/search", max_results=2)
    assert len(page["model_versions"]) == 2
    assert page["next_page_token"]
    assert bed.refused("GET", "model-versions/search", {"filter": "colour = 'a'"}) == MISSING
    assert bed.refused("GET", "registered-models/search", {"filter": "colour = 'a'"}) == MISSING

    bed.json("DELETE", "registered-models/delete-tag", {"name": "net", "key": "task"})
    bed.json("DELETE", "model-versions/delete-tag", {"name": "net", "version": "1", "key": "ok"})
    bed.json("DELETE", "registered-models/alias", {"name": "net", "alias": "best"})
    assert bed.refused("GET", "registered-models/alias", {"name": "net", "alias": "best"}) == MISSING
    bed.json("DELETE", "model-versions/delete", {"name": "net", "version": "3"})
    assert bed.refused("GET", "model-versions/get", {"name": "net", "version": "3"}) == UNKNOWN
    assert bed.refused("POST", "registered-models/rename", {"name": "net", "new_name": "other"}) == EXISTS
    assert (
        bed.post("registered-models/rename", name="net", new_name="new name")["registered_model"]["name"] == "new name"
    )
    assert bed.refused("GET", "registered-models/get", {"name": "net"}) == UNKNOWN
    bed.json("DELETE", "registered-models/delete", {"name": "new name"})
    assert models() == ["other"]
    assert len(bed.json("GET", "/api/v1/models/net")["versions"]) == 3  # the registry keeps what runs were made from
    bed.post("registered-models/create", name="new name")
    assert versions("name = 'new name'") == []
    assert (
        bed.post("model-versions/create", name="new name", source=f"models:/{ident}")["model_version"]["version"] == "4"
    )


# --- walls -----------------------------------------------------------------------------------------------------------


def test_a_stranger_sees_and_changes_nothing_behind_a_wall(bed: Bed) -> None:
    run = bed.run()
    bed.post("runs/log-metric", run_id=run, key="m", value=1, timestamp=1)
    ident = logged(bed, run)
    bed.post("registered-models/create", name="net")
    bed.post("model-versions/create", name="net", source=f"models:/{ident}")
    place = bed.get("model-versions/get-download-uri", name="net", version="1")["artifact_uri"]
    place = place.removeprefix("mlflow-artifacts:/")
    experiment = bed.get("runs/get", run_id=run)["run"]["info"]["experiment_id"]
    bed.app.db.write(lambda tx: access.create_space(tx, SYSTEM, name="theirs", accepted=True), actor=SYSTEM.actor)
    stranger = bed.token("stranger", theirs="maintainer")
    for method, path, fields in (
        ("GET", "experiments/get", {"experiment_id": experiment}),
        ("GET", "runs/get", {"run_id": run}),
        ("GET", "metrics/get-history", {"run_id": run, "metric_key": "m"}),
        ("GET", "metrics/get-history-bulk", {"run_id": run, "metric_key": "m"}),
        ("GET", "artifacts/list", {"run_id": run}),
        ("GET", f"logged-models/{ident}", {}),
        ("GET", "registered-models/get", {"name": "net"}),
        ("GET", "model-versions/get", {"name": "net", "version": "1"}),
        ("GET", f"{FILES}/x/models/{ident}/artifacts/MLmodel", {}),
        ("GET", f"{FILES}/{place}/MLmodel", {}),
        ("POST", "runs/create", {"experiment_id": experiment}),
        ("POST", "runs/log-metric", {"run_id": run, "key": "m", "value": 1, "timestamp": 1}),
        ("POST", "runs/set-tag", {"run_id": run, "key": "m", "value": "1"}),
        ("POST", "runs/delete", {"run_id": run}),
        ("POST", "experiments/delete", {"experiment_id": experiment}),
        ("PUT", f"{FILES}/x/{run}/artifacts/a", {}),
        ("PATCH", f"logged-models/{ident}", {"status": "LOGGED_MODEL_READY"}),
        ("DELETE", "registered-models/delete", {"name": "net"}),
        ("POST", "registered-models/alias", {"name": "net", "alias": "a", "version": "1"}),
    ):
        assert bed.refused(method, path, fields, token=stranger) == UNKNOWN, path
    assert bed.json("POST", "runs/search", {"experiment_ids": [experiment]}, token=stranger)["runs"] == []
    assert bed.json("POST", "experiments/search", {}, token=stranger)["experiments"] == []
    assert bed.json("GET", "registered-models/search", token=stranger)["registered_models"] == []
    assert bed.json("GET", "model-versions/search", token=stranger)["model_versions"] == []
    assert bed.json("POST", "logged-models/search", {"experiment_ids": [experiment]}, token=stranger)["models"] == []
    theirs = bed.json("POST", "runs/create", {"experiment_id": "0"}, token=stranger)["run"]["info"]["run_id"]
    assert bed.json("GET", f"/api/v1/runs/{theirs}")["run"]["space"] == "theirs"


def test_a_viewer_reads_and_a_member_writes_only_own_runs(bed: Bed) -> None:
    run = bed.run()
    viewer, member = bed.token("viewer", default="viewer"), bed.token("member", default="member")
    denied = (403, "PERMISSION_DENIED")
    point = {"run_id": run, "key": "m", "value": 1, "timestamp": 1}
    assert bed.ask("GET", "runs/get", {"run_id": run}, token=viewer).status_code == 200
    assert bed.refused("POST", "runs/create", {}, token=viewer) == denied
    assert bed.refused("POST", "runs/log-metric", point, token=viewer) == denied
    assert bed.refused("POST", "runs/log-metric", point, token=member) == denied
    mine = bed.json("POST", "runs/create", {}, token=member)["run"]["info"]["run_id"]
    assert bed.json("POST", "runs/log-metric", {**point, "run_id": mine}, token=member) == {}
    assert bed.refused("POST", "experiments/delete", {"experiment_id": "0"}, token=member) == denied
    bed.json("POST", "registered-models/create", {"name": "net"}, token=member)
    assert bed.refused("DELETE", "registered-models/delete", {"name": "net"}, token=member) == denied
