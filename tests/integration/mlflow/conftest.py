"""A server of its own, and every MLflow client that is installed: `make mlflow-venv` installs the newest and 3.6."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_spec = importlib.util.spec_from_file_location(
    "mlflow_server_process", Path(__file__).parents[1] / "server" / "server_process.py"
)
assert _spec is not None
assert _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
sys.modules["mlflow_server_process"] = _module
_spec.loader.exec_module(_module)
own_server = _module.own_server

_jobs = importlib.util.spec_from_file_location("mlflow_jobs", Path(__file__).with_name("jobs.py"))
assert _jobs is not None
assert _jobs.loader is not None
_jobs_module = importlib.util.module_from_spec(_jobs)
sys.modules["mlflow_jobs"] = _jobs_module
_jobs.loader.exec_module(_jobs_module)

REPO = Path(__file__).resolve().parents[3]
ABSENT = "no MLflow client is installed: run `make mlflow-venv`, or name interpreters in TRACKBED_MLFLOW_PYTHON"


def interpreters() -> list[str]:
    """Interpreters that have MLflow, named by the variable (separated as in PATH) or made by `make mlflow-venv`."""
    named = os.environ.get("TRACKBED_MLFLOW_PYTHON", "")
    made = [path for path in sorted(REPO.glob(".mlflow-venv/*/bin/python")) if path.parents[1].name != "full"]
    found = named.split(os.pathsep) if named else [str(path) for path in made]
    return [path for path in found if Path(path).exists()]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "client" in metafunc.fixturenames:
        found = interpreters()
        absent = pytest.param("", marks=pytest.mark.skip(reason=ABSENT), id="absent")
        metafunc.parametrize("client", found or [absent], ids=[Path(p).parents[1].name for p in found] or None)


@pytest.fixture(scope="module")
def jobs() -> Any:
    return _jobs_module


@pytest.fixture
def server(own_server: Any) -> Any:
    return own_server.start()


@pytest.fixture
def tell(server: Any, client: str, tmp_path: Path) -> Any:
    """Run a story with an unmodified client in a process of its own; return what it read."""

    def run(story: str, **environment: str) -> str:
        out = tmp_path / "said.json"
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "MLFLOW_TRACKING_URI": server.url,
            "MLFLOW_TRACKING_TOKEN": server.admin,
            "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
            "MLFLOW_DISABLE_TELEMETRY": "true",
            **environment,
        }
        done = subprocess.run(
            [client, str(Path(__file__).with_name(story)), str(out)],
            env=env,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=160,
        )
        assert done.returncode == 0, done.stderr[-4000:] + server.log.read_text()[-2000:]
        return out.read_text()

    return run
