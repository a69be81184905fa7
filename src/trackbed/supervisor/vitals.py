"""How busy the node and the attempt are, and what the kernel says about memory."""

import contextlib
import os
import resource
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from trackbed.clusters import Accelerator
from trackbed.clusters.processes import descendants
from trackbed.formats.spool import Metrics, new_metrics

EVERY_S = 5.0
TRIAL_EVERY_S = 0.5  # of a trial, which is short and asked for its peak


class Vitals:
    """A sample at once, one every 5 s and one at the end: short runs have some too."""

    def __init__(
        self, accelerator: Accelerator, cards: Sequence[int], sink: Callable[[Metrics], None], *, every_s: float = EVERY_S
    ) -> None:  # fmt: skip
        self._accelerator, self._cards, self._sink, self._every_s = accelerator, cards, sink, every_s
        self._begun_s = time.monotonic()
        self._before: tuple[float, float] | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="vitals", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10.0)

    def _run(self) -> None:
        wait_s = 0.0
        while not self._stop.wait(wait_s):
            self._try()
            wait_s = self._every_s if wait_s else min(1.0, self._every_s)
        self._try()

    def _try(self) -> None:
        with contextlib.suppress(Exception):  # whatever a driver or /proc may say: a sample is missing, not the run
            self._sample()

    def _sample(self) -> None:
        """`system/cpu_percent` and `system/rss_bytes` are the attempt's (100 is one processor), `memory_bytes` the node's."""
        cpu_s, rss = 0.0, 0
        for pid in descendants(os.getpid()):
            with contextlib.suppress(psutil.Error):
                process = psutil.Process(pid)
                times = process.cpu_times()
                cpu_s += times.user + times.system + times.children_user + times.children_system
                rss += process.memory_info().rss
        now_s = time.monotonic()
        values = {"system/memory_bytes": float(psutil.virtual_memory().used), "system/rss_bytes": float(rss)}
        if self._before is not None:
            spent, passed = cpu_s - self._before[0], now_s - self._before[1]
            values["system/cpu_percent"] = max(0.0, 100.0 * spent / max(passed, 1e-3))
        self._before = (cpu_s, now_s)
        values |= self._accelerator.sample(self._cards)
        points = new_metrics()
        for name, value in values.items():
            points.key.append(len(points.keys))
            points.keys.append(name)
            points.step.append(int(now_s - self._begun_s))
            points.ts.append(time.time_ns() // 1000)
            points.value.append(value)
        self._sink(points)


def peak_rss_bytes() -> int:
    """Return the most memory that any one process had that this one has waited for; 0 before the first."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def oom_kills() -> int:
    """How many processes of this control group the kernel has ended for want of memory; of the machine, where unknown."""
    for controller, root, name in (
        ("", "/sys/fs/cgroup", "memory.events"),
        ("memory", "/sys/fs/cgroup/memory", "memory.oom_control"),
    ):
        group = _group(controller)
        for folder in (root + group, root) if group else ():
            found = _counter(Path(folder) / name)
            if found is not None:
                return found
    return _counter(Path("/proc/vmstat")) or 0


def _group(controller: str) -> str:
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, names, path = line.split(":", 2)
            if (controller in names.split(",")) if controller else names == "":
                return path
    return ""


def _counter(path: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        for line in path.read_text().splitlines():
            name, _, value = line.partition(" ")
            if name == "oom_kill":
                return int(value)
    return None
