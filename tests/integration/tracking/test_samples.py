"""Samples from a program to the command line, through a real server: kept, listed, replayed."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

_spec = importlib.util.spec_from_file_location(
    "samples_server_process", Path(__file__).parents[1] / "server" / "server_process.py"
)
assert _spec is not None and _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
sys.modules["samples_server_process"] = _module
_spec.loader.exec_module(_module)
own_server = _module.own_server

PROGRAM = """
import trackbed
with trackbed.init(project="demo", params={"huge": 2**80}) as run:
    run.log_sample([1, 2], [2, 4], name="double", step=1)
    run.log_sample([3], [7], name="double", step=2, why="wrong on purpose")
    run.log_sample({"text": "a name"}, [0], name="private", step=3, mask=["text"])
    for folder in ("a", "b"):
        import pathlib
        pathlib.Path(folder).mkdir()
        pathlib.Path(folder, "x.txt").write_text(folder)
        run.save(f"{folder}/x.txt", kind="text")
print(run.wait_sent(60))
print(run.id)
"""
DOUBLE = "import json, sys; print(json.dumps([2 * x for x in json.load(sys.stdin)]))"


def test_samples_are_kept_listed_and_replayed(own_server: Any, tmp_path: Path) -> None:
    server = own_server.start()
    env = {
        **os.environ,
        "TRACKBED_URL": server.url,
        "TRACKBED_TOKEN": server.admin,
        "TRACKBED_HOME": str(tmp_path / "own"),
    }

    def python(*args: str, status: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, *args], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120
        )  # fmt: skip
        assert done.returncode == status, done.stderr + done.stdout
        return done.stdout

    sent, run = python("-c", PROGRAM).split()
    assert sent == "True"
    listed = json.loads(python("-m", "trackbed", "samples", run, "--json"))
    assert [(one["name"], one["step"]) for one in listed] == [("double", 1), ("double", 2), ("private", 3)]
    assert listed[1]["facts"] == {"why": "wrong on purpose"} and "a name" not in json.dumps(listed)
    command = f"{sys.executable} -c '{DOUBLE}'"
    played = json.loads(python("-m", "trackbed", "samples", run, "--replay", command, "--json", status=1))
    assert [one[1] for one in played] == ["equal", "differs", "masked"]
    detail = server.json("GET", f"/api/v1/runs/{run}")
    kinds = {one["path"]: one["kind"] for one in detail["artifacts"]}
    assert kinds["x.txt"] == kinds["b/x.txt"] == "text" and kinds["samples/double-1.json"] == "sample"
    assert server.json("GET", f"/api/v1/runs/{run}")["run"].get("params", {}).get("huge", str(2**80)) == str(2**80)
