"""Which lines match a pattern, bounded in time. Plain text is looked for here; a regular expression runs in a child process
that is ended when it takes too long, because no check tells a pattern's cost beforehand.
"""

import re
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence

import msgspec

from trackbed.base.errors import BadInput, TooLarge

MAX_PATTERN_CHARS = 1000
TIMEOUT_S = 2.0
_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}]")
_AT_ONCE = threading.BoundedSemaphore(2)
_CHILD = """
import json, re, sys
pattern, lines = json.load(sys.stdin)
search = re.compile(pattern).search
json.dump([at for at, line in enumerate(lines) if search(line)], sys.stdout)
"""

Matcher = Callable[[Sequence[str]], list[int]]


def matcher(pattern: str) -> Matcher:
    """Return a function from lines to the places of those that match.

    Raises:
        BadInput: `grep_wrong` with what is wrong; from the function, `grep_slow`.
        TooLarge: `grep_long`.
    """
    if len(pattern) > MAX_PATTERN_CHARS:
        raise TooLarge("grep_long", size=len(pattern), limit=MAX_PATTERN_CHARS)
    if not _SPECIAL.search(pattern):
        return lambda lines: [at for at, line in enumerate(lines) if pattern in line]
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as wrong:
        raise BadInput("grep_wrong", pattern=pattern, what=str(wrong)) from None
    return lambda lines: _in_child(pattern, lines)


def _in_child(pattern: str, lines: Sequence[str]) -> list[int]:
    asked = msgspec.json.encode([pattern, list(lines)])
    with _AT_ONCE:
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-S", "-c", _CHILD], input=asked, capture_output=True, timeout=TIMEOUT_S, env={}
            )
        except subprocess.TimeoutExpired:
            raise BadInput("grep_slow", pattern=pattern, seconds=TIMEOUT_S) from None
    if done.returncode != 0:
        raise BadInput("grep_wrong", pattern=pattern, what=done.stderr.decode("utf-8", "replace").strip()[-200:])
    return msgspec.json.decode(done.stdout, type=list[int])
