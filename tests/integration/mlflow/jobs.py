"""How tests submit jobs to an installation and read what they logged."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("mlflow_jobs_harness", HERE.parents[1] / "e2e" / "harness.py")
assert _spec is not None and _spec.loader is not None
harness = importlib.util.module_from_spec(_spec)
sys.modules["mlflow_jobs_harness"] = harness
_spec.loader.exec_module(harness)


def submit(inst: Any, folder: Path, command: str, **more: Any) -> str:
    folder.mkdir(exist_ok=True)
    spec = {"project": "demo", "run": command, "environment": "current", "resources": {"cards": 1}, **more}
    (folder / "trackbed.yaml").write_text(json.dumps(spec))
    return inst.submit(folder)


def read(inst: Any, client: str, folder: Path, *runs: str) -> dict[str, Any]:
    """What an unmodified client reads with a person's token."""
    out = folder / "read.json"
    token = json.loads((inst.home / "client" / "credentials.json").read_text())["token"]
    env = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_TRACKING_URI": f"http://127.0.0.1:{inst.port}", "MLFLOW_TRACKING_TOKEN": token,
    }  # fmt: skip
    done = subprocess.run(
        [client, str(HERE / "story_read_job.py"), str(out), *runs],
        env=env, cwd=folder, capture_output=True, text=True, timeout=160,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:] + inst.log.read_text()[-2000:]
    return json.loads(out.read_text())
