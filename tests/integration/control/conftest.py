"""A world for each test."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trackbed.testing.database import KINDS

_spec = importlib.util.spec_from_file_location("control_world", Path(__file__).with_name("world.py"))
assert _spec is not None and _spec.loader is not None
control_world = importlib.util.module_from_spec(_spec)
sys.modules["control_world"] = control_world
_spec.loader.exec_module(control_world)


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """On either database."""
    with control_world.world(tmp_path, database=request.param) as made:
        yield made


@pytest.fixture
def world_of(tmp_path: Path) -> Iterator[Any]:
    """Makes worlds with other nodes."""
    opened: list[Any] = []

    def make(**nodes: int) -> Any:
        context = control_world.world(tmp_path, nodes=nodes)
        opened.append(context)
        return context.__enter__()

    yield make
    for context in opened:
        context.__exit__(None, None, None)
