"""Real supervisors and real ranks against a small server of our own that plays lease, frames and reports."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trackbed.base.entropy import new_id
from trackbed.clusters import LocalEngine, open_engine
from trackbed.formats import spool as frames
from trackbed.storage import open_store
from trackbed.wire.attempts import Assignment, ExitReport, LeaseSettings, NodeSlot, OnPreempt, Order
from trackbed.wire.runs import CheckpointView
from trackbed.wire.series import FramesReceipt


class FakeServer:
    """Keeps what it is told. `mode`: ok | broken (500) | garbage (200 and nonsense) | away (connections are dropped)."""

    def __init__(self) -> None:
        self.mode = "ok"
        self.orders: dict[str, Order] = {}
        self.superseded = False
        self.frames: list[frames.Frame] = []
        self.seen: dict[str, int] = {}
        self.reports: list[tuple[str, Any]] = []
        self.leases: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self._lock = threading.Lock()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                fake.requests.append(self.path)
                if fake.mode == "away":
                    self.close_connection = True
                    return
                if fake.mode == "broken":
                    self._answer(500, b"<html>oops</html>")
                elif fake.mode == "garbage":
                    self._answer(200, b"\xff\xfe not what you think")
                else:
                    with contextlib.suppress(BrokenPipeError):  # a supervisor that has ended listens no more
                        self._answer(*fake.answer(self.path, body))

            def do_GET(self) -> None:
                fake.requests.append(self.path)
                self._answer(200, json.dumps({"token": self.headers.get("Authorization", "")}).encode())

            def _answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                if status != 204:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if status != 204:
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                return

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    def answer(self, path: str, body: bytes) -> tuple[int, bytes]:
        what = path.rsplit("/", 1)[1]
        if what == "frames":
            return 200, self._take_frames(body)
        said = json.loads(body)
        attempt = path.split("/")[4]
        if what == "lease":
            return 200, self._lease(attempt, said)
        with self._lock:
            self.reports.append((what, said))
        if what == "checkpoints":
            return 200, msgspec.json.encode(CheckpointView(step=said["step"], name=said["name"], digest=said["digest"]))
        return 204, b""

    def _lease(self, attempt: str, said: dict[str, Any]) -> bytes:
        self.leases.append(said)
        deadline = time.monotonic() + said.get("wait_s", 0)
        while True:
            order = self.orders.get(attempt)
            due = order is not None and (order.id != said.get("order_seen", "") or order.withdrawn)
            if due or self.superseded or time.monotonic() >= deadline:
                reply = {"verdict": "superseded" if self.superseded else "held", "lease_s": 4}
                return msgspec.json.encode(reply | ({"order": order} if due else {}))
            time.sleep(0.02)

    def _take_frames(self, body: bytes) -> bytes:
        found = frames.decode(body)
        assert found.lost == 0
        with self._lock:
            for frame in found.frames:
                if frame.header.seq > self.seen.get(frame.header.client, 0):
                    self.seen[frame.header.client] = frame.header.seq
                    self.frames.append(frame)
        clients = {frame.header.client for frame in found.frames}
        return msgspec.json.encode(
            FramesReceipt(frames=len(found.frames), watermarks={c: self.seen[c] for c in clients})
        )

    def lines(self, stream: str = "stdout", rank: int | None = None) -> list[bytes]:
        found: list[bytes] = []
        for frame in self.frames:
            if frame.header.kind == frames.LOG and (rank is None or frame.header.rank == rank):
                found += [line.data for line in frames.decode_lines(frame.body) if line.stream == stream]
        return found

    def of(self, kind: str) -> list[Any]:
        return [said for what, said in self.reports if what == kind]

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


class Bed:
    """One node home, one store, one fake server; starts attempts and waits for their ends."""

    def __init__(self, home: Path, server: FakeServer) -> None:
        self.home, self.server = home, server
        self.engine: LocalEngine = open_engine("local", home=home, cards=4)
        self.store_url = f"file://{home}/store"
        self.store = open_store(self.store_url)
        self.started: list[str] = []

    def tree(self, **files: str) -> str:
        """Put files into the store (name with `__` for the dot) and return the tree's digest."""
        root = self.home / new_id("src")
        root.mkdir()
        for name, text in files.items():
            (root / name.replace("__", ".")).write_text(textwrap.dedent(text))
        return self.store.put_tree(root).digest

    def assignment(self, command: str = "", *, cards: int = 1, **fields: Any) -> Assignment:
        base: dict[str, Any] = {
            "attempt_id": new_id("att"), "number": 1, "epoch": 1, "run_id": new_id("run"), "run_ref": "demo#1",
            "project": "demo", "server_url": self.server.url, "token": "tba_secret", "store_url": self.store_url,
            "nodes": [NodeSlot(node="local", cards=list(range(cards)))], "command": command,
            "environment": {"executable": sys.executable},
            "lease": LeaseSettings(heartbeat_s=0.5, lease_s=4, orphan_limit_s=60),
            "on_preempt": OnPreempt(grace_s=6.0),
        }  # fmt: skip
        return Assignment(**(base | fields))

    def start(self, command: str = "", **fields: Any) -> str:
        assignment = self.assignment(command, **fields)
        self.started.append(assignment.attempt_id)
        self.engine.submit(assignment)
        return assignment.attempt_id

    def run(self, command: str = "", *, timeout_s: float = 30, **fields: Any) -> ExitReport:
        return self.wait(self.start(command, **fields), timeout_s=timeout_s)

    def wait(self, attempt: str, *, timeout_s: float = 30) -> ExitReport:
        """Wait for the exit report and for the supervisor to leave."""
        self.until(
            lambda: self.server.of("exit") and self.phase(attempt) == "exited", timeout_s=timeout_s, attempt=attempt
        )
        assert len(self.server.of("exit")) == 1, "the exit is told once"
        return msgspec.convert(self.server.of("exit")[0], ExitReport)

    def phase(self, attempt: str) -> str:
        return self.engine.observe([attempt])[0].phase.value

    def folder(self, attempt: str) -> Path:
        return self.engine.folder(attempt).root

    def order(
        self, attempt: str, kind: str, *, grace_s: float = 6.0, withdrawn: bool = False, id: str = "ord_1"
    ) -> None:
        self.server.orders[attempt] = Order(
            id=id, kind=kind, grace_s=grace_s, reason=f"asked to {kind}", withdrawn=withdrawn
        )

    def rank_pids(self, attempt: str) -> list[int]:
        facts = self.engine.folder(attempt).state()
        return [rank.pid for rank in facts.ranks] if facts else []

    def until(self, true: Callable[[], object], *, timeout_s: float = 20, attempt: str = "") -> None:
        deadline = time.monotonic() + timeout_s
        while not true():
            if time.monotonic() > deadline:
                log = (self.folder(attempt) / "logs" / "supervisor.log").read_text()[-4000:] if attempt else ""
                raise AssertionError(
                    f"not within {timeout_s} s; {self.engine.observe([attempt]) if attempt else ''}\n{log}"
                )
            time.sleep(0.05)

    def until_file(self, attempt: str, name: str, *, timeout_s: float = 20) -> Path:
        path = self.folder(attempt) / name
        self.until(path.exists, timeout_s=timeout_s, attempt=attempt)
        return path

    def end(self) -> None:
        for attempt in self.started:
            with contextlib.suppress(Exception):
                self.engine.kill(attempt)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    fake = FakeServer()
    yield fake
    fake.close()


@pytest.fixture
def bed(tmp_path: Path, server: FakeServer) -> Iterator[Bed]:
    made = Bed(tmp_path / "home", server)
    yield made
    made.end()


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


@pytest.fixture
def is_alive() -> Callable[[int], bool]:
    return alive


@pytest.fixture
def kill9() -> Callable[[int], None]:
    return lambda pid: os.kill(pid, signal.SIGKILL)
