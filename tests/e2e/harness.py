"""A real installation in a temporary home: server process, CLI processes, everything over HTTP."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[2]
EXAMPLES = REPO / "examples"
# heartbeat, suspect, lease, replace, grace: the design's table, shrunk so that stories take seconds
LEASE = "0.5,2,4,6,15"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Installation:
    """One home folder with a server that can be started, killed and started again."""

    def __init__(self, home: Path, *, cards: int = 2) -> None:
        self.home, self.cards, self.port = home, cards, free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.log = home.parent / f"{home.name}-server.log"

    @property
    def env(self) -> dict[str, str]:
        env = {k: v for k, v in os.environ.items() if not k.startswith("TRACKBED_")}
        env |= {
            "TRACKBED_HOME": str(self.home),
            "TRACKBED_LEASE_TIMES": LEASE,
            "PYTHONUNBUFFERED": "1",
            "LANG": "C.UTF-8",
        }
        return env

    def up(self) -> Installation:
        command = [sys.executable, "-m", "trackbed", "up", "--port", str(self.port), "--cards", str(self.cards)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, env=self.env, stdout=log, stderr=log, start_new_session=True)
        self.until(self.answers, timeout_s=40, what="server answers")
        return self

    def answers(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            raise AssertionError(f"server ended with {self.process.returncode}:\n{self.log.read_text()[-3000:]}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def kill(self, sig: int = signal.SIGKILL) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(sig)
            self.process.wait(30)

    def cli(self, *args: str, cwd: Path | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "trackbed", *args],
            env=self.env, cwd=cwd or self.home, capture_output=True, text=True, timeout=150, errors="replace",
        )  # fmt: skip
        if check and done.returncode:
            raise AssertionError(
                f"trackbed {' '.join(args)} → {done.returncode}\n{done.stdout}\n{done.stderr}\n{self.log.read_text()[-2000:]}"
            )
        return done

    def json(self, *args: str, cwd: Path | None = None) -> Any:
        return json.loads(self.cli(*args, "--json", cwd=cwd).stdout)

    def submit(self, folder: Path, *sets: str, file: str = "trackbed.yaml") -> str:
        flags = [part for item in sets for part in ("--set", item)]
        return str(self.json("submit", file, *flags, cwd=folder)["run_id"])

    def show(self, run: str) -> dict[str, Any]:
        """The record; lists that are empty are left out on the wire and filled in here."""
        return {"checkpoints": [], "artifacts": [], "attempts": [], "metric_keys": [], "summary": {}} | self.json(
            "show", run
        )

    def state(self, run: str) -> str:
        return str(self.show(run)["run"]["state"])

    def wait(self, run: str, state: str = "finished", *, timeout_s: float = 120) -> dict[str, Any]:
        """Wait for the state; any other terminal state fails at once with the record and the last log lines."""
        deadline = time.monotonic() + timeout_s
        while True:
            detail = self.show(run)
            now = detail["run"]["state"]
            if now == state:
                return detail
            if now in ("finished", "failed", "stopped") or time.monotonic() > deadline:
                logs = self.cli("logs", run, check=False).stdout[-3000:]
                raise AssertionError(
                    f"{run} is {now}, wanted {state}\n{json.dumps(detail['attempts'], indent=1)[:3000]}\n{logs}\n{self.log.read_text()[-1500:]}"
                )
            time.sleep(0.4)

    def until(self, true: Callable[[], object], *, timeout_s: float = 60, what: str = "") -> None:
        deadline = time.monotonic() + timeout_s
        while not true():
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"not within {timeout_s} s: {what}\n{self.log.read_text()[-3000:] if self.log.exists() else ''}"
                )
            time.sleep(0.1)

    def attempt_folders(self) -> list[Path]:
        return sorted(
            (path.parent for path in self.home.glob("nodes/*/attempts/*/assignment.json")),
            key=lambda p: p.stat().st_mtime,
        )

    def supervisor_pids(self) -> list[int]:
        found = []
        for folder in self.attempt_folders():
            with contextlib.suppress(OSError, ValueError, KeyError):
                pid = int(json.loads((folder / "supervisor.json").read_text())["pid"])
                if Path(f"/proc/{pid}").exists():
                    found.append(pid)
        return found

    def history(self, run: str, key: str) -> list[list[Any]]:
        """All counted points as logged: [step, time, value, …]."""
        code = (
            "import sys, json, msgspec, trackbed; c = trackbed.Client();"
            "print(json.dumps(msgspec.to_builtins(c.history(sys.argv[1], sys.argv[2]))))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, run, key], env=self.env, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def end(self) -> None:
        """End the server and every supervisor that this installation started."""
        for pid in self.supervisor_pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.kill(signal.SIGTERM)


@contextlib.contextmanager
def installation(folder: Path, *, cards: int = 2) -> Iterator[Installation]:
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    inst = Installation(home, cards=cards)
    inst.up()
    try:
        yield inst
    finally:
        inst.end()


def project_from(example: str, folder: Path) -> Path:
    """Copy an example into a git repository of its own."""
    target = folder / example
    shutil.copytree(EXAMPLES / example, target)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for args in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *args], cwd=target, check=True, capture_output=True)
    return target
