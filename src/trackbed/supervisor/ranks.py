"""The processes of an attempt: started in sessions of their own, watched, signalled, and ended with everything below them.

All of it happens in one thread, the main one: a rank dies when the thread that started it ends.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from trackbed.clusters.node_folder import RankState
from trackbed.clusters.processes import ProcessId, descendants, identify, kill_all, marked
from trackbed.supervisor.evidence import RankEnd
from trackbed.supervisor.launch import RankPlan

_PR_SET_CHILD_SUBREAPER = 36
_SHELLS = frozenset({"sh", "dash", "bash", "zsh", "ksh", "busybox"})
_HERE = Path(__file__).parent


def become_subreaper() -> None:
    """Orphans below us become our children: what a rank leaves behind stays in sight."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Guard:
    """A small process that ends what a killed supervisor leaves; told not to when all is over."""

    def __init__(self, control: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_HERE / "guard.py"), str(control)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, env={"PATH": os.environ.get("PATH", "")},
        )  # fmt: skip
        self.pid = self._process.pid

    def dismiss(self) -> None:
        try:
            self._process.communicate(b".", timeout=5.0)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()


class Ranks:
    """Ranks of one node, in the order of their start. `add_pipe(handle, rank, stream)` takes over their output."""

    def __init__(self, control: Path, *, add_pipe: Callable[[int, int, str], None]) -> None:
        self._control, self._add_pipe = control, add_pipe
        self._guard = Guard(control)
        self.states: dict[int, RankState] = {}
        self._told: dict[int, list[ProcessId]] = {}  # rank → processes that were signalled
        self._left: dict[int, RankState] = {}  # its leader ended, something that we signalled has not

    def start(self, plan: RankPlan, cwd: Path) -> None:
        out, err = os.pipe(), os.pipe()
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_HERE / "shim.py"), str(os.getpid()), *plan.argv],
            cwd=cwd, env=plan.env, stdin=subprocess.DEVNULL, stdout=out[1], stderr=err[1], start_new_session=True,
        )  # fmt: skip
        os.close(out[1])
        os.close(err[1])
        self._add_pipe(out[0], plan.rank, "stdout")
        self._add_pipe(err[0], plan.rank, "stderr")
        process.returncode = 0  # it is waited for in `poll`, not by Popen
        who = identify(process.pid)
        self.states[plan.rank] = RankState(rank=plan.rank, pid=who.pid, start=who.start, state="running")

    def poll(self) -> bool:
        """Collect who has ended; return whether anything changed."""
        changed = False
        for rank, state in self.states.items():
            if state.state == "exited":
                continue
            if rank in self._left:
                if not any(who.alive() for who in self._told[rank]):
                    self.states[rank] = self._left.pop(rank)
                    changed = True
                continue
            ended = _wait(state.pid)
            if ended is None:
                continue
            code = os.waitstatus_to_exitcode(ended)
            after = RankState(
                rank=rank, pid=state.pid, start=state.start, state="exited", ours=rank in self._told,
                exit_code=code if code >= 0 else None, signal=-code if code < 0 else None,
                ended_us=time.time_ns() // 1000,
            )  # fmt: skip
            if any(who.alive() for who in self._told.get(rank, ())):
                self._left[rank] = after  # the shell is gone, the program that it ran still saves
            else:
                self.states[rank] = after
                changed = True
        return changed

    @property
    def live(self) -> set[int]:
        return {rank for rank, state in self.states.items() if state.state != "exited"}

    @property
    def told(self) -> set[int]:
        """Ranks that we have signalled."""
        return set(self._told)

    @property
    def ends(self) -> list[RankEnd]:
        return [
            RankEnd(s.rank, s.exit_code, s.signal, s.ended_us, s.ours)
            for s in self.states.values()
            if s.state == "exited"
        ]

    def signal(self, rank: int, number: int) -> None:
        """Signal the program of a rank: the leader, and through shells what they run; not the program's own helpers."""
        state = self.states[rank]
        told = _programs(state.pid)
        self._told.setdefault(rank, []).extend(told)
        for who in told:
            who.kill(number)

    def kill(self) -> list[int]:
        """KILL every process of the attempt, until none is left; return those that could not be ended."""
        for rank in self.live:
            self._told.setdefault(rank, [])
        left = kill_all(self._tree, timeout_s=10.0, reap=self._reap)
        self.poll()
        return left

    def close(self) -> None:
        self._guard.dismiss()

    def _tree(self) -> list[int]:
        below = descendants(os.getpid(), without=(self._guard.pid,))
        return sorted({*below, *marked(self._control)} - {os.getpid(), self._guard.pid})

    def _reap(self) -> None:
        """Take the exit of ranks, and of orphans that became ours."""
        self.poll()
        ours = {state.pid for state in self.states.values()} | {self._guard.pid}
        for pid in _children():
            if pid not in ours:
                _wait(pid)


def signal_number(name: str) -> int:
    """`TERM`, `SIGUSR1` → number; TERM for what this system does not know."""
    bare = name.upper().removeprefix("SIG")
    return int(getattr(signal, f"SIG{bare}", signal.SIGTERM))


def _wait(pid: int) -> int | None:
    try:
        found, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return 0
    return status if found else None


def _children() -> list[int]:
    try:
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    except OSError:
        return []


def _programs(leader: int) -> list[ProcessId]:
    found, todo = list[ProcessId](), [leader]
    while todo:
        pid = todo.pop()
        who = identify(pid)
        if not who.alive():
            continue
        found.append(who)
        try:
            name = Path(f"/proc/{pid}/comm").read_text().strip()
            below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            continue
        if name in _SHELLS:
            todo.extend(int(child) for child in below)
    return found
