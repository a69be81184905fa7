"""Deny by default: every route of the built application declares a permission and really asks for it."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from litestar import get, post

from trackbed import access
from trackbed.base.errors import Internal
from trackbed.domain.scope import SYSTEM, Permission
from trackbed.server import main
from trackbed.server.app import App, Settings
from trackbed.server.auth import declared
from trackbed.server.installation import first_admin
from trackbed.server.mlflow.errors import is_ours as is_mlflow
from trackbed.tracking import runs

# Reviewed: what anybody may call, without a token. A new line here is a decision.
PUBLIC = {
    ("GET", "/healthz"),  # says only that the server is up
    ("GET", "/health"),  # the same to MLflow's clients
    ("POST", "/api/v1/login"),  # redeems a secret
    ("POST", "/api/v1/hooks/{trigger:str}"),  # a forge: heard only with the trigger's signature
    ("GET", "/"),  # the page holds no data
    ("GET", "/{path:path}"),
}

# Reviewed: routes that a supervisor may call although persons may too. What they show is bounded by the attempt's space.
# Written routes among them judge the attempt's own run further in.
ATTEMPTS_TOO = {
    ("GET", "/api/v1/runs"),
    ("GET", "/api/v1/runs/{run:str}"),
    ("GET", "/api/v1/runs/{run:str}/history"),
    ("GET", "/api/v1/runs/{run:str}/keys"),
    ("GET", "/api/v1/runs/{run:str}/logs"),
    ("GET", "/api/v1/runs/{run:str}/artifacts"),
    ("GET", "/api/v1/runs/{run:str}/artifacts/content"),
    ("POST", "/api/v1/runs/{run:str}/frames"),
    ("POST", "/api/v1/series"),
    ("POST", "/api/v1/blobs/has"),
    ("POST", "/api/v1/blobs"),
    ("PUT", "/api/v1/blobs/{file_digest:str}"),
    ("GET", "/api/v1/trees/{digest:str}"),
    ("GET", "/api/v1/trees/{digest:str}/listing"),
    ("PUT", "/api/v1/trees/{digest:str}"),
    ("GET", "/api/v1/trees/{digest:str}/content"),
    ("GET", "/api/v1/datasets/{name:str}/resolve"),
}

# The same for MLflow's routes, by what stands behind their prefixes: inside a job the relay forwards them. Reads of the
# attempt's space; writes of its own run, its child runs and the models that these made; and registration in its space.
MLFLOW_READS_BY_JOBS = {
    *{("GET", f"experiments/{what}") for what in ("get", "get-by-name", "search")},
    ("POST", "experiments/search"),
    ("GET", "runs/get"),
    ("POST", "runs/search"),
    *{("GET", f"metrics/{what}") for what in ("get-history", "get-history-bulk", "get-history-bulk-interval")},
    ("GET", "artifacts/list"),
    ("POST", "logged-models/search"),
    ("GET", "logged-models/{model_id:str}"),
    ("GET", "logged-models/{model_id:str}/artifacts/directories"),
    *{("GET", f"registered-models/{what}") for what in ("get", "search", "alias", "get-latest-versions")},
    ("POST", "registered-models/get-latest-versions"),
    *{("GET", f"model-versions/{what}") for what in ("get", "search", "get-download-uri")},
    ("GET", "-artifacts/artifacts"),
    ("GET", "-artifacts/artifacts/{path:path}"),
}
MLFLOW_WRITES_BY_JOBS = {
    ("POST", "logged-models"),
    ("PATCH", "logged-models/{model_id:str}"),
    ("DELETE", "logged-models/{model_id:str}"),
    ("POST", "logged-models/{model_id:str}/params"),
    ("PATCH", "logged-models/{model_id:str}/tags"),
    ("DELETE", "logged-models/{model_id:str}/tags/{tag_key:str}"),
    ("PUT", "-artifacts/artifacts/{path:path}"),
    ("DELETE", "-artifacts/artifacts/{path:path}"),
    ("POST", "model-versions/create"),
    ("POST", "model-versions/set-tag"),
}
MLFLOW_REGISTERS = {("POST", "registered-models/create")}
_MLFLOW_ROOT = re.compile(r"/(ajax-)?api/2\.0/mlflow/?")

DIGEST = "b3:" + "0" * 64


def mlflow_tail(method: str, path: str) -> tuple[str, str]:
    return method, _MLFLOW_ROOT.sub("", path)


class House:
    def __init__(self, app: App) -> None:
        self.app = app
        self.board = main.build_app(app)
        self.walk = list(main.walk(self.board))
        self.loop = asyncio.new_event_loop()
        transport = httpx.ASGITransport(self.board)  # pyright: ignore[reportArgumentType]
        self.client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")
        self.admin = app.db.write(
            lambda tx: access.issue_token(tx, SYSTEM, person_id=first_admin(tx)), actor=SYSTEM.actor
        ).secret
        made = self.json("POST", "/api/v1/outside-runs", self.admin, {"project": "demo", "name": "theirs"})
        self.run = made["id"]
        self.project = app.db.read(lambda tx: runs.get(tx, self.run)).project_id
        self.attempt = self.json("GET", f"/api/v1/runs/{self.run}", self.admin)["attempts"][0]["id"]
        space = app.db.read(lambda tx: access.space_named(tx, SYSTEM)).id
        self.same_space = self.attempt_token("att_other1", "run_other1", space)
        self.other_space = self.attempt_token("att_other2", "run_other2", "spc_elsewhere")

    def attempt_token(self, attempt: str, run: str, space: str) -> str:
        return self.app.db.write(lambda tx: access.issue_attempt_token(tx, attempt, run, space), actor=SYSTEM.actor)

    def path(self, template: str) -> str:
        """Fill a path with things that exist and belong to somebody else."""
        values = {
            "run": self.run, "attempt": self.attempt, "digest": DIGEST, "file_digest": "0" * 64, "path": "link",
            "space": "default", "project": "demo", "token_id": "tok_x", "name": "root", "version": "1", "alias": "a",
        }  # fmt: skip
        return re.sub(r"\{(\w+):\w+\}", lambda hole: values.get(hole.group(1), self.attempt), template)

    @property
    def mlflow_body(self) -> dict[str, Any]:
        """Fields of any write of MLflow's, about what belongs to somebody else."""
        return {
            "run_id": self.run, "source_run_id": self.run, "experiment_id": "0", "name": "x", "key": "k", "value": "v",
            "version": "1", "source": f"runs:/{self.run}/model", "status": "LOGGED_MODEL_READY",
        }  # fmt: skip

    def request(self, method: str, path: str, token: str = "", body: Any = None) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        content = msgspec.json.encode(body) if body is not None else None

        return self.loop.run_until_complete(self.client.request(method, path, headers=headers, content=content))

    def json(self, method: str, path: str, token: str, body: Any = None) -> Any:
        answer = self.request(method, path, token, body)
        assert answer.is_success, answer.text
        return answer.json()


def least_body(handler: Any) -> Any:
    """The least body that has the form that the handler asks for: the refusal must not be about the form."""
    field = handler.parsed_fn_signature.parameters.get("data")
    return None if field is None else least(field.annotation)


def least(kind: Any) -> Any:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return {f.encode_name: least(f.type) for f in msgspec.structs.fields(kind) if f.required}
    return {int: 1, float: 1.0, str: "x", bool: False, bytes: ""}.get(kind, [] if "list" in str(kind) else {})


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    home: Path = tmp_path_factory.mktemp("home")
    app = main.open_app(Settings(home=home, loops=False, cards=1))
    made = House(app)
    yield made
    made.loop.run_until_complete(made.client.aclose())
    made.loop.close()
    app.db.close()


def test_every_route_declares_a_permission_static_and_streaming_ones_too(house: House) -> None:
    assert [(method, path) for path, method, handler in house.walk if declared(handler) is None] == []
    paths = {path for path, _, _ in house.walk}
    assert {"/", "/{path:path}", "/api/v1/stream", "/metrics", "/healthz", "/api/v1/openapi.json"} <= paths
    assert len(paths) > 30


def test_a_server_with_a_route_that_says_nothing_does_not_start(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    @get("/api/v1/forgotten")
    async def forgotten() -> str:
        return "open to all"

    there = main.route_handlers()
    monkeypatch.setattr(main, "route_handlers", lambda: [*there, forgotten])
    with pytest.raises(Internal) as refused:
        main.build_app(house.app)
    assert "/api/v1/forgotten" in refused.value.params["route"]


def test_a_permission_that_is_only_a_word_does_not_count(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    @post("/api/v1/typo", opt={"permission": "everybody"})
    async def typo() -> None:
        return None

    there = main.route_handlers()
    monkeypatch.setattr(main, "route_handlers", lambda: [*there, typo])
    with pytest.raises(Internal):
        main.build_app(house.app)


def test_the_public_routes_are_the_reviewed_ones(house: House) -> None:
    public = {(method, path) for path, method, handler in house.walk if declared(handler) is Permission.PUBLIC}
    assert public == PUBLIC


def test_the_routes_that_attempts_may_use_are_the_reviewed_ones(house: House) -> None:
    too = {
        (method, path)
        for path, method, handler in house.walk
        if handler.opt.get("attempt") and declared(handler) is not Permission.ATTEMPT
    }
    by_jobs = MLFLOW_READS_BY_JOBS | MLFLOW_WRITES_BY_JOBS | MLFLOW_REGISTERS
    mlflow = {mlflow_tail(*one) for one in too if is_mlflow(one[1])}
    assert {one for one in too if not is_mlflow(one[1])} - ATTEMPTS_TOO == set()
    assert mlflow == by_jobs
    only = {path for path, _, handler in house.walk if declared(handler) is Permission.ATTEMPT}
    assert all(path.startswith("/api/v1/attempts/") for path in only)


def test_every_route_that_is_not_public_refuses_a_request_without_a_token(house: House) -> None:
    wrong: list[str] = []
    for path, method, handler in house.walk:
        if declared(handler) is not Permission.PUBLIC:
            answer = house.request(method, house.path(path))
            form = "application/json" if is_mlflow(path) else "application/problem+json"
            if answer.status_code != 401 or answer.headers["content-type"] != form:
                wrong.append(f"{method} {path}: {answer.status_code}")
    assert wrong == []


def test_every_route_that_is_not_public_refuses_a_dead_token(house: House) -> None:
    for secret in ("tbp_" + "0" * 40, "tba_" + "0" * 40, "tbs_" + "0" * 40, "nonsense"):
        wrong = [
            f"{method} {path}"
            for path, method, handler in house.walk
            if declared(handler) is not Permission.PUBLIC
            and house.request(method, house.path(path), secret).status_code != 401
        ]
        assert wrong == []


def test_the_token_of_another_runs_attempt_writes_nowhere(house: House) -> None:
    wrong: list[str] = []
    for path, method, handler in house.walk:
        if declared(handler) is Permission.PUBLIC or method == "GET":
            continue
        if (method, path) in ATTEMPTS_TOO and "{run:" not in path:
            continue  # blobs, trees: content by its own digest
        if is_mlflow(path) and mlflow_tail(method, path) in MLFLOW_READS_BY_JOBS | MLFLOW_REGISTERS:
            continue
        body = house.mlflow_body if is_mlflow(path) else least_body(handler)
        answer = house.request(method, house.path(path), house.same_space, body)
        if answer.status_code not in (403, 404):
            wrong.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
    assert wrong == []


def test_the_token_of_an_attempt_in_another_space_reads_nothing_of_this_one(house: House) -> None:
    wrong: list[str] = []
    for path, method, handler in house.walk:
        if declared(handler) is Permission.PUBLIC or method != "GET":
            continue
        asked = "key=loss&path=a&ref=x@1"
        if is_mlflow(path):
            more = f"run_id={house.run}&run_ids={house.run}&metric_key=loss&experiment_id={house.project}"
            asked = f"{more}&experiment_name=demo&name=x&version=1&alias=a&path={house.project}/{house.run}/artifacts"
        answer = house.request(method, f"{house.path(path)}?{asked}", house.other_space)
        shows_nothing = answer.status_code == 200 and path == "/api/v1/runs" and answer.json()["runs"] == []
        if is_mlflow(path) and answer.status_code == 200:
            shows_nothing = not any(word in answer.text for word in (house.run, house.project, "demo", "theirs"))
        if answer.status_code not in (403, 404) and not shows_nothing:
            wrong.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
    assert wrong == []


def test_persons_do_not_speak_for_an_attempt(house: House) -> None:
    for path, method, handler in house.walk:
        if declared(handler) is Permission.ATTEMPT:
            answer = house.request(method, house.path(path), house.admin, least_body(handler))
            assert (answer.status_code, answer.json()["code"]) == (403, "attempt_only")


def test_options_tell_other_origins_nothing(house: House) -> None:
    for path in {path for path, _, _ in house.walk}:
        answer = house.request("OPTIONS", house.path(path))
        assert answer.status_code == 405
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]


def test_the_home_folder_is_closed_to_others(house: House) -> None:
    assert house.app.home.stat().st_mode & 0o777 == 0o700
