"""`trackbed quickstart`, small: from nothing to a registered model, twice, and no process is left behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.torch, pytest.mark.slow, pytest.mark.timeout(420)]


def test_the_quickstart_works_twice_and_leaves_no_server(tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRACKBED_", "LC_", "LANG"))}
    env = kept | {"TRACKBED_HOME": str(tmp_path / "home"), "LANG": "C.UTF-8"}
    for number in (1, 2):
        command = [sys.executable, "-m", "trackbed", "quickstart", "--steps", "12"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=180)
        assert done.returncode == 0, done.stdout + done.stderr
        for piece in ("stdlib@1", f"stdlib-gpt@{number}", f"demo#{number}", "card-hours", "http://127.0.0.1:"):
            assert piece in done.stdout, done.stdout
        assert "step " in done.stderr and "tokens/s" in done.stderr
        assert not (tmp_path / "home" / "server.json").exists()


def test_another_program_on_the_port_is_no_obstacle(tmp_path: Path) -> None:
    import socket

    from trackbed.cli import quickstart

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        assert quickstart._free_port(other.getsockname()[1]) == 0
