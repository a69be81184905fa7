"""One answer for all ranks to "shall we stop?", through files of the control folder.

    control/stop.json      {order, reason, grace}   by the supervisor; gone when the order was withdrawn before an answer
    control/calls/<rank>   by the rank at its first call: it takes part
    control/asked/<rank>   by the rank: the step at which it met the order
    control/verdict.json   {order, stop_at}         by the supervisor; no stop_at: never (withdrawn)

A rank that meets an order writes `asked`, goes on for one step, and waits in its next call for the verdict: 1 + the greatest
step of all ranks. So the ranks of a collective, which are never more than a step apart, leave at the same step.

Source: ARCHITECTURE, "Stopping"
"""

import contextlib
import os
import time
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")
POLL_S = 0.005
PATIENCE_S = 3600.0  # where an order names no grace: a supervisor that is alive answers long before


class _Stop(msgspec.Struct):
    order: str = ""
    reason: str = ""
    grace: float = 0.0


class _Verdict(msgspec.Struct):
    order: str = ""
    stop_at: int | None = None


class Stopping:
    """The orders of one attempt as one rank sees them."""

    def __init__(self, control: Path, rank: int) -> None:
        self._stop = control / "stop.json"
        self._verdict = control / "verdict.json"
        self._asked = control / "asked" / str(rank)
        self._calls = control / "calls" / str(rank)
        self._stop_path = str(self._stop)
        self._said = False  # that this rank takes part
        self._order = ""  # the one that this rank asked about
        self._answered = ""  # the one whose verdict is known
        self._stop_at: int | None = None
        self.reason = ""

    def should_stop(self, step: int) -> bool:
        """Whether this step is the last. Without an order, one `stat`."""
        if not self._said:
            self._say()
        try:
            os.stat(self._stop_path)  # noqa: PTH116 - a third of the cost
        except OSError:
            return False
        order = _read(self._stop, _Stop)
        if order is None:
            return False
        if order.order != self._order:
            self._ask(order, step)
            return False
        if self._answered != order.order and not self._wait(order):
            return False
        return self._stop_at is not None and step >= self._stop_at

    def _say(self) -> None:
        self._said = True
        with contextlib.suppress(OSError):
            self._calls.parent.mkdir(parents=True, exist_ok=True)
            self._calls.touch()

    def _ask(self, order: _Stop, step: int) -> None:
        self._order, self._stop_at, self.reason = order.order, None, order.reason
        self._asked.parent.mkdir(parents=True, exist_ok=True)
        part = self._asked.with_name(f".{self._asked.name}.part")
        part.write_text(str(step))
        part.replace(self._asked)

    def _wait(self, order: _Stop) -> bool:
        """Return True when the verdict is here, False when there is nothing to wait for any more."""
        deadline = time.monotonic() + (order.grace or PATIENCE_S)
        while time.monotonic() < deadline:
            verdict = _read(self._verdict, _Verdict)
            if verdict is not None and verdict.order == order.order:
                self._answered, self._stop_at = verdict.order, verdict.stop_at
                return True
            if not self._stop.exists():
                return False
            time.sleep(POLL_S)
        return False


class Saving:
    """When it is time for a checkpoint, by the run's policy; the same answer for all ranks.

    By steps every rank counts for itself. By time rank 0 decides and says it two steps ahead in `control/save.json`, which
    ranks that are never more than a step apart read in time.
    """

    def __init__(
        self, control: Path | None, rank: int, world: int, *, every_steps: int | None, every_s: float | None
    ) -> None:
        self._file = control / "save.json" if control is not None else None
        self._rank, self._world = rank, world
        self._every_steps, self._every_s = every_steps, every_s
        self._last_s = time.monotonic()
        self._due_at: int | None = None
        self._seen = ""

    def should_save(self, step: int) -> bool:
        if self._every_steps:
            return step > 0 and step % self._every_steps == 0
        if not self._every_s:
            return False
        if self._rank == 0:
            return self._decide(step, self._every_s)
        return self._follow(step)

    def _decide(self, step: int, every_s: float) -> bool:
        if self._due_at is None and time.monotonic() - self._last_s >= every_s:
            self._due_at = step if self._world == 1 else step + 2
            if self._file is not None and self._world > 1:
                part = self._file.with_name(".save.json.part")
                part.write_text(str(self._due_at))
                part.replace(self._file)
        if self._due_at is None or step < self._due_at:
            return False
        self._due_at, self._last_s = None, time.monotonic()
        return True

    def _follow(self, step: int) -> bool:
        if self._file is None:
            return False
        with contextlib.suppress(OSError, ValueError):
            said = self._file.read_text()
            if said != self._seen:
                self._seen, self._due_at = said, int(said)
        if self._due_at is None or step < self._due_at:
            return False
        self._due_at = None
        return True


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None
