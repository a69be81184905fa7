"""Triggers: a push starts the declared pipeline once, its result is on the commit and at the forge."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import hmac
import http.server
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from control_world import World

from trackbed.access.tables import person
from trackbed.base.errors import BadInput, Conflict, Denied
from trackbed.datasets import service as datasets
from trackbed.domain.scope import Role
from trackbed.server import main
from trackbed.server.flows import fire
from trackbed.server.loops import triggers as loop
from trackbed.wire.runs import SubmitRequest, TreeFacts
from trackbed.wire.spec import DataPin, Spec
from trackbed.wire.triggers import DeliveryView, PushReport, TriggerRequest
from trackbed.workflow import triggers

ENV = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "bob", "GIT_AUTHOR_EMAIL": "b@x",
    "GIT_COMMITTER_NAME": "bob", "GIT_COMMITTER_EMAIL": "b@x",
}  # fmt: skip


def git(folder: Path, *args: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *args], env=ENV, check=True, capture_output=True, text=True)
    return done.stdout.strip()


class Forge(http.server.SimpleHTTPRequestHandler):
    """A repository over plain HTTP, and a place for commit statuses: a real server on loopback."""

    told: list[tuple[str, dict[str, Any], str]] = []

    def do_POST(self) -> None:
        data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.told.append((self.path, data, self.headers.get("Authorization", "")))
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def forge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    work = tmp_path / "work"
    git(tmp_path, "init", "-q", "-b", "main", "work")
    (work / ".trackbed").mkdir()
    (work / ".trackbed" / "pipeline.yaml").write_text("name: nightly\nrun: python train.py\nresources: {cards: 1}\n")
    (work / "train.py").write_text("print(1)\n")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "one")
    git(tmp_path, "clone", "-q", "--bare", "work", "site/team/code.git")
    git(tmp_path / "site" / "team" / "code.git", "update-server-info")
    handler = functools.partial(Forge, directory=str(tmp_path / "site"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Forge.told.clear()
    monkeypatch.setenv("TRACKBED_OUTBOUND_ALLOW", f"127.0.0.1:{server.server_port}")
    monkeypatch.setenv("TRACKBED_FORGE_TOKEN_X", "forge-token")
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def put(world: World, **asked: Any) -> Any:
    return world.write(lambda tx: triggers.put(tx, world.ann, TriggerRequest(**asked)), world.ann.actor)


def send(world: World, trigger: str, body: bytes, headers: dict[str, str]) -> httpx.Response:
    """Over the real route."""

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(main.build_app(world.app))  # pyright: ignore[reportArgumentType]
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.post(f"/api/v1/hooks/{trigger}", content=body, headers=headers)

    return asyncio.run(ask())


def push_body(commit: str, **more: Any) -> bytes:
    return json.dumps({"ref": "refs/heads/main", "after": commit, "pusher": {"name": "bob"}, **more}).encode()


def signed(world: World, trigger: str, body: bytes, delivery: str = "d1") -> dict[str, str]:
    secret = fire.secret_of(world.app, trigger)
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"X-Hub-Signature-256": f"sha256={signature}", "X-GitHub-Event": "push", "X-GitHub-Delivery": delivery}


def log(world: World, **asked: Any) -> list[DeliveryView]:
    return world.app.db.read(lambda tx: triggers.deliveries(tx, world.ann, **asked))


def end(world: World, run_id: str) -> None:
    world.plan()
    attempt = world.newest(run_id)
    world.renew(attempt)
    world.exit(attempt, "done", code=0)


def test_a_forges_push_starts_the_pipeline_of_its_commit_and_hears_the_result(
    world: World, forge: str, tmp_path: Path
) -> None:
    made = put(
        world, name="nightly", kind="github", branch="main", remote=f"{forge}/team/code.git", status_url=f"{forge}/api",
        token_env="TRACKBED_FORGE_TOKEN_X",
    )  # fmt: skip
    commit = git(tmp_path / "work", "rev-parse", "HEAD")
    body = push_body(commit)
    assert send(world, made.id, body, signed(world, made.id, body)).json()["state"] == "waiting"
    loop.tick(world.app)
    (one,) = log(world, commit=commit[:8])
    assert (one.state, one.by, one.branch, one.result) == ("started", "bob", "main", "")
    row = world.run(one.run_id)
    assert (row.name, row.owner, json.loads(row.tree)["commit"]) == ("nightly", "ann", commit)
    end(world, one.run_id)
    loop.tick(world.app)
    (one,) = log(world)
    assert (one.state, one.result, one.told) == ("done", "finished", "success")
    assert [(path, data["state"], token) for path, data, token in Forge.told] == [
        (f"/api/repos/team/code/statuses/{commit}", "pending", "Bearer forge-token"),
        (f"/api/repos/team/code/statuses/{commit}", "success", "Bearer forge-token"),
    ]
    found = world.app.db.read(lambda tx: fire.of_commit(tx, world.ann, commit))
    assert [(each.run, each.state) for each in found.deliveries] == [("demo#1", "done")]
    assert [run.ref for run in found.runs] == ["demo#1"]


def test_a_replay_starts_nothing_and_a_forgery_is_not_heard(world: World, forge: str) -> None:
    made = put(world, name="nightly", kind="github", branch="main", remote=f"{forge}/team/code.git")
    body = push_body("ab" * 20)
    good = signed(world, made.id, body)
    assert send(world, made.id, body, good).json().get("ignored", "") == ""
    for again in (good, {**good, "X-GitHub-Delivery": "d2"}):
        assert send(world, made.id, body, again).json()["ignored"] == "replayed"
    forged = {**good, "X-Hub-Signature-256": "sha256=" + "0" * 64}
    for trigger, headers in ((made.id, forged), (made.id, {}), ("trg_unknown", good)):
        refused = send(world, trigger, body, headers)
        assert (refused.status_code, refused.json()["code"]) == (401, "hook_not_genuine")
    old = push_body("cd" * 20, repository={"pushed_at": int(world.clock.now_us() / 1e6) - 7200})
    answer = send(world, made.id, old, signed(world, made.id, old, "d3"))
    assert (answer.status_code, answer.json()["code"]) == (400, "hook_too_old")
    other = push_body("cd" * 20, ref="refs/heads/side")
    assert send(world, made.id, other, signed(world, made.id, other, "d4")).json()["ignored"] == "other_branch"
    assert len(log(world)) == 1
    kinds = [event.kind for event in world.app.db.events(0, limit=1000) if event.kind.startswith("trigger.")]
    assert kinds == ["trigger.set", "trigger.fired", "trigger.replayed", "trigger.replayed"]


def test_a_remote_at_an_inner_address_is_not_fetched(world: World, forge: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRACKBED_OUTBOUND_ALLOW")
    made = put(world, name="nightly", kind="github", remote=f"{forge}/team/code.git", status_url=f"{forge}/api")
    body = push_body("ab" * 20)
    send(world, made.id, body, signed(world, made.id, body))
    loop.tick(world.app)
    (one,) = log(world)
    assert one.state == "failed" and "not https" in one.result
    assert Forge.told == [] and "not https" in one.told


def store(world: World, folder: Path) -> TreeFacts:
    found = fire.capture(folder)
    for digest, path in found.files.items():
        world.app.store.put_blob(path, expect=digest)
    world.app.store.put_listing(found.listing)
    return found.facts


def test_a_git_hook_starts_the_pipeline_of_a_commit_once(world: World, tmp_path: Path) -> None:
    made = put(world, name="ci", kind="git")
    (tmp_path / "code" / ".trackbed").mkdir(parents=True)
    (tmp_path / "code" / ".trackbed" / "pipeline.yaml").write_text("run: python t.py\n")
    report = PushReport(commit="ab" * 20, branch="main", tree=store(world, tmp_path / "code"))
    row = world.app.db.read(lambda tx: triggers.by_id(tx, made.id))
    for _ in range(2):
        world.write(lambda tx: triggers.receive_tree(tx, row, report), world.ann.actor)
        loop.tick(world.app)
    (one,) = log(world, name="ci")
    assert one.state == "started" and json.loads(world.run(one.run_id).tags) == ["trigger:ci"]
    (tmp_path / "code" / ".trackbed" / "pipeline.yaml").write_text("runs: python t.py\n")
    bad = PushReport(commit="cd" * 20, branch="main", tree=store(world, tmp_path / "code"))
    world.write(lambda tx: triggers.receive_tree(tx, row, bad), world.ann.actor)
    loop.tick(world.app)
    newest = log(world, commit="cdcd")[0]
    assert newest.state == "failed" and "runs" in newest.result


def test_a_new_dataset_version_starts_a_registered_spec_once(world: World, tmp_path: Path) -> None:
    loop.tick(world.app)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "t.py").write_text("1\n")
    tree = store(world, tmp_path / "code")
    spec = Spec(run="python t.py", data={"corpus": DataPin(ref="corpus@latest")})
    put(world, name="fresh", kind="dataset", dataset="corp*", pipeline=SubmitRequest(spec=spec, tree=tree))
    for number in (1, 2):
        world.clock.advance(1.0)
        world.write(
            lambda tx, n=number: datasets.commit(tx, world.ann, "corpus", f"b3:{n:064x}"),
            world.ann.actor,  # type: ignore[arg-type]
        )
        world.write(lambda tx, n=number: datasets.commit(tx, world.ann, "other", f"b3:{n:064x}"), world.ann.actor)  # type: ignore[arg-type]
        loop.tick(world.app)
        loop.tick(world.app)
    assert [(one.dataset, one.state) for one in log(world)] == [("corpus@2", "started"), ("corpus@1", "started")]
    pins = [json.loads(world.run(one.run_id).spec)["data"]["corpus"]["version"] for one in log(world)]
    assert pins == [2, 1]


def test_a_trigger_acts_with_the_rights_of_its_owner_today(world: World, tmp_path: Path) -> None:
    bob = world.person("bob", Role.MAINTAINER)
    asked = TriggerRequest(name="ci", kind="git")
    made = world.write(lambda tx: triggers.put(tx, bob, asked), bob.actor)  # a member of the default space, as all
    with pytest.raises(Conflict) as stale:
        put(world, name="ci", kind="git")
    assert (stale.value.params["given"], stale.value.params["version"], stale.value.params["owner"]) == (0, 1, "bob")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "t.py").write_text("1\n")
    row = world.app.db.read(lambda tx: triggers.by_id(tx, made.id))
    report = PushReport(commit="ab" * 20, branch="main", tree=store(world, tmp_path / "code"))
    world.write(lambda tx: triggers.receive_tree(tx, row, report), bob.actor)
    world.write(lambda tx: tx.execute(person.update().where(person.c.name == "bob").values(disabled=1)), bob.actor)
    loop.tick(world.app)
    (one,) = log(world)
    assert one.state == "failed" and "bob" in one.result
    cid = world.person("cid", Role.MEMBER)
    with pytest.raises(Denied):
        world.write(lambda tx: triggers.put(tx, cid, TriggerRequest(name="x", kind="git")), cid.actor)


@pytest.mark.parametrize(
    ("asked", "fields"),
    [
        ({"name": "a b", "kind": "git"}, {"name"}),
        ({"name": "x", "kind": "github"}, {"remote"}),
        ({"name": "x", "kind": "gitlab", "remote": "https://person:pw@x/y"}, {"remote"}),
        ({"name": "x", "kind": "gitea", "remote": "file:///etc", "status_url": "gopher://x"}, {"remote", "status_url"}),
        ({"name": "x", "kind": "dataset"}, {"dataset", "pipeline"}),
        ({"name": "x", "kind": "git", "token_env": "AWS_SECRET_ACCESS_KEY"}, {"token_env"}),
    ],
)
def test_what_is_wrong_with_a_trigger_is_told_at_once(world: World, asked: Any, fields: set[str]) -> None:
    with pytest.raises(BadInput) as refused:
        put(world, **asked)
    assert {fault.field for fault in refused.value.faults} == fields
