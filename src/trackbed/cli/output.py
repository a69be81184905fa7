"""Records for people and for programs: aligned columns, facts, JSON, one line that is written over."""

import os
import re
import shutil
import sys
import time
import unicodedata
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from trackbed.base.units import format_duration, format_size
from trackbed.cli import context

_NUMBER = re.compile(r"-|[-+]?[\d.,]+(e[-+]?\d+)?( ?(B|KiB|MiB|GiB|TiB|ms|s))?|nan|-?inf|\d+/\d+.*")
SAID_BYTES = 2**20
_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_COLORS = {
    "finished": "32",
    "running": "36",
    "failed": "31",
    "stopped": "33",
    "queued": "34",
    "paused": "35",
    "ok": "32",
    "warn": "33",
    "bad": "31",
}


def emit_json(value: Any) -> bool:
    """Print the value as JSON if that was asked for; whether it was."""
    if not context.current().json:
        return False
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
    return True


def line(text: str = "") -> None:
    print(text, flush=True)  # in step with what goes to stderr


def note(text: str) -> None:
    """Say something that is not the answer; kept out of what a pipe reads."""
    print(text, file=sys.stderr)


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], *, empty: str = "") -> None:
    """Print rows under a head, aligned by the width of what is seen, numbers to the right; nothing is cut off.

    A column in which no row has anything is left out.
    """
    if not rows:
        note(empty or context.say("cli.none"))
        return
    texts = [[clean(cell) for cell in row] for row in rows]
    columns = [at for at in range(len(head)) if any(row[at] for row in texts)]
    texts = [[row[at] for at in columns] for row in texts]
    names = [head[at] for at in columns]
    widths = [max(wide(row[at]) for row in [names, *texts]) for at in range(len(names))]
    right = [all(not row[at] or _NUMBER.fullmatch(row[at]) for row in texts) for at in range(len(names))]
    print(dim(_row(names, widths, right)))
    for row in texts:
        print(_row(row, widths, right))


def facts(rows: Sequence[tuple[str, Any]]) -> None:
    """Print names and values, one a line; empty values are left out."""
    shown = [(name, clean(value)) for name, value in rows if value not in (None, "", [], {})]
    width = max((wide(name) for name, _ in shown), default=0)
    for name, value in shown:
        print(f"{dim(_pad(name, width))}  {value}")


def state(name: str, kind: str = "state", *, more: str = "") -> str:
    """Return the word for a state, and more behind it, in its colour on a terminal."""
    return paint(context.word(f"{kind}.{name}", name) + more, _COLORS.get(name, ""))


def paint(text: str, color: str) -> str:
    return f"\x1b[{color}m{text}\x1b[0m" if color and _colors() else text


def dim(text: str) -> str:
    return paint(text, "2")


def bold(text: str) -> str:
    return paint(text, "1")


def clean(value: Any) -> str:
    """Return one line without control characters of others: what a program logged must not drive the terminal."""
    text = "" if value is None else str(value)
    if text.startswith("\x1b[") and text.endswith("\x1b[0m"):  # painted by us
        return text
    return "".join(char if char.isprintable() else "�" for char in text.replace("\n", " ").replace("\t", " "))


def number(value: float | str | None) -> str:
    """Return a number in at most six digits."""
    if value is None or value == "":
        return ""
    return f"{float(value):.6g}"


def when(time_us: int) -> str:
    """Return local time with its zone, to the second."""
    return datetime.fromtimestamp(time_us / 1e6).astimezone().strftime("%Y-%m-%d %H:%M:%S %z") if time_us else ""


def ago(time_us: int) -> str:
    return format_duration(max(time.time() - time_us / 1e6, 0)) if time_us else ""


def wide(text: str) -> int:
    """Return how many columns a terminal needs: Chinese characters take two, colours none."""
    text = _COLOR.sub("", text)
    return sum(
        2 if unicodedata.east_asian_width(char) in "WF" else 0 if unicodedata.combining(char) else 1 for char in text
    )


def sending(live: "Live", done: int, total: int, *, indent: str = "") -> None:
    """Show how much is on its way; what is there at once needs no word."""
    if total >= SAID_BYTES:
        live.show(indent + context.say("cli.sending", done=format_size(done), total=format_size(total)))


def coming(live: "Live", done: int, total: int, bytes_per_s: float, left_s: float | None) -> None:
    """Show how much has come, how fast, and the time left."""
    if total >= SAID_BYTES:
        left = "-" if left_s is None else format_duration(left_s)
        speed = format_size(round(bytes_per_s))
        live.show(context.say("cli.coming", done=format_size(done), total=format_size(total), speed=speed, left=left))


class Live:
    """One line that is written over on a terminal; elsewhere a line every few seconds."""

    def __init__(self, *, every_s: float = 5.0) -> None:
        self._tty = sys.stderr.isatty()
        self._every_s = every_s
        self._last_s = 0.0
        self._text = ""

    def show(self, text: str, *, force: bool = False) -> None:
        if self._tty:
            limit = shutil.get_terminal_size().columns - 1
            if wide(text) > limit:
                text = _COLOR.sub("", text)
                while wide(text) > limit:
                    text = text[:-1]
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
        elif text != self._text and (force or time.monotonic() - self._last_s >= self._every_s):
            print(text, file=sys.stderr, flush=True)
            self._last_s = time.monotonic()
        self._text = text

    def end(self) -> None:
        """Leave the last line where it is."""
        if self._tty and self._text:
            sys.stderr.write("\n")
        self._text = ""

    def clear(self) -> None:
        if self._tty and self._text:
            sys.stderr.write("\r\x1b[K")
        self._text = ""


def _row(cells: list[str], widths: list[int], right: list[bool]) -> str:
    places = zip(cells, widths, right, strict=True)
    return "  ".join(_pad(cell, width, right=number) for cell, width, number in places).rstrip()


def _pad(text: str, width: int, *, right: bool = False) -> str:
    blanks = " " * (width - wide(text))
    return blanks + text if right else text + blanks


def _colors() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
