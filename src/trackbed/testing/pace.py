"""How fast this machine is just now, for the few limits that are given in CPU seconds."""

import os
import subprocess
import sys

_REFERENCE_S = 0.08  # what the program below takes on the core that the limits were written for
_PROGRAM = """
import asyncio, concurrent.futures, decimal, email.message, http.client, logging.config, sqlite3, unittest.mock, xml.dom.minidom
"""


def slowness() -> float:
    """Return how many times slower a core is than the reference, at least 1.

    A neighbour takes caches and clock of a shared machine, and CPU seconds grow with it: starts of Python by two and more.
    The measure is a start of Python with modules of its own library, which no change of ours makes slower.
    """
    return max(1.0, min(_start_s() for _ in range(3)) / _REFERENCE_S)


def _start_s() -> float:
    before = os.times()
    subprocess.run([sys.executable, "-I", "-c", _PROGRAM], check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system
