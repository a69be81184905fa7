"""Every test, one file a process, resumable: what passed for the same sources is not run again.

    python scripts/full.py [--budget SECONDS] [--fresh] [PATH …]

With a budget, what does not fit is named at the end. The last line is `N passed, N failed`.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STATE = ROOT / ".pytest_cache" / "full.json"
# Cheap and telling first: a budget that runs out should have seen the most.
ORDER = ("unit", "architecture", "docs", "contract", "integration", "e2e", "numerics")
COUNTS = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|deselected)")


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--budget", type=float, default=0.0, help="seconds; 0: no limit")
    asked.add_argument("--fresh", action="store_true", help="forget what passed before")
    asked.add_argument("--expression", "-m", default="not gpu and not multi_gpu", help="marker expression of pytest")
    asked.add_argument("paths", nargs="*", default=["tests"])
    given = asked.parse_args()
    began = time.monotonic()
    sources = digest()
    known = {} if given.fresh else read_state(sources, given.expression)
    files = tests(given.paths, given.expression)
    passed, failed, left_out = 0, 0, []
    for path in files:
        name = str(path.relative_to(ROOT))
        if name in known:
            passed += known[name]
            continue
        left = given.budget - (time.monotonic() - began) if given.budget else 0.0
        if given.budget and left < 20:
            left_out.append(name)
            continue
        counts = run(path, given.expression, limit_s=left or None)
        if counts and {"failed", "error", "errors"} & counts.keys():
            print(f"again  {name}: a busy machine can miss a time limit; the second try counts", flush=True)
            left = given.budget - (time.monotonic() - began) if given.budget else 0.0
            counts = run(path, given.expression, limit_s=max(left, 20.0) if given.budget else None)
        if counts is None:
            left_out.append(name)
            continue
        passed += counts.get("passed", 0)
        wrong = counts.get("failed", 0) + counts.get("error", 0) + counts.get("errors", 0)
        failed += wrong
        if not wrong:
            known[name] = counts.get("passed", 0)
            write_state(sources, given.expression, known)
    if left_out:
        print(f"\nLeft out, because the time was over ({len(left_out)} of {len(files)} files):")
        print("\n".join(f"  {name}" for name in left_out))
    else:
        print(f"\nNothing was left out ({len(files)} files).")
    if passed + failed == 0:
        print("No test was run.")
        return 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def run(path: Path, expression: str, *, limit_s: float | None) -> dict[str, int] | None:
    """Run one file; None where the time ran out before it ended."""
    name = path.relative_to(ROOT)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", expression, str(name)]
    began = time.monotonic()
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        out, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return None
    counts = {what: int(number) for number, what in COUNTS.findall(out.strip().splitlines()[-1] if out.strip() else "")}
    if (
        process.returncode not in (0, 5)
        and not counts.get("failed")
        and not counts.get("error")
        and not counts.get("errors")
    ):
        counts["errors"] = 1
    bad = process.returncode not in (0, 5)
    told = ", ".join(f"{number} {what}" for what, number in counts.items())
    print(f"{'FAILED' if bad else 'ok':6} {time.monotonic() - began:6.1f} s  {name}  {told}", flush=True)
    if bad:
        print(out, flush=True)
    return counts


def tests(paths: list[str], expression: str) -> list[Path]:
    """Return the files that have a test of this expression, cheap tiers first."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-m", expression]
    out = subprocess.run([*command, *paths], cwd=ROOT, capture_output=True, text=True)
    found = {ROOT / line.partition("::")[0] for line in out.stdout.splitlines() if "::" in line}
    if out.returncode not in (0, 5):  # a file that cannot be collected is run, and fails by name
        found |= {ROOT / name for name in re.findall(r"^ERROR (tests/\S+\.py)", out.stdout, re.M)}

    def place(path: Path) -> tuple[int, str]:
        tier = path.relative_to(ROOT).parts[1]
        return (ORDER.index(tier) if tier in ORDER else len(ORDER), str(path))

    return sorted(found, key=place)


def digest() -> str:
    """Return a digest of everything that a test may depend on."""
    made = hashlib.sha256(sys.version.encode())
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    for name in sorted(listed.split(b"\0")):
        path = ROOT / os.fsdecode(name)
        if name and path.is_file():
            made.update(name + b"\0" + path.read_bytes() + b"\0")
    return made.hexdigest()


def read_state(sources: str, expression: str) -> dict[str, int]:
    try:
        state = json.loads(STATE.read_text())
    except (OSError, ValueError):
        return {}
    same = state.get("sources") == sources and state.get("expression") == expression
    return dict(state["passed"]) if same else {}


def write_state(sources: str, expression: str, passed: dict[str, int]) -> None:
    STATE.parent.mkdir(exist_ok=True)
    part = STATE.with_suffix(".part")
    part.write_text(json.dumps({"sources": sources, "expression": expression, "passed": passed}))
    part.replace(STATE)


if __name__ == "__main__":
    raise SystemExit(main())
