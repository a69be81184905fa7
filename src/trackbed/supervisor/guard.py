"""Outlives a killed supervisor for a moment and ends what it left, grandchildren in sessions of their own included.

Run by path, standard library only; reads one pipe whose other end only the supervisor holds. The end of file without a
`.` before it means that the supervisor died. Usage: guard.py CONTROL_FOLDER
"""

import os
import signal
import sys
import time
from pathlib import Path


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.read(0, 1) == b".":
        return
    mark = b"TRACKBED_CONTROL=" + os.fsencode(sys.argv[1])
    deadline = time.monotonic() + 30.0
    while time.monotonic() < deadline:
        left = [pid for pid in _pids() if mark in _environ(pid)]
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # gone meanwhile
        time.sleep(0.02)


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _environ(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []  # gone, or another user's


if __name__ == "__main__":
    main()
