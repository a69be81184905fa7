"""Becomes a rank: asks the kernel to end it with its supervisor, then turns into the program.

Run by path, standard library only. A step of its own because nothing but exec is safe between fork and exec of a process
with threads. Usage: shim.py PARENT_PID PROGRAM [ARGUMENT …]
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, program = int(sys.argv[1]), sys.argv[2:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we asked
        os._exit(128 + signal.SIGKILL)
    _forget_signals()
    try:
        os.execvp(program[0], program)  # noqa: S606 - the user's program, by definition
    except OSError as fault:
        sys.stderr.write(f"{program[0]}: {fault.strerror}\n")
        sys.stderr.flush()
        os._exit(127 if isinstance(fault, FileNotFoundError) else 126)


def _forget_signals() -> None:
    """A program expects the defaults, whatever Python, `nohup` or a shell's `&` around the server ignores or holds back."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(number, signal.SIG_DFL)
        except OSError:
            pass  # one that the C library keeps for itself


if __name__ == "__main__":
    main()
