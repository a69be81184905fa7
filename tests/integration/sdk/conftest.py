"""Real servers, real trainers, real senders; and a home of its own for each test."""

import importlib.util
import sys
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
for _name, _path in (
    ("server_process", _HERE.parent / "server" / "server_process.py"),
    ("sdk_bed", _HERE / "sdk_bed.py"),
):
    if _name not in sys.modules:
        _spec = importlib.util.spec_from_file_location(_name, _path)
        assert _spec is not None
        assert _spec.loader is not None
        _module = importlib.util.module_from_spec(_spec)
        sys.modules[_name] = _module
        _spec.loader.exec_module(_module)

own_server = sys.modules["server_process"].own_server
server = sys.modules["server_process"].server
bad_server = sys.modules["sdk_bed"].bad_server


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("TRACKBED_RUN", "TRACKBED_CONTROL", "TRACKBED_URL", "TRACKBED_TOKEN", "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRACKBED_HOME", str(tmp_path / "client-home"))
    return tmp_path / "client-home"
