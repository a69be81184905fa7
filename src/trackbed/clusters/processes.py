"""Who runs on this machine: identity of a process beyond its pid, and everything that belongs to an attempt.

A pid is used again after its process ended; (boot id, pid, start time) is not. Every rank carries the path of its attempt's
control folder in its environment, so what an attempt left behind is found even after it moved into a session of its own.
Linux only.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

MARK = "TRACKBED_CONTROL"  # in the environment of every process of an attempt, and in no other


@dataclass(frozen=True)
class ProcessId:
    """One process, never confused with a later one of the same pid."""

    pid: int
    start: int  # clock ticks since boot, field 22 of /proc/<pid>/stat

    def alive(self) -> bool:
        """Whether it still runs; a zombie does not."""
        return self.pid > 0 and start_of(self.pid) == self.start

    def kill(self, sig: int = signal.SIGKILL) -> None:
        """Signal it, if it is still this process."""
        if self.alive():
            _signal(self.pid, sig)


def boot_id() -> str:
    """Return the id of this boot of the machine; nothing of another boot is alive."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def start_of(pid: int) -> int | None:
    """Return the start time of a running process; None when there is none, or only a zombie."""
    fields = _stat(pid)
    return None if fields is None or fields[0] in ("Z", "X") else int(fields[19])


def identify(pid: int) -> ProcessId:
    """Return the identity of a process that was just started; start 0 when it is gone already."""
    fields = _stat(pid)
    return ProcessId(pid, 0 if fields is None else int(fields[19]))


def marked(control: Path) -> list[int]:
    """Return pids of all running processes whose environment names this control folder."""
    mark = f"{MARK}={control}".encode()
    found: list[int] = []
    for pid in _pids():
        try:
            environ = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue  # gone, or another user's
        if mark in environ.split(b"\0") and start_of(pid) is not None:
            found.append(pid)
    return found


def started_for(folder: Path) -> list[int]:
    """Return pids of all running processes with this folder as an argument of their own: supervisor or salvager."""
    found: list[int] = []
    for pid in _pids():
        try:
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if os.fsencode(folder) in arguments and start_of(pid) is not None:
            found.append(pid)
    return found


def descendants(root: int, *, without: Iterable[int] = ()) -> list[int]:
    """Return pids of all running processes below `root`, sub-trees of `without` left out."""
    parents: dict[int, list[int]] = {}
    for pid in _pids():
        fields = _stat(pid)
        if fields is not None:
            parents.setdefault(int(fields[1]), []).append(pid)
    skip, found, todo = set(without), [], [root]
    while todo:
        for child in parents.get(todo.pop(), []):
            if child not in skip:
                found.append(child)
                todo.append(child)
    return [pid for pid in found if start_of(pid) is not None]


def kill_all(
    find: Callable[[], Iterable[int]], *, timeout_s: float, reap: Callable[[], None] = lambda: None
) -> list[int]:
    """KILL what `find` returns until it returns nothing; return what is left after `timeout_s`.

    Found anew each round, because a process may fork between the look and the signal.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        left = list(find())
        if not left:
            return []
        for pid in left:
            _signal(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return left
        time.sleep(0.02)
        reap()


def _signal(pid: int, sig: int) -> None:
    try:
        os.kill(pid, sig)
    except (ProcessLookupError, PermissionError):
        pass  # gone meanwhile, or changed its user: the next look tells


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/<pid>/stat from the state on (index 0 = field 3)."""
    try:
        raw = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    return raw[raw.rindex(b")") + 2 :].decode().split()
