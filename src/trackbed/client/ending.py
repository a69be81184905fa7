"""How a program that holds an outside run ends: what its run is told, as nobody else sees its exit status."""

import sys
from typing import Any, NoReturn

_left_by: SystemExit | None = None
_exit = sys.exit


def note_exit_status() -> None:
    """Remember with which status `sys.exit` is called: at exit, nothing else tells it, and a crash must not look finished.

    Only outside jobs and without a `with` block it matters.
    """

    def noting_exit(status: "sys._ExitCode | None" = None, /) -> NoReturn:
        global _left_by
        _left_by = SystemExit(status)
        _exit(status)

    if sys.exit is _exit:
        sys.exit = noting_exit


def ending_at_exit() -> dict[str, Any]:
    """Return how the program ends, as far as the interpreter tells: an uncaught exception, or a status given to `sys.exit`.

    In an interactive session the last exception is not the end of anything.
    """
    if hasattr(sys, "ps1"):
        return ending(None)
    return ending(getattr(sys, "last_value", None) or _left_by)


def ending(error: BaseException | None) -> dict[str, Any]:
    """Return what an exception says about the end of the program."""
    if error is None:
        return {"status": "finished"}
    if isinstance(error, KeyboardInterrupt):
        return {"status": "stopped", "exit_code": 130, "reason": "KeyboardInterrupt"}
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
        return {"status": "failed" if code else "finished", "exit_code": code, "reason": str(error.code or "")}
    return {"status": "failed", "exit_code": 1, "reason": f"{type(error).__name__}: {error}"[:2000]}
