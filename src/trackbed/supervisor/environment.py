"""Whether the environment `current` is still the one that was pinned: the same packages, by the hashes of their file lists."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import msgspec
from blake3 import blake3

from trackbed.base.errors import Conflict, NotFound
from trackbed.wire.runs import EnvironmentRecord

_MOST_NAMES = 20
# Runs under the pinned interpreter, which need not have Trackbed installed.
_ASK = """
import importlib.metadata, json, platform, sys, sysconfig
found = []
for dist in importlib.metadata.distributions():
    name = dist.metadata["Name"]
    if name:
        record = next((str(dist.locate_file(f)) for f in dist.files or () if f.name == "RECORD"), "")
        found.append([name, dist.version, record])
print(json.dumps({"python": platform.python_implementation() + " " + platform.python_version(),
                  "platform": sysconfig.get_platform(), "packages": found}))
"""


def verify(document: dict[str, Any]) -> None:
    """Compare the environment on this machine with the record of the assignment.

    Raises:
        NotFound: `environment_gone`, its interpreter is not there or does not start.
        Conflict: `environment_drift`, with the names of what differs.
    """
    pinned = msgspec.convert(document, EnvironmentRecord)
    if pinned.kind != "current" or not pinned.executable:
        return
    try:
        done = subprocess.run(
            [pinned.executable, "-c", _ASK],
            capture_output=True,
            timeout=120,
            check=True,
            cwd="/",
            stdin=subprocess.DEVNULL,
        )
        facts = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as fault:
        raise NotFound("environment_gone", executable=pinned.executable, what=str(fault)) from fault
    found = {_plain(name): (version, _digest(record)) for name, version, record in reversed(facts["packages"])}
    wanted = {_plain(package.name): (package.version, package.digest) for package in pinned.packages}
    changes = differences(wanted, found)
    if pinned.python and facts["python"] != pinned.python:
        changes.insert(0, f"{pinned.python} -> {facts['python']}")
    if changes:
        more = f" (+{len(changes) - _MOST_NAMES})" if len(changes) > _MOST_NAMES else ""
        raise Conflict("environment_drift", count=len(changes), changes=", ".join(changes[:_MOST_NAMES]) + more)


def differences(wanted: dict[str, tuple[str, str]], found: dict[str, tuple[str, str]]) -> list[str]:
    """Return one text a package that was added, removed, changed its version, or changed its files."""
    changes: list[str] = []
    for name in sorted(wanted.keys() | found.keys()):
        before, after = wanted.get(name), found.get(name)
        if before == after:
            continue
        if before is None and after is not None:
            changes.append(f"{name} added ({after[0]})")
        elif after is None and before is not None:
            changes.append(f"{name} {before[0]} removed")
        elif before is not None and after is not None and before[0] != after[0]:
            changes.append(f"{name} {before[0]} -> {after[0]}")
        else:
            changes.append(f"{name} changed its files")
    return changes


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _digest(record: str) -> str:
    try:
        return blake3(Path(record).read_bytes()).hexdigest() if record else ""
    except OSError:
        return ""
