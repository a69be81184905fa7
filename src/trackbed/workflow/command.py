"""`{{params.NAME}}` in a `run:` line: plain substitution, quoted for sh. No expressions.

The value is quoted where it stands on its own. Inside quotes, back-ticks or a here-document no quoting is right for
every value, so that is a fault, never a guess.
"""

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

from trackbed.base.errors import BadInput, Fault

_HOLE = re.compile(r"\{\{\s*(?P<inner>params\b[^{}]*|[A-Za-z_][\w.-]*)\s*\}\}")
_PARAM = re.compile(r"params\.(?P<name>[^\s{}]+)")
_HEREDOC = re.compile(r"<<-?[ \t]*(?P<quote>['\"]?)(?P<word>[A-Za-z_][\w.-]*)(?P=quote)")


class Hole(NamedTuple):
    start: int
    end: int
    inner: str
    quoted: bool  # inside quotes, back-ticks or a here-document
    row: int  # lines from the start of the command, 0 first


def lookup(params: dict[str, Any], name: str) -> tuple[bool, Any]:
    """Return (found, value) of `name`: as it stands, else as a path through nested params."""
    if name in params:
        return True, params[name]
    value: Any = params
    for part in name.split("."):
        if not isinstance(value, dict) or part not in value:
            return False, None
        value = value[part]
    return True, value


def as_text(value: Any) -> str:
    """Text as it is; numbers, true, false, null, lists and maps as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def command_faults(command: str, params: dict[str, Any], field: str = "run") -> list[Fault]:
    """Return what keeps the command from being rendered with these params. `line` is the row inside the command."""
    faults: list[Fault] = []
    for hole in holes(command):
        found = _PARAM.fullmatch(hole.inner)
        if found is None:
            faults.append(Fault("spec_no_expressions", field, hole.row, {"hole": command[hole.start : hole.end]}))
        elif not lookup(params, found["name"])[0]:
            known = ", ".join(sorted(params)) or "-"
            faults.append(Fault("spec_param_undefined", field, hole.row, {"name": found["name"], "known": known}))
        elif hole.quoted:
            faults.append(Fault("spec_param_in_quotes", field, hole.row, {"name": found["name"]}))
    return faults


def render_command(command: str, params: dict[str, Any]) -> str:
    """Return the command with every `{{params.NAME}}` replaced by its shell-quoted value.

    Raises:
        BadInput: `spec_wrong` with every hole that cannot be filled.
    """
    faults = command_faults(command, params)
    if faults:
        raise BadInput("spec_wrong", faults=[fault._replace(line=None) for fault in faults], count=len(faults))
    parts: list[str] = []
    at = 0
    for hole in holes(command):
        value = lookup(params, hole.inner.removeprefix("params."))[1]
        parts += [command[at : hole.start], shlex.quote(as_text(value))]
        at = hole.end
    return "".join([*parts, command[at:]])


def holes(command: str) -> Iterator[Hole]:
    """Yield the holes in order, each with whether it lies inside quotes of the shell."""
    quoted = _quoted(command)
    for found in _HOLE.finditer(command):
        row = command.count("\n", 0, found.start())
        yield Hole(found.start(), found.end(), found["inner"].strip(), bool(quoted[found.start()]), row)


def _quoted(command: str) -> bytearray:
    """Return one byte a character: 1 inside quotes, back-ticks or a here-document."""
    marks = bytearray(len(command))
    quote = ""
    words: list[str] = []  # here-documents that begin at the next line
    at = 0
    while at < len(command):
        char = command[at]
        if quote:
            marks[at] = 1
            if char == "\\" and quote != "'" and at + 1 < len(command):
                at += 1
                marks[at] = 1
            elif char == quote:
                quote = ""
        elif char == "\\":
            at += 1
        elif char in "'\"`":
            quote = char
        elif char == "#" and (at == 0 or command[at - 1] in " \t\n;&|("):
            at = _line_end(command, at) - 1
        elif char == "<" and not command.startswith("<<<", at) and (found := _HEREDOC.match(command, at)):
            words.append(found["word"])
            at = found.end() - 1
        elif char == "<" and command.startswith("<<<", at):
            at += 2
        elif char == "\n" and words:
            end = _heredoc_end(command, at + 1, words)
            marks[at + 1 : end] = b"\x01" * (end - at - 1)
            words = []
            at = end - 1
        at += 1
    return marks


def _heredoc_end(command: str, at: int, words: list[str]) -> int:
    for word in words:
        while at < len(command):
            end = _line_end(command, at)
            line = command[at:end].lstrip("\t")
            at = min(end + 1, len(command))
            if line == word:
                break
    return at


def _line_end(command: str, at: int) -> int:
    end = command.find("\n", at)
    return len(command) if end < 0 else end
