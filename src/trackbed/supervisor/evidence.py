"""From what was seen of the ranks to the cause of the end. Pure.

The first rank that failed decides; what the others did afterwards is its consequence. What we signalled ourselves is the
order's, not the program's.
"""

import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trackbed.domain.states import Cause, OrderKind

_CARD_FULL = re.compile(r"torch\.(cuda\.)?OutOfMemoryError|(CUDA|HIP) out of memory|CUDA_ERROR_OUT_OF_MEMORY")
_HOST_FULL = re.compile(r"^(\w+\.)*_?(Array)?MemoryError\b|DefaultCPUAllocator: can't allocate memory", re.MULTILINE)
_DISK_FULL = re.compile(r"\[Errno 28\]|No space left on device|\[Errno 122\]|Disk quota exceeded")
_TORCHRUN = re.compile(r"Root Cause.*?exitcode\s*:\s*(-?\d+)", re.DOTALL)
LOST_PEER = (
    75  # EX_TEMPFAIL: "another rank was lost", as our worker says; never the first failure while there is another
)
_TOGETHER_US = 1_000_000  # ends this close are taken as one moment: the harder evidence goes first

CAUSE_OF_ORDER: Mapping[OrderKind, Cause] = {
    OrderKind.STOP: Cause.STOPPED,
    OrderKind.PAUSE: Cause.PAUSED,
    OrderKind.PREEMPT: Cause.PREEMPTED,
    OrderKind.LIMIT: Cause.LIMIT,
    OrderKind.SUPERSEDED: Cause.LOST,
}


@dataclass(frozen=True)
class RankEnd:
    """How one rank ended. `ours`: we had signalled it before."""

    rank: int
    exit_code: int | None = None
    signal: int | None = None
    ended_us: int = 0
    ours: bool = False

    @property
    def by_signal(self) -> int | None:
        """The signal, also where a shell in between turned it into 128 + n."""
        if self.signal is not None:
            return self.signal
        number = (self.exit_code or 0) - 128
        return number if number in _SIGNALS else None

    @property
    def good(self) -> bool:
        return self.signal is None and self.exit_code == 0


_SIGNALS = frozenset(int(s) for s in signal.Signals)


@dataclass(frozen=True)
class Judged:
    cause: Cause
    evidence: dict[str, Any]


def judge(
    ends: Sequence[RankEnd],
    tails: Mapping[int, Sequence[str]],
    *,
    order: OrderKind | None = None,
    verdict_at: int | None = None,
    oom_kills: int = 0,
) -> Judged:
    """Return why the attempt ended.

    `order` is the one being carried out, `verdict_at` the step at which all ranks were told to leave, `tails` the last
    lines of each rank, `oom_kills` how many processes the kernel ended for want of memory meanwhile.
    """
    evidence: dict[str, Any] = {
        "ranks": [{"rank": e.rank, "exit_code": e.exit_code, "signal": _name(e.signal)} for e in ends]
    }
    if order is not None:
        evidence["order"] = order.value
    first = first_failed(ends)
    told = order is not None and (verdict_at is not None or any(end.ours for end in ends))
    if first is None:
        evidence["last_lines"] = list(tails.get(min(tails, default=0), ()))[-5:]
        return Judged(CAUSE_OF_ORDER[order] if told and order is not None else Cause.DONE, evidence)
    lines = list(tails.get(first.rank, ()))
    evidence |= {"first_rank": first.rank, "last_lines": lines}
    if first.exit_code is not None:
        evidence["exit_code"] = first.exit_code
    if first.by_signal is not None:
        evidence["signal"] = _name(first.by_signal)
    if first.ours and order is not None:
        return Judged(CAUSE_OF_ORDER[order], evidence)
    cause, mark = _own_fault(first, "\n".join(lines), oom_kills)
    if mark:
        evidence["mark"] = mark
    return Judged(cause, evidence)


def first_failed(ends: Sequence[RankEnd]) -> RankEnd | None:
    """Return the rank whose failure came first; among ends of one moment, a KILL from outside, then our own signal last."""
    failed = sorted((end for end in ends if not end.good), key=lambda end: (end.ended_us, end.rank))
    own = [end for end in failed if end.exit_code != LOST_PEER and not end.ours]
    if own and failed[0].exit_code == LOST_PEER:
        failed = own
    if not failed:
        return None
    together = [end for end in failed if end.ended_us - failed[0].ended_us <= _TOGETHER_US]
    return min(together, key=lambda end: (end.ours, end.by_signal != signal.SIGKILL, end.ended_us, end.rank))


def _own_fault(first: RankEnd, text: str, oom_kills: int) -> tuple[Cause, str]:
    number = first.by_signal
    if first.exit_code == LOST_PEER:
        return Cause.NETWORK, "another rank was lost"
    torchrun = _TORCHRUN.search(text)
    if number is None and torchrun is not None and int(torchrun.group(1)) < 0:
        number = -int(torchrun.group(1))
    if number == signal.SIGKILL and oom_kills > 0:
        return Cause.OOM_HOST, f"{oom_kills} processes were ended by the kernel for want of memory"
    for pattern, cause in ((_CARD_FULL, Cause.OOM_CARD), (_HOST_FULL, Cause.OOM_HOST), (_DISK_FULL, Cause.STORAGE)):
        found = pattern.search(text)
        if found is not None and number != signal.SIGKILL:
            return cause, found.group(0)
    return (Cause.USER_ERROR if number is None else Cause.KILLED), ""


def _name(number: int | None) -> str | None:
    if number is None:
        return None
    return signal.Signals(number).name if number in _SIGNALS else f"signal {number}"
