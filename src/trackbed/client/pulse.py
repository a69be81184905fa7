"""The sign of life of a rank inside a job: its step and phase, written about once a second, and stacks when they are asked for.

    control/pulse/<rank>.json    {"pid", "step", "phase", "time_us"}, replaced whole
    control/stacks/<rank>.txt    what `faulthandler` writes at STACKS_SIGNAL: every thread of the process, appended

The stacks come from a signal handler in C, so a process that hangs inside a library still tells where. Nothing is
registered where the program has a handler of its own.
"""

import faulthandler
import json
import os
import signal
import time
from pathlib import Path
from typing import IO

# No program and no library that we know uses it; SIGUSR1 and SIGUSR2 are taken by schedulers and by torchrun.
STACKS_SIGNAL = int(signal.SIGRTMIN) + 11


class Pulse:
    """Written by the thread that also writes the spool: it costs the training nothing."""

    def __init__(self, control: Path, rank: int) -> None:
        self._path = control / "pulse" / f"{rank}.json"
        self._last: tuple[int, str] | None = None
        self._stacks: IO[str] | None = None
        try:
            self._path.parent.mkdir(exist_ok=True)
            (control / "stacks").mkdir(exist_ok=True)
            if signal.getsignal(STACKS_SIGNAL) in (signal.SIG_DFL, None):
                self._stacks = (control / "stacks" / f"{rank}.txt").open("a", encoding="utf-8")
                faulthandler.register(STACKS_SIGNAL, file=self._stacks, all_threads=True, chain=False)
        except (OSError, ValueError):
            self._stacks = None  # a run goes on without

    def beat(self, step: int, phase: str) -> None:
        """Write step and phase where they have changed."""
        if (step, phase) == self._last:
            return
        staged = self._path.with_suffix(f".{os.getpid()}.tmp")
        document = {"pid": os.getpid(), "step": step, "phase": phase, "time_us": time.time_ns() // 1000}
        try:
            staged.write_text(json.dumps(document), encoding="utf-8")
            staged.replace(self._path)
        except OSError:
            return
        self._last = (step, phase)
