"""No progress for too long: noticed here, where the ranks are, and told with step, phase, who waits for whom, and stacks.

Progress is a step that a rank reports (`client.pulse`); of ranks that report none, a line of output or a change in the
checkpoints folder. How long is too long is said by the spec, else learnt from what the program has done so far.
"""

import contextlib
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from trackbed.client.pulse import STACKS_SIGNAL
from trackbed.clusters.processes import descendants
from trackbed.formats.spool import Line
from trackbed.wire.spec import Hang

LOOK_S = 1.0
TIMES, LONGEST_TIMES = 20.0, 3.0  # of the usual and of the longest time between two steps so far
LEAST_STEPS_S, LEAST_SILENT_S = 300.0, 1800.0
STEPS_KNOWN, OUTPUT_KNOWN = 5, 20  # before a program's own pace is trusted
WAITING = "communication"
_STACKS_WAIT_S = 2.0
_PY_SPY_S = 10.0
_MOST_PROCESSES = 64  # of a rank
_MOST_LINES = 400  # of a process


@dataclass(frozen=True)
class Seen:
    """What shows progress: the last step and the phase of each rank that tells, and marks of all others."""

    steps: Mapping[int, int] = field(default_factory=dict[int, int])
    phases: Mapping[int, str] = field(default_factory=dict[int, str])
    output: int = 0  # lines so far
    files_ns: int = 0  # when the checkpoints folder last changed


@dataclass
class Stillness:
    """Judges how long nothing has moved. Pure: times come in. `after_s`: the spec's word, which also holds before the first step."""

    after_s: float | None = None
    _last: Seen = field(default_factory=Seen)
    _moved_s: float | None = None
    _gaps_s: list[float] = field(default_factory=list[float])
    _longest_s: float = 0.0
    hung_s: float | None = None  # how long, since it was told

    def look(self, seen: Seen, now_s: float) -> str:
        """Return `hung` once when it has been still for too long, `moved` once when it goes on after that, else nothing."""
        if self._moved_s is None:
            self._moved_s = now_s
        moved = self._moved(seen)
        if moved:
            gap_s = now_s - self._moved_s
            self._gaps_s = [*self._gaps_s[-63:], gap_s]
            self._longest_s = max(self._longest_s, gap_s)
            self._moved_s, self._last = now_s, seen
            if self.hung_s is not None:
                self.hung_s = None
                return "moved"
            return ""
        still_s = now_s - self._moved_s
        limit_s = self._limit_s(seen)
        if self.hung_s is None and limit_s is not None and still_s >= limit_s:
            self.hung_s = still_s
            return "hung"
        return ""

    def still_s(self, now_s: float) -> float:
        return now_s - (self._moved_s if self._moved_s is not None else now_s)

    def _moved(self, seen: Seen) -> bool:
        if seen.steps or self._last.steps:
            return any(step > self._last.steps.get(rank, -1) for rank, step in seen.steps.items())
        return seen.output != self._last.output or seen.files_ns != self._last.files_ns

    def _limit_s(self, seen: Seen) -> float | None:
        if self.after_s is not None:
            return self.after_s
        known, least_s = (STEPS_KNOWN, LEAST_STEPS_S) if seen.steps else (OUTPUT_KNOWN, LEAST_SILENT_S)
        if len(self._gaps_s) < known:
            return None  # nobody knows this program's pace
        return max(least_s, TIMES * median(self._gaps_s), LONGEST_TIMES * self._longest_s)


class HangWatch:
    """A thread that looks once a second and tells at most once for each hang."""

    def __init__(
        self,
        control: Path,
        checkpoints: Path,
        wish: Hang,
        *,
        leaders: Callable[[], Mapping[int, int]],
        tell: Callable[[int, list[Line]], None],
        note: Callable[[str, dict[str, object]], None],
        idle: Callable[[], bool],
    ) -> None:
        """`leaders`: rank → process; `tell(rank, lines)` and `note(kind, data)` put lines and an event on the record; while
        `idle` says so (it was asked to leave) nothing is judged."""
        self._control, self._checkpoints, self._wish = control, checkpoints, wish
        self._leaders, self._tell, self._note, self._idle = leaders, tell, note, idle
        self._stillness = Stillness(wish.after_s)
        self._output = 0
        self.end = threading.Event()  # the spec asks that this attempt ends
        self.evidence: dict[str, object] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hang", daemon=True)

    def counting(self, sink: Callable[[int, list[Line]], None]) -> Callable[[int, list[Line]], None]:
        """Return a sink of output that also counts it."""

        def count(rank: int, lines: list[Line]) -> None:
            self._output += len(lines)
            sink(rank, lines)

        return count

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_PY_SPY_S + 5.0)

    def _run(self) -> None:
        while not self._stop.wait(LOOK_S):
            if self._idle():
                continue
            seen, now_s = self._look(), time.monotonic()
            news = self._stillness.look(seen, now_s)
            with contextlib.suppress(OSError):  # a full disk: the hang is told when there is room, or not at all
                if news == "hung":
                    self._hung(seen, self._stillness.still_s(now_s))
                elif news == "moved":
                    self._say(0, "warning", ["it moves again"])
                    self._note("hang_over", {"step": max(seen.steps.values(), default=0)})

    def _look(self) -> Seen:
        steps, phases = dict[int, int](), dict[int, str]()
        for path in (self._control / "pulse").glob("*.json"):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                said = json.loads(path.read_text(encoding="utf-8"))
                steps[int(path.stem)], phases[int(path.stem)] = int(said["step"]), str(said["phase"])[:100]
        try:
            files_ns = self._checkpoints.stat().st_mtime_ns
        except OSError:
            files_ns = 0
        steps = {rank: step for rank, step in steps.items() if step >= 0}
        return Seen(steps, phases, self._output, files_ns)

    def _hung(self, seen: Seen, still_s: float) -> None:
        data = report(seen, still_s)
        self.evidence = {"hang": data}
        self._say(0, "error", [headline(data)])
        for rank, leader in sorted(self._leaders().items()):
            self._say(rank, "error", [f"rank {rank}: {line}" for line in self._stacks_of(rank, leader)])
        self._note("hang", data)
        if self._wish.end:
            self.end.set()

    def _say(self, rank: int, level: str, texts: Iterable[str]) -> None:
        now_us = time.time_ns() // 1000
        self._tell(rank, [Line(now_us, "trackbed", level, text.encode("utf-8", "replace")) for text in texts])

    def _stacks_of(self, rank: int, leader: int) -> list[str]:
        lines: list[str] = []
        for pid in sorted({leader, *descendants(leader)})[:_MOST_PROCESSES]:
            lines += stacks(pid, self._control / "stacks")
        return lines or [f"process {leader} is gone"]


def report(seen: Seen, still_s: float) -> dict[str, object]:
    """Return what an event says of a hang: since when, at which step and phase, who waits and for whom."""
    furthest = max(seen.steps.values(), default=0)
    behind = sorted(rank for rank, step in seen.steps.items() if step < furthest)
    waiting = sorted(rank for rank, phase in seen.phases.items() if phase == WAITING and rank not in behind)
    if not behind and waiting and len(waiting) < len(seen.phases):
        behind = sorted(rank for rank in seen.phases if rank not in waiting)
    slow = behind[0] if behind else min(seen.phases, default=0)
    return {
        "still_s": round(still_s, 1), "step": furthest, "phase": seen.phases.get(slow, ""), "waiting": waiting[:64],
        "behind": behind[:64],
    }  # fmt: skip


def headline(data: Mapping[str, object]) -> str:
    parts = [f"no progress for {data['still_s']} s, at step {data['step']}"]
    if data["phase"]:
        parts.append(f"phase {data['phase']}")
    for name in ("behind", "waiting"):
        if data[name]:
            parts.append(f"{name}: ranks {', '.join(map(str, data[name]))}")  # type: ignore[call-overload]
    return "; ".join(parts)


def stacks(pid: int, folder: Path) -> list[str]:
    """Return where a process stands: the stacks of its threads if it can tell or py-spy is there, else what the kernel knows."""
    try:
        name = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()[:200]
    except OSError:
        return []
    lines = [f"process {pid}: {name}", f"  {kernel_state(pid)}"]
    told = _asked(pid, folder) or _py_spy(pid)
    return lines + [f"  {line}" for line in told[:_MOST_LINES]]


def _asked(pid: int, folder: Path) -> list[str]:
    """Ask the process by the signal that our SDK registered for; one that does not catch it is never sent it."""
    if not catches(pid, STACKS_SIGNAL):
        return []
    sizes = {path: path.stat().st_size for path in folder.glob("*.txt")}
    with contextlib.suppress(OSError):
        os.kill(pid, STACKS_SIGNAL)
    deadline = time.monotonic() + _STACKS_WAIT_S
    while time.monotonic() < deadline:
        time.sleep(0.1)
        grown = [path for path in sizes if path.stat().st_size > sizes[path]]
        if grown:
            time.sleep(0.1)  # it is being written
            with grown[0].open("rb") as file:
                file.seek(sizes[grown[0]])
                return file.read(1 << 20).decode("utf-8", "replace").splitlines()
    return []


def _py_spy(pid: int) -> list[str]:
    program = shutil.which("py-spy")
    if program is None:
        return []
    try:
        done = subprocess.run([program, "dump", "--pid", str(pid)], capture_output=True, timeout=_PY_SPY_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.decode("utf-8", "replace").splitlines() if done.returncode == 0 else []


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def kernel_state(pid: int) -> str:
    """`state S (sleeping), waits in futex_wait, system call 202`: what /proc tells to the owner of a process."""
    parts: list[str] = []
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("State:"):
                parts.append(f"state {line.split(':', 1)[1].strip()}")
    with contextlib.suppress(OSError):
        where = Path(f"/proc/{pid}/wchan").read_text().strip()
        if where not in ("", "0"):
            parts.append(f"waits in {where}")
    with contextlib.suppress(OSError, IndexError):
        parts.append(f"system call {Path(f'/proc/{pid}/syscall').read_text().split()[0]}")
    return ", ".join(parts) or "state unknown"
