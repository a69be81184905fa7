"""Capture of a working folder of 50,000 files: CPU seconds of this process and of git, beside git's own `add -A; write-tree`.

    python bench/capture.py [--files 50000] [--rounds 5] [--out bench/results/capture.json]

Wall time says nothing on a loaded machine, so CPU seconds are compared: user and system, children included. `first` reads
and searches every file for secrets; `again` is a capture in which nothing changed; `edited` one after ten files changed.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trackbed.sources.capture import Capture, capture

TARGET_S = 0.5


def cpu_s() -> float:
    """CPU seconds of this process and of its children that have ended."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def spent(work: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall seconds of some work."""
    before, began = cpu_s(), time.monotonic()
    work()
    return cpu_s() - before, time.monotonic() - began


def git(folder: Path, *args: str, env: dict[str, str] | None = None) -> None:
    subprocess.run(
        ["git", "-C", str(folder), *args], check=True, capture_output=True, env={**os.environ, **(env or {})}
    )


def write(folder: Path, files: int) -> None:
    """A repository of small modules, 100 in a folder, of 1 to 40 lines."""
    for at in range(files):
        place = folder / f"p{at // 2000}" / f"d{at // 100}" / f"m{at}.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"# {at}\n" + "x = 1\n" * (at % 40))
    git(folder, "init", "-q")
    git(folder, "config", "gc.auto", "0")
    git(folder, "config", "maintenance.auto", "false")
    git(folder, "add", "-A")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")


def as_git(folder: Path, aside: Path) -> None:
    """The tree id that git itself gives: a copy of the index, everything added, objects in a scratch folder."""
    (aside / "index").write_bytes((folder / ".git" / "index").read_bytes())
    (aside / "objects").mkdir(exist_ok=True)
    env = {
        "GIT_INDEX_FILE": str(aside / "index"), "GIT_OBJECT_DIRECTORY": str(aside / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(folder / ".git" / "objects"),
    }  # fmt: skip
    git(folder, "add", "-A", env=env)
    git(folder, "write-tree", env=env)


def measure(folder: Path, aside: Path, rounds: int, files: int) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {"first": [], "again": [], "edited": [], "git": []}
    for at in range(rounds):
        cache = aside / f"cache{at}"
        first: list[Capture] = []
        found["first"].append(spent(lambda c=cache, f=first: f.append(capture(folder, cache=c))))
        assert first[0].facts.files == files
        found["again"].append(spent(lambda c=cache: capture(folder, cache=c)))
        for one in range(10):
            (folder / f"p{one}" / f"d{one * 20}" / f"m{one * 2000}.py").write_text(f"round {at} of {one}\n")
        found["edited"].append(spent(lambda c=cache: capture(folder, cache=c)))
        git(folder, "checkout", "-q", "--", ".")
        found["git"].append(spent(lambda: as_git(folder, aside)))
        time.sleep(2.1)  # what was written a moment ago is read again, as git does it
    return found


def main() -> int:
    asked = argparse.ArgumentParser()
    asked.add_argument("--files", type=int, default=50_000)
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "capture.json")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory(prefix="trackbed-bench-", ignore_cleanup_errors=True) as name:
        folder, aside = Path(name, "work"), Path(name, "aside")
        folder.mkdir()
        aside.mkdir()
        write(folder, given.files)
        time.sleep(2.1)
        found = measure(folder, aside, given.rounds, given.files)
    git_cpu = statistics.median(cpu for cpu, _ in found["git"])
    version = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    rows: list[dict[str, Any]] = []
    for what in ("first", "again", "edited"):
        cpu = statistics.median(cpu for cpu, _ in found[what])
        rows.append({
            "what": f"capture of {given.files} files, {what}", "ours": round(cpu, 3), "peer": round(git_cpu, 3),
            "ratio": round(cpu / git_cpu, 2), "target": None if what == "first" else TARGET_S,
            "holds": None if what == "first" else cpu < TARGET_S, "unit": "CPU seconds", "n": given.rounds,
            "least": round(min(cpu for cpu, _ in found[what]), 3),
            "wall_s": round(statistics.median(wall for _, wall in found[what]), 3),
            "hardware": f"{os.cpu_count()} cores, {platform.machine()}, load {os.getloadavg()[0]:.1f}",
            "versions": {"python": platform.python_version(), "git": version},
            "command": f"python bench/capture.py --files {given.files} --rounds {given.rounds}",
        })  # fmt: skip
    given.out.write_text(json.dumps(rows, indent=1) + "\n")
    for row in rows:
        print(f"{row['what']}: {row['ours']} CPU s (git add -A; write-tree {row['peer']}), wall {row['wall_s']} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
