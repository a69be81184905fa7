"""Over HTTP: documents of a run's tree, health of nodes, environments compared and named, and what a release warns of."""

from __future__ import annotations

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
from trackbed.domain.scope import SYSTEM, Role
from trackbed.server.flows.register import register_by_hand
from trackbed.server.main import build_app
from trackbed.sources.environment import digest_of
from trackbed.wire.runs import EnvironmentRecord, Package, TreeFacts
from trackbed.wire.surroundings import EnvironmentFound, Surroundings


class Board:
    def __init__(self, world: World, client: Any) -> None:
        self.world, self.client = world, client

    def call(
        self, method: str, path: str, body: Any = None, /, *, who: Any = None, status: int = 200, **query: Any
    ) -> Any:
        person = (who or self.world.ann).actor.id
        token = self.world.write(
            lambda tx: access.issue_token(tx, SYSTEM, person_id=person, label="t").secret, SYSTEM.actor
        )
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Host": "127.0.0.1"}
        content = msgspec.json.encode(body) if body is not None else None
        answer: httpx.Response = self.client.request(
            method, "/api/v1" + path, content=content, headers=headers, params=query
        )
        assert answer.status_code == status, answer.text
        return answer.json()


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    with open_world(tmp_path) as world, TestClient(build_app(world.app)) as client:
        yield Board(world, client)


def installed(version: str) -> EnvironmentRecord:
    record = EnvironmentRecord(
        python="CPython 3.11.7",
        platform="linux-x86_64",
        packages=[Package(name="numpy", version=version, digest="a" * 64)],
    )
    record.digest = digest_of(record)
    return record


def ran(board: Board, version: str, driver: str) -> tuple[str, str]:
    run, attempt = board.world.started(installed=installed(version))
    board.world.renew(attempt, environment=EnvironmentFound(surroundings=Surroundings(os="Debian 12", driver=driver)))
    return run, attempt


def test_documents_of_a_tree_are_listed_and_shown_with_their_commands(board: Board, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "docs").mkdir(parents=True)
    (tree / "README.md").write_text("# Hi <script>alert(1)</script>\n\n```sh trackbed-run\npython t.py\n```\n")
    (tree / "docs" / "more.md").write_text("x" * 2_000_000)
    (tree / "secret.py").write_text("x = 1\n")
    digest = str(board.world.app.store.put_tree(tree).digest)
    run = board.world.submit(tree=TreeFacts(digest=digest)).run_id
    assert [one["path"] for one in board.call("GET", f"/runs/{run}/docs")] == ["README.md", "docs/more.md"]
    shown = board.call("GET", f"/runs/{run}/docs/content")
    assert shown["path"] == "README.md" and shown["commands"] == [{"line": 3, "text": "python t.py"}]
    long = board.call("GET", f"/runs/{run}/docs/content", path="docs/more.md")
    assert (len(long["text"]), long["cut_bytes"]) == (1 << 20, 2_000_000 - (1 << 20))
    for path in ("secret.py", "../README.md", "/etc/passwd"):
        assert board.call("GET", f"/runs/{run}/docs/content", path=path, status=404)["code"] == "docs_missing"
    stranger = board.world.person("eve", Role.VIEWER, space_id="spc_other")
    drop = membership.delete().where(membership.c.person_id == stranger.actor.id)
    board.world.write(lambda tx: tx.execute(drop), SYSTEM.actor)
    board.call("GET", f"/runs/{run}/docs", who=stranger, status=403)
    bare = board.world.submit().run_id
    assert board.call("GET", f"/runs/{bare}/docs") == []
    assert board.call("GET", f"/runs/{bare}/docs/content", status=404)["code"] == "docs_none"


def test_a_look_at_the_node_is_for_maintainers_and_its_result_for_everyone(board: Board) -> None:
    viewer = board.world.person("vic", Role.VIEWER)
    assert board.call("GET", "/doctor", who=viewer) == []
    board.call("POST", "/doctor", who=viewer, status=403)
    checks = {one["check"] for one in board.call("POST", "/doctor")}
    assert {"disk", "fsync", "storage", "clock", "driver", "packages"} <= checks
    assert {one["check"] for one in board.call("GET", "/doctor/history", who=viewer, check="disk")} == {"disk"}


def test_environments_are_named_compared_and_moved_by_version(board: Board) -> None:
    first, _ = ran(board, "1.0", "550.1")
    second, _ = ran(board, "2.0", "560.2")
    member = board.world.person("mia", Role.MEMBER)
    board.call("PUT", "/environments/names/prod", {"run": first}, who=member, status=403)
    made = board.call("PUT", "/environments/names/prod", {"run": first, "expected": 0})
    assert made["digest"] == installed("1.0").digest
    told = board.call("GET", "/environments/diff", before=second, after="prod")
    assert [(one["area"], one["name"], one["before"], one["after"]) for one in told["differences"]] == [
        ("package", "numpy", "2.0", "1.0"), ("driver", "driver", "560.2", "550.1"),
    ]  # fmt: skip
    assert board.call("PUT", "/environments/names/prod", {"run": second, "expected": 0}, status=409)["code"] == (
        "environment_name_moved"
    )
    assert board.call("PUT", "/environments/names/prod", {"run": second, "expected": 1})["version"] == 2
    assert board.call("GET", "/environments/diff", before=second, after="prod").get("differences", []) == []
    listed = board.call("GET", "/environments")
    assert {one["digest"]: one.get("names", []) for one in listed}[installed("2.0").digest] == ["default/prod"]
    assert board.call("GET", "/environments/facts", ref="nothing-such", status=404)["code"] == "environment_ref_unknown"
    assert board.call("PUT", "/environments/names/dev", {}, status=400)["code"] == "environment_name_what"


def test_a_registration_and_a_release_warn_where_production_is_another(board: Board, tmp_path: Path) -> None:
    world = board.world
    run, attempt = ran(board, "2.0", "560.2")
    (tmp_path / "out" / "model").mkdir(parents=True)
    (tmp_path / "out" / "model" / "weights.bin").write_bytes(b"1")
    world.outputs(attempt, digest=str(world.app.store.put_tree(tmp_path / "out").digest))
    world.exit(attempt, "done")
    assert register_by_hand(world.app, world.ann, "m", run, "model").warnings == [], "nothing is called prod yet"
    other, _ = ran(board, "1.0", "550.1")
    board.call("PUT", "/environments/names/prod", {"run": other})
    (told,) = register_by_hand(world.app, world.ann, "m2", run, "model").warnings
    assert told.code == "release_environment_differs"
    assert told.params["count"] == 2 and "numpy 2.0 -> 1.0" in told.params["changes"]
    assert "model.environment_differs" in world.kinds(run)
    moved = board.call("PUT", "/models/m2/aliases/stable", {"version": 1, "expected": None})
    assert [one["code"] for one in moved["warnings"]] == ["release_environment_differs"]
    board.call("PUT", "/environments/names/stable", {"run": run})
    again = board.call("PUT", "/models/m2/aliases/stable", {"version": 1, "expected": 1})
    assert again.get("warnings", []) == [], "the environment that is called as the alias is the one that counts"
