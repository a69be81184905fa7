"""The health of a node: disk, sync, clock, driver, cards, packages, network, storage. Each check gives one verdict and one number.

Pure of the database and of any room: folders, addresses and the last state come in as arguments, so any node can run it.
"""

import os
import secrets
import shutil
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from trackbed.base.errors import TrackbedError
from trackbed.sources.environment import record_current
from trackbed.sources.surroundings import around

Verdict = Literal["ok", "warn", "bad"]
_GIB = 1 << 30
_SYNCS = 20
_SYNC_WARN_MS, _SYNC_BAD_MS = 100.0, 1000.0
_ROUND_WARN_MS, _ROUND_BAD_MS = 1000.0, 10_000.0
_CLOCK_WARN_S, _CLOCK_BAD_S = 1.0, 30.0
_TIMEOUT_S = 10.0


class Look(NamedTuple):
    """What one check saw. `value` is in `unit`; `params` fill the sentence `doctor.<check>`; `fault` says why it failed."""

    check: str
    verdict: Verdict
    value: float = 0.0
    unit: str = ""
    params: dict[str, Any] = {}


@dataclass
class Memory:
    """What the last look saw, to notice what changed: kept by the process that looks."""

    wall_less_monotonic_s: float | None = None
    seen: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Ground:
    """Where to look. `round_trip` writes, reads and removes a few bytes in the store; it raises what the store says."""

    folder: Path
    server_url: str = ""
    round_trip: Callable[[bytes], bytes] | None = None
    cards: tuple[str, ...] = ()


def examine(ground: Ground, memory: Memory) -> list[Look]:
    """Run every check; one that cannot be run is `bad` with its reason, and never stops the others."""
    looks: list[Look] = []
    for name, check in _CHECKS.items():
        try:
            looks += check(ground, memory)
        except (OSError, TrackbedError, ValueError) as fault:
            looks.append(Look(name, "bad", params={"fault": str(fault) or type(fault).__name__}))
    return looks


def _disk(ground: Ground, _memory: Memory) -> Iterator[Look]:
    usage = shutil.disk_usage(ground.folder)
    share = usage.free / usage.total
    verdict: Verdict = "bad" if usage.free < _GIB else "warn" if share < 0.05 or usage.free < 5 * _GIB else "ok"
    params = {"free_gib": round(usage.free / _GIB, 1), "percent": round(100 * share), "path": str(ground.folder)}
    yield Look("disk", verdict, float(usage.free), "B", params)


def _sync(ground: Ground, _memory: Memory) -> Iterator[Look]:
    """Seconds that one small durable write takes; the slowest of a few tells what a commit may wait for."""
    path = ground.folder / f".doctor-{secrets.token_hex(4)}"
    taken: list[float] = []
    try:
        with path.open("wb") as file:
            for _ in range(_SYNCS):
                begun_s = time.perf_counter()
                file.write(bytes(4096))
                file.flush()
                os.fsync(file.fileno())
                taken.append(1000 * (time.perf_counter() - begun_s))
    finally:
        path.unlink(missing_ok=True)
    taken.sort()
    middle, slowest = taken[len(taken) // 2], taken[-1]
    params = {"median_ms": round(middle, 2), "slowest_ms": round(slowest, 1)}
    yield Look("fsync", _limit(middle, _SYNC_WARN_MS, _SYNC_BAD_MS), middle, "ms", params)


def _storage(ground: Ground, _memory: Memory) -> Iterator[Look]:
    if ground.round_trip is None:
        return
    sent, begun_s = secrets.token_bytes(4096), time.perf_counter()
    if ground.round_trip(sent) != sent:
        yield Look("storage", "bad", params={"fault": "other bytes came back"})
        return
    taken_ms = 1000 * (time.perf_counter() - begun_s)
    yield Look("storage", _limit(taken_ms, _ROUND_WARN_MS, _ROUND_BAD_MS), taken_ms, "ms", {"ms": round(taken_ms, 1)})


def _network(ground: Ground, _memory: Memory) -> Iterator[Look]:
    if not ground.server_url:
        return
    begun_s = time.perf_counter()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{ground.server_url}/healthz", timeout=_TIMEOUT_S) as answer:
        answer.read(1000)
    taken_ms = 1000 * (time.perf_counter() - begun_s)
    yield Look("network", _limit(taken_ms, _ROUND_WARN_MS, _ROUND_BAD_MS), taken_ms, "ms", {"ms": round(taken_ms, 1)})


def _clock(_ground: Ground, memory: Memory) -> Iterator[Look]:
    """How far somebody moved the wall clock since the last look: the monotonic clock goes on as it was."""
    now_s = time.time() - time.monotonic()
    before_s, memory.wall_less_monotonic_s = memory.wall_less_monotonic_s, now_s
    moved_s = 0.0 if before_s is None else now_s - before_s
    yield Look("clock", _limit(abs(moved_s), _CLOCK_WARN_S, _CLOCK_BAD_S), moved_s, "s", {"seconds": round(moved_s, 2)})


def _driver(ground: Ground, memory: Memory) -> Iterator[Look]:
    """The driver is the one that was there before, and no card has left."""
    driver, count = around().driver, len(ground.cards)
    before, cards_before = memory.seen.get("driver"), int(memory.seen.get("cards", count))
    memory.seen |= {"driver": driver, "cards": str(max(count, cards_before))}
    verdict: Verdict = "bad" if count < cards_before else "warn" if before is not None and before != driver else "ok"
    params = {"driver": driver or "-", "before": before or driver or "-", "cards": count, "cards_before": cards_before}
    yield Look("driver", verdict, float(count), "cards", params)


def _packages(_ground: Ground, memory: Memory) -> Iterator[Look]:
    """The interpreter of this process still has the packages that it had, with the files that they came with."""
    record = record_current()
    before, memory.seen["packages"] = memory.seen.get("packages"), record.digest
    changed = before is not None and before != record.digest
    verdict: Verdict = "warn" if changed or record.modified else "ok"
    params = {"digest": record.digest[:15], "count": len(record.packages), "changed": "yes" if changed else "no",
              "modified": ", ".join(record.modified[:5]) or "-"}  # fmt: skip
    yield Look("packages", verdict, float(len(record.packages)), "packages", params)


_CHECKS: dict[str, Callable[[Ground, Memory], Iterator[Look]]] = {
    "disk": _disk, "fsync": _sync, "storage": _storage, "network": _network, "clock": _clock, "driver": _driver,
    "packages": _packages,
}  # fmt: skip


def _limit(value: float, warn: float, bad: float) -> Verdict:
    return "bad" if value >= bad else "warn" if value >= warn else "ok"
