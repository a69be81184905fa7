"""Samples of a run: what went in and what came out, fetched, and replayed against a command."""

import json
import math
import subprocess
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import msgspec

from trackbed.base.errors import Damaged

REPLAY_S = 600.0


class Sample(msgspec.Struct, kw_only=True):
    """One file of the kind `sample`, as `run.log_sample` wrote it."""

    version: int = 1
    name: str
    step: int
    rank: int = 0
    inputs: Any = None
    outputs: Any = None
    facts: dict[str, Any] = {}
    masked: list[str] = []
    path: str = ""


class Replayed(NamedTuple):
    """`verdict`: equal | differs | failed | masked; `what` says where or why."""

    sample: Sample
    verdict: str
    what: str = ""


def read(path: str, data: bytes) -> Sample:
    """Return the sample in a file.

    Raises:
        Damaged: `sample_unreadable`.
    """
    try:
        return msgspec.structs.replace(msgspec.json.decode(data, type=Sample), path=path)
    except msgspec.MsgspecError as broken:
        raise Damaged("sample_unreadable", path=path, what=str(broken)[:200]) from None


def replay(sample: Sample, command: Sequence[str], *, tolerance: float = 0.0, timeout_s: float = REPLAY_S) -> Replayed:
    """Give the inputs to a command as JSON and compare what it writes; one with masked inputs is not run."""
    if sample.masked:
        return Replayed(sample, "masked", ", ".join(sample.masked))
    try:
        done = subprocess.run(
            list(command), input=json.dumps(sample.inputs, ensure_ascii=False).encode(), capture_output=True, timeout=timeout_s
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as fault:
        return Replayed(sample, "failed", str(fault)[:300])
    if done.returncode:
        return Replayed(sample, "failed", f"{done.returncode}: {done.stderr[-300:].decode('utf-8', 'replace').strip()}")
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return Replayed(sample, "failed", done.stdout[:100].decode("utf-8", "replace"))
    where = difference(sample.outputs, found, tolerance)
    return Replayed(sample, "differs" if where else "equal", where)


def difference(kept: Any, found: Any, tolerance: float, path: str = "$") -> str:
    """Return where two documents first differ, with both values; empty where they are equal."""
    numbers = isinstance(kept, int | float) and isinstance(found, int | float)
    if numbers and not isinstance(kept, bool) and not isinstance(found, bool):
        close = kept == found or math.isclose(kept, found, rel_tol=0.0, abs_tol=tolerance)
        return "" if close else f"{path}: {kept!r} → {found!r}"
    if isinstance(kept, dict) and isinstance(found, dict):
        left, right = cast(dict[str, Any], kept), cast(dict[str, Any], found)
        for key in sorted(left.keys() ^ right.keys()):
            return f"{path}.{key}"
        return next((one for key in left if (one := difference(left[key], right[key], tolerance, f"{path}.{key}"))), "")
    if isinstance(kept, list) and isinstance(found, list):
        ours, theirs = cast(list[Any], kept), cast(list[Any], found)
        if len(ours) != len(theirs):
            return f"{path}: {len(ours)} → {len(theirs)}"
        pairs = enumerate(zip(ours, theirs, strict=True))
        return next((one for at, (a, b) in pairs if (one := difference(a, b, tolerance, f"{path}[{at}]"))), "")
    return "" if type(kept) is type(found) and kept == found else f"{path}: {kept!r} → {found!r}"[:300]
