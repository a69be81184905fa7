"""Stories against a real installation. One server a module: starting one costs seconds."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("e2e_harness", Path(__file__).with_name("harness.py"))
assert _spec is not None and _spec.loader is not None
harness = importlib.util.module_from_spec(_spec)
sys.modules["e2e_harness"] = harness
_spec.loader.exec_module(harness)


@pytest.fixture(scope="module")
def inst(tmp_path_factory: pytest.TempPathFactory) -> Iterator[harness.Installation]:
    with harness.installation(tmp_path_factory.mktemp("inst"), cards=2) as running:
        yield running


@pytest.fixture(scope="module")
def inst4(tmp_path_factory: pytest.TempPathFactory) -> Iterator[harness.Installation]:
    with harness.installation(tmp_path_factory.mktemp("inst4"), cards=4) as running:
        yield running
