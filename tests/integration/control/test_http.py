"""The routes of this room over HTTP: people, supervisors, masks, held replies."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from control_world import World
from control_world import world as open_world
from litestar.testing import TestClient

from trackbed import access
from trackbed.access.tables import membership
from trackbed.domain.scope import SYSTEM
from trackbed.server.main import build_app
from trackbed.wire.attempts import ExitReport, LeaseRequest
from trackbed.wire.runs import SubmitRequest, TreeFacts
from trackbed.wire.spec import Resources, Spec


class Board:
    def __init__(self, world: World, client: Any) -> None:
        self.world, self.client = world, client
        self.me = self.token_of(world.ann.actor.id)

    def token_of(self, person_id: str) -> str:
        return self.world.write(
            lambda tx: access.issue_token(tx, SYSTEM, person_id=person_id, label="t").secret, SYSTEM.actor
        )

    def call(
        self, method: str, path: str, body: Any = None, *, token: str = "", status: int = 200, **query: Any
    ) -> Any:
        content = msgspec.json.encode(body) if body is not None else None
        headers = {
            "Authorization": f"Bearer {token or self.me}",
            "Content-Type": "application/json",
            "Host": "127.0.0.1",
        }
        answer: httpx.Response = self.client.request(
            method, "/api/v1" + path, content=content, headers=headers, params=query
        )
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    def submit(self, *, token: str = "", **spec: Any) -> dict[str, Any]:
        resources = Resources(cards_per_node=spec.pop("cards", 1))
        request = SubmitRequest(spec=Spec(run="true", resources=resources, **spec))
        return self.call("POST", "/runs", request, token=token, status=201)


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    with open_world(tmp_path) as world, TestClient(build_app(world.app)) as client:
        yield Board(world, client)


def test_a_run_goes_from_submit_to_finished_over_http(board: Board) -> None:
    made = board.submit(name="one", params={"lr": 0.1}, tags=["a"])
    run, ref = made["run_id"], made["ref"]
    assert ref == "demo#1" and made["url"].endswith(run)
    page = board.call(
        "GET", "/runs", filter="name = 'one' and params.lr = 0.1 and tags has 'a'", columns="params.lr,loss"
    )
    assert [row["id"] for row in page["runs"]] == [run]
    assert page["runs"][0]["params"] == {"lr": 0.1}
    assert board.call("GET", "/queue")[0]["run"]["ref"] == "demo#1"
    board.world.plan()
    attempt = board.world.newest(run)
    token = board.world.engine.processes[attempt].assignment.token
    lease = LeaseRequest(epoch=1, node="n1", phase="running")
    assert board.call("POST", f"/attempts/{attempt}/lease", lease, token=token)["lease_s"] > 0
    card = board.call("GET", "/nodes")[0]["cards"][0]
    assert (card["state"], card["run"]) == ("held", "demo#1")
    board.call("POST", f"/attempts/{attempt}/exit", ExitReport(epoch=1, cause="done"), token=token, status=204)
    detail = board.call("GET", "/runs/demo%231")
    assert detail["run"]["state"] == "finished" and detail["attempts"][0]["cause"] == "done"
    assert board.call("POST", f"/attempts/{attempt}/lease", lease, token=token, status=401)["code"] == "token_dead"
    kinds = [event["kind"] for event in board.call("GET", f"/runs/{run}/events")]
    assert kinds[0] == "run.submitted" and kinds[-1] == "run.finished"
    assert board.call("GET", f"/runs/{run}/lineage")["root"] == f"run:{run}"
    again = board.call("GET", f"/runs/{run}/reproduction")
    copy = board.call("POST", "/runs", again, status=201)["run_id"]
    verdict = board.call("GET", f"/runs/{copy}/reproduction/verdict")
    assert verdict["reproduces"] == run and not verdict.get("equal")
    edges = board.call("GET", f"/runs/{run}/lineage")["edges"]
    assert {"source": f"run:{copy}", "target": f"run:{run}", "kind": "reproduces"} in edges


def test_a_supervisor_speaks_for_its_own_attempt_only(board: Board) -> None:
    first, second = board.submit()["run_id"], board.submit()["run_id"]
    board.world.plan()
    mine, other = board.world.newest(first), board.world.newest(second)
    token = board.world.engine.processes[mine].assignment.token
    lease = LeaseRequest(epoch=1, node="n1")
    assert board.call("POST", f"/attempts/{other}/lease", lease, token=token, status=403)["code"] == "attempt_not_yours"
    assert board.call("POST", f"/runs/{second}/stop", {}, token=token, status=403)
    assert board.call("POST", f"/attempts/{mine}/lease", lease, status=403)["code"] == "attempt_only"


def test_a_checkpoint_that_is_not_in_the_store_moves_nothing(board: Board) -> None:
    run = board.submit()["run_id"]
    board.world.plan()
    attempt = board.world.newest(run)
    token = board.world.engine.processes[attempt].assignment.token
    report = {"epoch": 1, "name": "s", "step": 5, "digest": "b3:" + "0" * 64}
    answer = board.call("POST", f"/attempts/{attempt}/checkpoints", report, token=token, status=404)
    assert answer["code"] == "run_tree_missing"
    assert board.call("GET", f"/runs/{run}")["attempts"][0].get("checkpoints", []) == []


def test_a_bare_digest_opens_nobodys_tree(board: Board, tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "secret.py").write_text("x = 1")
    world = board.world
    digest = str(world.app.store.put_tree(tmp_path / "code").digest)
    bob = world.write(lambda tx: access.create_person(tx, SYSTEM, name="bob", admin=False), SYSTEM.actor)
    request = SubmitRequest(spec=Spec(run="true"), tree=TreeFacts(digest=digest))
    problem = board.call("POST", "/runs", request, token=board.token_of(bob.id), status=400)
    assert [fault["code"] for fault in problem["faults"]] == ["run_tree_missing"]
    board.call("POST", "/runs", request, status=201)


def test_a_held_reply_comes_as_soon_as_there_is_an_order(board: Board) -> None:
    run = board.submit()["run_id"]
    board.world.plan()
    attempt = board.world.newest(run)
    token = board.world.engine.processes[attempt].assignment.token
    board.call("POST", f"/attempts/{attempt}/lease", LeaseRequest(epoch=1, node="n1", phase="running"), token=token)

    async def story() -> tuple[float, dict[str, Any]]:
        transport = httpx.ASGITransport(app=build_app(board.world.app))
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Host": "127.0.0.1"}
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            body = msgspec.json.encode(LeaseRequest(epoch=1, node="n1", phase="running", wait_s=20))
            began = time.monotonic()
            asked = asyncio.create_task(client.post(f"/api/v1/attempts/{attempt}/lease", content=body, headers=headers))
            await asyncio.sleep(0.2)
            assert not asked.done()
            await asyncio.to_thread(board.world.verb, "stop", run)
            answer = await asked
            return time.monotonic() - began, answer.json()

    took_s, reply = asyncio.run(story())
    assert took_s < 1.5
    assert reply["order"]["kind"] == "stop"


def test_names_behind_walls_are_masked_and_no_row_is_hidden(board: Board) -> None:
    world = board.world
    world.write(lambda tx: access.create_space(tx, SYSTEM, name="secret", accepted=True), SYSTEM.actor)
    hidden = board.submit(space="secret", cards=4, name="hush")["run_id"]
    world.plan()
    board.submit(space="secret", cards=4, name="hush2")
    bob = world.write(lambda tx: access.create_person(tx, SYSTEM, name="bob", admin=False), SYSTEM.actor)
    token = board.token_of(bob.id)
    world.plan()
    queue = board.call("GET", "/queue", token=token)
    assert len(queue) == 1 and "hush" not in str(queue) and hidden not in str(queue)
    cards = board.call("GET", "/nodes", token=token)[0]["cards"]
    assert [card["state"] for card in cards] == ["held"] * 4
    assert "demo" not in str(cards)
    assert board.call("GET", "/runs", token=token)["runs"] == []
    assert board.call("GET", f"/runs/{hidden}", token=token, status=404)["code"] == "run_unknown"
    assert world.app.db.read(lambda tx: tx.rows(membership.select()))


def test_faults_cross_the_wire_with_codes_and_fields(board: Board) -> None:
    request = SubmitRequest(spec=Spec(run="true", resources=Resources(cards_per_node=64), project="Bad Name!"))
    problem = board.call("POST", "/runs", request, status=400)
    assert problem["code"] == "spec_wrong"
    codes = {fault["code"] for fault in problem["faults"]}
    assert {"too_large_for_any_node", "spec_bad_name"} <= codes
    assert board.call("GET", "/runs")["runs"] == []


def test_a_stale_version_is_refused(board: Board) -> None:
    run = board.submit()["run_id"]
    version = board.call("GET", f"/runs/{run}")["run"]["version"]
    assert board.call("PATCH", f"/runs/{run}", {"tags": ["x"], "version": version})["tags"] == ["x"]
    assert board.call("PATCH", f"/runs/{run}", {"tags": [], "version": version}, status=409)["code"] == "version_stale"
    assert board.call("PATCH", f"/runs/{run}", {"state": "finished", "version": version + 1}, status=400)


def test_an_outside_run_is_made_once_per_key(board: Board) -> None:
    body = {"project": "demo", "name": "o", "key": "k", "params": {"lr": 0.5}}
    first = board.call("POST", "/outside-runs", body, status=201)
    assert board.call("POST", "/outside-runs", body, status=201)["id"] == first["id"]
    assert first["outside"] and first["state"] == "running"


def test_numbers_and_depths_beyond_reason_are_refused_not_stumbled_over(board: Board) -> None:
    run = board.submit()["run_id"]
    for path, name in (("events", "after"), ("logs", "rank"), ("logs", "attempt")):
        query: dict[str, Any] = {name: 10**20}
        assert board.call("GET", f"/runs/{run}/{path}", status=400, **query)["code"] == "number_too_great"
    answer = board.client.post(
        "/api/v1/runs", content=b"[" * 100_000, headers={"Authorization": f"Bearer {board.me}", "Host": "127.0.0.1"}
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "request_deep")
