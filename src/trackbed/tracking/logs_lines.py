"""What a line of a log means and how it is shown. Pure: bytes in, level and text out."""

import re
from collections.abc import Iterable

LEVELS = ("debug", "info", "warning", "error")
DEBUG, INFO, WARNING, ERROR = range(4)

_PREFIX = rb"(?:\[rank\d+\]:? ?|\[\w+:\d+\]:? ?)?"
_TRACEBACK = re.compile(_PREFIX + rb"Traceback \(most recent call last\):")
_RAISED = re.compile(_PREFIX + rb"(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning)\b(?::|$)")
_ERROR = re.compile(rb"\b(?:ERROR|CRITICAL|FATAL|error:|fatal:)|\bcore dumped\b|\bSegmentation fault\b")
_WARNING = re.compile(rb"\b(?:WARNING|WARN|\w*Warning:)")
_DEBUG = re.compile(rb"\bDEBUG\b")
# CSI and OSC sequences, and the two-byte escapes
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
HEAD_BYTES = 4096  # a level stands at the beginning of a line, if anywhere


class LevelGuess:
    """Guesses the levels of the lines of one stream, one after the other: a traceback is an error to its last line."""

    def __init__(self) -> None:
        self._in_traceback = False

    def level(self, stream: str, said: str, data: bytes) -> int:
        if said in LEVELS:
            return LEVELS.index(said)
        head = data[:HEAD_BYTES]
        if stream == "stderr" and self._traceback(head):
            return ERROR
        if _ERROR.search(head):
            return ERROR
        if _WARNING.search(head):
            return WARNING
        return DEBUG if _DEBUG.search(head) else INFO

    def _traceback(self, head: bytes) -> bool:
        if _TRACEBACK.match(head):
            self._in_traceback = True
            return True
        raised = _RAISED.match(head)
        if raised is not None:
            self._in_traceback = False
            return b"Warning" not in raised.group()
        return self._in_traceback


def text_of(data: bytes) -> str:
    """Return a line as a terminal would leave it: after its last carriage return, without colours, broken bytes replaced."""
    if b"\r" in data:
        data = next((piece for piece in reversed(data.split(b"\r")) if piece), b"")
    text = data.decode("utf-8", "replace")
    return _ANSI.sub("", text) if "\x1b" in text else text


def overwritten(lines: Iterable[tuple[tuple[int, int, str], bytes]]) -> list[bool]:
    """Return for each line, in order, whether the next of its stream was written over it (it ended in a carriage return).

    Each comes as ((attempt, rank, stream), bytes).
    """
    listed = list(lines)
    gone = [False] * len(listed)
    last: dict[tuple[int, int, str], int] = {}
    for at, (stream, _) in enumerate(listed):
        before = last.get(stream)
        if before is not None and listed[before][1].endswith(b"\r"):
            gone[before] = True
        last[stream] = at
    return gone
