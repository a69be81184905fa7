"""The MLflow surface is the reviewed one: what the page lists is what is served, with the same permissions."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trackbed.server import main
from trackbed.server.app import Settings
from trackbed.server.auth import declared
from trackbed.server.mlflow.routes import routes

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "mlflow.md"
_ENTRY = re.compile(r"\b(GET|POST|PUT|PATCH|DELETE) `([^`]+)`")


def listed() -> set[tuple[str, str, str]]:
    found: set[tuple[str, str, str]] = set()
    for line in PAGE.read_text(encoding="utf-8").split("## As MLflow answers")[0].splitlines():
        if not line.startswith("| ") or not _ENTRY.search(line):
            continue
        permission = line.rstrip(" |").rpartition("|")[2].strip()
        for method, path in _ENTRY.findall(line):
            whole = [path] if path.startswith("/") else [f"{p}/2.0/mlflow/{path}" for p in ("/api", "/ajax-api")]
            found |= {(method, one, permission) for one in whole}
    return found


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[set[tuple[str, str, str]]]:
    app = main.open_app(Settings(home=tmp_path_factory.mktemp("home") / "h", loops=False, cards=1))
    ours = {id(getattr(handler, "fn", handler)) for handler in routes}
    found: set[tuple[str, str, str]] = set()
    for path, method, handler in main.walk(main.build_app(app)):
        if id(getattr(handler, "fn", handler)) in ours:
            permission: Any = declared(handler)
            found.add((method, re.sub(r":(str|path)\}", "}", path), permission.value))
    yield found
    app.db.close()


def test_the_page_lists_every_route_with_its_permission_and_no_other(served: set[tuple[str, str, str]]) -> None:
    assert sorted(served ^ listed()) == []
    assert len(served) > 120


def test_only_these_routes_take_basic_auth() -> None:
    every = {id(handler) for handler in routes}
    basic = {id(handler) for handler in main.route_handlers() if handler.opt.get("basic")}
    assert basic <= every
    assert len(every - basic) == 1  # /health asks nobody
