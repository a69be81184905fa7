"""Fault points: named places where a test may kill the process or make a call fail. Inert unless `TRACKBED_FAULT` is set.

`TRACKBED_FAULT="<point>[@n]=<what>"`: at the n-th passage (1 is the first) of the point (`any`: of every point), do
`kill` (SIGKILL of this process, as a power cut would) or raise OSError of that errno name, such as `ENOSPC` or `EIO`.
"""

import errno
import os
import signal

_plan = os.environ.get("TRACKBED_FAULT", "")
_seen = 0


def point(name: str) -> None:
    """Mark a place between two steps that must not be torn. Costs one truth test in production."""
    if _plan:
        _fire(name)


def arm(plan: str) -> None:
    """Set the plan in this process; an empty one disarms. For tests."""
    global _plan, _seen
    _plan, _seen = plan, 0


def _fire(name: str) -> None:
    global _seen
    where, _, what = _plan.partition("=")
    target, _, nth = where.partition("@")
    if target not in (name, "any"):
        return
    _seen += 1
    if _seen != int(nth or 1):
        return
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    code: int = getattr(errno, what)
    raise OSError(code, os.strerror(code), name)
