"""Leases under load: 16 programs log through one SQLite server while the lease of a real attempt is renewed.

    python bench/leases.py [--writers 16] [--seconds 20]

Renewals go over HTTP under the attempt's own token, as its supervisor's do, 20 a second; each writer is a process with the
real SDK that logs 20 metrics a step as fast as it may for the whole time. Nothing may be lost and no renewal refused.
"""

import argparse
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import httpx

RESULT = Path(__file__).resolve().parent / "results" / "leases.json"
WRITER = """
import sys, time, trackbed
steps, until = 0, time.monotonic() + float(sys.argv[2])
with trackbed.init(project="demo", name="writer-" + sys.argv[1]) as run:
    while time.monotonic() < until:
        run.log({f"m{i}": steps + i / 7 for i in range(20)}, step=steps)
        steps += 1
        time.sleep(0.005)
print(steps)
"""


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--writers", type=int, default=16)
    asked.add_argument("--seconds", type=float, default=20.0)
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        env = {name: value for name, value in os.environ.items() if not name.startswith("TRACKBED_")}
        env |= {"TRACKBED_HOME": str(home), "TRACKBED_QUIET": "1"}
        with (Path(folder) / "server.log").open("wb") as log:
            server = subprocess.Popen(
                [sys.executable, "-m", "trackbed", "up", "--port", str(port)], env=env, stdout=log, stderr=log
            )
        try:
            work = Path(folder) / "work"
            work.mkdir()
            return measure(given.writers, given.seconds, work, home, port, env)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(30)


def measure(writers: int, seconds: float, folder: Path, home: Path, port: int, env: dict[str, str]) -> int:
    wait_for(lambda: (home / "server.json").exists())
    (folder / "job.yaml").write_text(f"run: sleep {seconds * 3 + 30}\nresources: {{cards: 0}}\n")
    run = json.loads(trackbed(env, folder, "submit", "job.yaml", "--json"))["run_id"]
    wait_for(lambda: json.loads(trackbed(env, folder, "show", run, "--json"))["run"]["state"] == "running")
    assignment = json.loads(next(home.glob("nodes/*/attempts/*/assignment.json")).read_text())
    url = f"http://127.0.0.1:{port}/api/v1/attempts/{assignment['attempt_id']}/lease"
    headers = {"Authorization": f"Bearer {assignment['token']}"}
    body = {"epoch": assignment["epoch"], "node": "local", "phase": "running", "wait_s": 0}

    programs = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(n), str(seconds)], env=env, stdout=subprocess.PIPE, text=True
        )
        for n in range(writers)
    ]
    took: list[float] = []
    refused = 0
    with httpx.Client(timeout=30) as http:
        while any(program.poll() is None for program in programs):
            began = time.perf_counter()
            answer = http.post(url, json=body, headers=headers)
            took.append(time.perf_counter() - began)
            refused += (
                not (answer.status_code == 200 or answer.status_code == 201)
                or answer.json().get("verdict") == "superseded"
            )
            time.sleep(max(0.0, 0.05 - took[-1]))
    logged = {f"writer-{n}": int(program.communicate()[0]) for n, program in enumerate(programs)}
    lost = missing(env, folder, logged)
    load = os.getloadavg()[0]
    trackbed(env, folder, "stop", run)
    took.sort()
    p99_ms = 1000 * took[len(took) * 99 // 100]
    row = {
        "what": f"lease renewal p99 while {writers} programs log", "ours": round(p99_ms, 1), "peer": None, "ratio": None,
        "target": 250, "holds": p99_ms <= 250 and not lost and not refused, "unit": "ms", "n": len(took),
        "p50_ms": round(1000 * took[len(took) // 2], 1), "max_ms": round(1000 * took[-1], 1), "refused": refused,
        "points_logged": 20 * sum(logged.values()), "points_lost": lost, "load": round(load, 1),
        "hardware": f"{os.cpu_count()} cores, {platform.machine()}",
        "versions": {"trackbed": version("trackbed"), "python": platform.python_version()},
        "command": "python " + " ".join(["bench/leases.py", *sys.argv[1:]]),
    }  # fmt: skip
    RESULT.write_text(json.dumps([row], indent=1) + "\n")
    print(json.dumps(row, indent=1))
    return 0 if row["holds"] else 1


def missing(env: dict[str, str], folder: Path, logged: dict[str, int]) -> int:
    """Points that were logged and cannot be read back within a minute."""
    code = (
        "import sys, trackbed; c = trackbed.Client();"
        "print(sum(len(c.history('demo/' + sys.argv[1], f'm{i}')) for i in (0, 19)))"
    )
    lost = 0
    for name, steps in logged.items():
        until, found = time.monotonic() + 60, -1
        while found < 2 * steps and time.monotonic() < until:
            done = subprocess.run(
                [sys.executable, "-c", code, name], env=env, capture_output=True, text=True, cwd=folder
            )
            found = int(done.stdout) if done.returncode == 0 else -1
        lost += 10 * (2 * steps - max(found, 0))
    return lost


def trackbed(env: dict[str, str], folder: Path, *words: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "trackbed", *words], env=env, cwd=folder, check=True, capture_output=True, text=True
    ).stdout


def wait_for(true: object, limit_s: float = 60.0) -> None:
    until = time.monotonic() + limit_s
    while not true():  # type: ignore[operator]
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(0.2)


if __name__ == "__main__":
    raise SystemExit(main())
