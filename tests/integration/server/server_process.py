"""A real server process on a home folder of its own, and people who talk to it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

CODE = """
import sys
from pathlib import Path
from trackbed.server.main import serve
from trackbed.server.settings import Settings
home, database = Path(sys.argv[1]), sys.argv[2]
serve(Settings(home=home, port=0, loops=False, cards=2, heartbeat_s=0.3, database_url=database))
"""


class Server:
    """`start`, `stop`, and requests as somebody."""

    def __init__(self, home: Path, database: str = "") -> None:
        self.home, self.database = home, database
        self.log = home.parent / f"{home.name}.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def start(self) -> "Server":
        began = time.monotonic()
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", CODE, str(self.home), self.database], stdout=log, stderr=log
            )
        while True:
            marker = self._marker()
            if marker.get("pid") == self.process.pid:
                self.url = marker["url"]
                try:
                    httpx.get(self.url + "/healthz").raise_for_status()
                    break
                except httpx.TransportError:
                    pass
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() - began < 60, self.log.read_text()
            time.sleep(0.01)
        self.started_s = time.monotonic() - began
        return self

    def _marker(self) -> dict[str, Any]:
        try:
            return json.loads((self.home / "server.json").read_text())
        except (OSError, ValueError):
            return {}

    def stop(self, number: int = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(20)

    @property
    def admin(self) -> str:
        return json.loads((self.home / "client" / "credentials.json").read_text())["token"]

    def ask(self, method: str, path: str, *, token: str | None = None, **more: Any) -> httpx.Response:
        headers = more.pop("headers", {})
        if token is None:
            token = self.admin
        if token:
            headers = {"Authorization": f"Bearer {token}", **headers}
        return httpx.request(method, self.url + path, headers=headers, timeout=20, **more)

    def json(self, method: str, path: str, **more: Any) -> Any:
        answer = self.ask(method, path, **more)
        assert answer.is_success, (answer.status_code, answer.text, self.log.read_text()[-2000:])
        return answer.json() if answer.content else None

    def person(self, name: str, **roles: str) -> str:
        """Make a person with these roles by space; return a token."""
        self.json("POST", "/api/v1/people", json={"name": name})
        for space, role in roles.items():
            self.json("PUT", f"/api/v1/spaces/{space}/members", json={"person": name, "role": role})
        return self.json("POST", "/api/v1/tokens", json={"person": name})["secret"]

    def browser(self, code: str = "") -> httpx.Client:
        """A browser that has signed in; its CSRF token is in `headers`, as the page does it."""
        client = httpx.Client(base_url=self.url, timeout=20)
        me = client.post("/api/v1/login", json={"code": code or self.admin})
        me.raise_for_status()
        client.headers["X-Trackbed-CSRF"] = me.json()["csrf"]
        return client


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("server") / "home").start()
    yield running
    running.stop()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path / "home")
    yield made
    if made.process is not None and made.process.poll() is None:
        os.kill(made.process.pid, signal.SIGKILL)
        made.process.wait()
