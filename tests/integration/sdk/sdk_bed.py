"""Programs that log, and a server that answers badly."""

import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from trackbed.client import outside
from trackbed.client.outside import OutsideFolder
from trackbed.formats import spool
from trackbed.formats.spool import Frame

JOB = ("TRACKBED_RUN", "TRACKBED_CONTROL", "TRACKBED_ATTEMPT", "TRACKBED_OUTPUT", "TRACKBED_PARAMS")


def program(code: str, folder: Path, *, wait: bool = True, **env: str) -> "subprocess.Popen[str]":
    """Start a program of its own; by default wait until it has ended."""
    path = folder / f"program-{time.monotonic_ns()}.py"
    path.write_text(textwrap.dedent(code))
    process = subprocess.Popen(
        [sys.executable, "-X", "dev", str(path)] if env.pop("DEV", "") else [sys.executable, str(path)],
        env={**os.environ, **env}, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    if wait:
        out, err = process.communicate(timeout=60)
        process.out, process.err = out, err  # type: ignore[attr-defined]
    return process


def job(folder: Path, **more: str) -> dict[str, str]:
    """Return the environment of a rank in a job whose control folder lies in `folder`."""
    for name in ("control/spool", "output", "checkpoints"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "params.json").write_text(json.dumps({"lr": 0.1, "steps": 5}))
    return {
        "TRACKBED_RUN": "run_0123456789abcdef", "TRACKBED_ATTEMPT": "2", "TRACKBED_INCARNATION": "1",
        "TRACKBED_CONTROL": str(folder / "control"), "TRACKBED_OUTPUT": str(folder / "output"),
        "TRACKBED_CHECKPOINTS": str(folder / "checkpoints"), "TRACKBED_PARAMS": str(folder / "params.json"), **more,
    }  # fmt: skip


def spooled(folder: Path) -> list[Frame]:
    """Return the frames of every spool file of a folder, in the order of files."""
    return [frame for path in sorted(folder.glob("*.tbs")) for frame in spool.decode(path.read_bytes()).frames]


def points(frames: list[Frame]) -> list[tuple[str, int, float]]:
    """Return (key, step, value) of metric frames in the order logged."""
    found: list[tuple[str, int, float]] = []
    for frame in frames:
        if frame.header.kind == spool.METRICS:
            said = spool.decode_metrics(frame.body)
            found += [
                (said.keys[at], step, value) for at, step, value in zip(said.key, said.step, said.value, strict=True)
            ]
    return found


def only_folder() -> OutsideFolder:
    (folder,) = until(lambda: outside.folders(outside.spool_home()))
    return folder


def until(what: Callable[[], Any], *, timeout_s: float = 30.0) -> Any:
    deadline = time.monotonic() + timeout_s
    while not (found := what()):
        assert time.monotonic() < deadline, "it did not become true in time"
        time.sleep(0.05)
    return found


class BadServer:
    """Answers by `mode`: down (closes), broken (500), garbage (200 and nonsense), empty (200 and {}), html."""

    def __init__(self) -> None:
        self.mode, self.asked = "broken", 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                outer.asked += 1
                self.rfile.read(int(self.headers.get("Content-Length", "0")))
                if outer.mode == "down":
                    self.close_connection = True
                    return
                status, body = {
                    "broken": (500, b"oops"), "garbage": (200, b"\xff\x00nonsense"), "empty": (200, b"{}"),
                    "html": (200, b"<html>log in</html>"), "problem": (503, b'{"type":"x","status":503,"code":"y"}'),
                }[outer.mode]  # fmt: skip
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                return

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.port = self._http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def bad_server() -> Iterator[BadServer]:
    made = BadServer()
    yield made
    made.close()
