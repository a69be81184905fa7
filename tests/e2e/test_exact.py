"""Must hold 3, 5, 6: odd values are kept exactly, a server that is away or mad changes nothing, reproduce is bit-equal."""

import http.server
import json
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from e2e_harness import Installation, installation, project_from

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

ODD = """
import math, os, sys, trackbed
with trackbed.init() as run:
    for step, value in enumerate([math.nan, math.inf, -math.inf, -0.0, 1e308, 5e-324, 0.1, 0.1]):
        run.log({"val/AR@100": value, "损失": value, "with space": step}, step=step)
    run.log({"dup": 1.0}, step=3); run.log({"dup": 1.0}, step=3); run.log({"dup": 2.0}, step=3)
    run.summary["best"] = 1.25
sys.stdout.buffer.write(b"bytes \\xff\\xfe end\\n")
sys.stdout.buffer.write(b"x" * 1_000_000 + b"\\n")
sys.stdout.flush()
print("a\\rb\\rlast state")
"""


def bits(value: object) -> bytes:
    return struct.pack("<d", float(value))  # type: ignore[arg-type]


def test_odd_values_names_and_bytes_are_kept_exactly(inst: Installation, tmp_path: Path) -> None:
    folder = project_from("sdk", tmp_path)
    (folder / "odd.py").write_text(ODD)
    big = {f"p{i}": i for i in range(10_000)} | {"long": "é" * 32_768, "名字": "值"}
    spec = json.loads(
        json.dumps({"project": "demo", "name": "odd", "run": "python odd.py", "resources": {"cards": 0}, "params": big})
    )
    (folder / "odd.yaml").write_text(json.dumps(spec, ensure_ascii=False))
    run = inst.submit(folder, file="odd.yaml")
    detail = inst.wait(run)
    wanted = [float("nan"), float("inf"), float("-inf"), -0.0, 1e308, 5e-324, 0.1, 0.1]
    for key in ("val/AR@100", "损失"):
        got = [float(point[2]) for point in inst.history(run, key)]
        assert [bits(v) for v in got] == [bits(v) for v in wanted]
    assert [point[2] for point in inst.history(run, "dup")] == [1.0, 1.0, 2.0]
    assert detail["summary"]["best"] == 1.25
    assert detail["spec"]["params"] == big
    texts = [json.loads(line)["text"] for line in inst.cli("logs", run, "--json").stdout.splitlines()]
    assert "bytes \ufffd\ufffd end" in texts
    assert max(len(t) for t in texts) == 1_000_000
    assert "last state" in texts


@pytest.mark.parametrize(
    "mood", ["garbage", pytest.param("away", marks=pytest.mark.slow), pytest.param("500", marks=pytest.mark.slow)]
)
def test_training_ends_as_ever_whatever_the_server_answers(tmp_path: Path, mood: str) -> None:
    with installation(tmp_path / "inst") as inst:
        run = inst.submit(project_from("sdk", tmp_path), "params.steps=120", "params.sleep_s=0.02")
        inst.until(lambda: inst.state(run) == "running", what="running")
        inst.kill()
        mad = None if mood == "away" else MadServer(inst.port, mood)
        try:
            weight = inst.attempt_folders()[-1] / "output" / "weight.json"
            inst.until(weight.exists, timeout_s=60, what="training ended without a sane server")
            time.sleep(1)
        finally:
            if mad is not None:
                mad.stop()
        inst.up()
        detail = inst.wait(run, timeout_s=60)
        assert len(detail["attempts"]) == 1
        steps = [point[0] for point in inst.history(run, "loss")]
        assert steps == list(range(1, 121))


class MadServer:
    """Answers everything with 500, or with 200 and garbage."""

    def __init__(self, port: int, mood: str) -> None:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(500 if mood == "500" else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "9")
                self.end_headers()
                self.wfile.write(b"\x00garbage\xff")

            do_GET = do_PUT = do_POST  # noqa: N815

            def log_message(self, *args: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def test_reproduce_trains_again_from_the_record_alone(inst: Installation, tmp_path: Path) -> None:
    folder = project_from("sdk", tmp_path)
    run = inst.submit(folder, "params.steps=80", "params.sleep_s=0")
    inst.wait(run)
    for path in sorted(folder.rglob("*"), reverse=True):
        path.unlink() if path.is_file() or path.is_symlink() else path.rmdir()
    verdict = inst.json("reproduce", "-", "--verify", cwd=folder)  # which names the reproduction itself a moment later
    again = verdict["run_id"]
    assert again != run
    assert verdict["run"] == inst.json("show", run)["run"]["ref"]
    assert verdict["equal"] is True
    assert inst.history(again, "loss") != []
    assert [p[2] for p in inst.history(again, "loss")] == [p[2] for p in inst.history(run, "loss")]


def test_a_dirty_tree_is_captured_as_it_stands_and_left_alone(inst: Installation, tmp_path: Path) -> None:
    folder = project_from("plain-script", tmp_path)
    (folder / "train.py").write_text((folder / "train.py").read_text() + "\n# changed\n")
    (folder / "新文件.txt").write_bytes(b"untracked \x00\xff")
    status = _git(folder, "status", "--porcelain=v2")
    index = (folder / ".git/index").read_bytes()
    run = inst.submit(folder, "run=ls -la; cat train.py | tail -1", "resources.cards=0")
    inst.wait(run)
    assert _git(folder, "status", "--porcelain=v2") == status
    assert (folder / ".git/index").read_bytes() == index
    assert "# changed" in inst.cli("logs", run).stdout
    work = inst.attempt_folders()[-1] / "work"
    for path in folder.rglob("*"):
        rel = path.relative_to(folder)
        if path.is_file() and rel.parts[0] != ".git":
            assert (work / rel).read_bytes() == path.read_bytes(), rel


def _git(folder: Path, *args: str) -> bytes:
    return subprocess.run(["git", *args], cwd=folder, check=True, capture_output=True).stdout


def test_an_outside_run_needs_no_submit(inst: Installation, tmp_path: Path) -> None:
    code = (
        "import trackbed\n"
        "with trackbed.init(project='demo', name='outside', params={'lr': 3e-4}, tags=['a']) as run:\n"
        "    for step in range(50): run.log({'loss': 1 / (step + 1)}, step=step)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=inst.env, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr

    def finished() -> bool:
        rows = inst.json("runs", "name = 'outside'")
        rows = rows["runs"] if isinstance(rows, dict) else rows
        return bool(rows) and rows[0]["state"] == "finished"

    inst.until(finished, timeout_s=30, what="the outside run is finished")
    rows = inst.json("runs", "params.lr = 0.0003 and tags has 'a'")
    rows = rows["runs"] if isinstance(rows, dict) else rows
    assert len(inst.history(rows[0]["id"], "loss")) == 50
