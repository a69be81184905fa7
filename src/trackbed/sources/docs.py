"""Documents that travel with a tree: which there are, and the commands in them that a check may run.

A command is marked by the word `trackbed-run` behind the language of its block:

    ```bash trackbed-run timeout=60s
    python train.py --steps 2
    ```
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from trackbed.base.errors import Fault
from trackbed.base.units import parse_duration

MARK = "trackbed-run"
MOST_BYTES = 1 << 20
_DOC = re.compile(
    r"(?:^|/)(?:README|CONTRIBUTING|CHANGELOG|INSTALL|USAGE|TUTORIAL)(?:\.[\w-]+)*$|^docs?/.*\.(?:md|rst|txt)$|\.md$",
    re.IGNORECASE,
)
_NOT = re.compile(r"(?:^|/)(?:node_modules|\.venv|venv|site-packages|third_party|vendor)/")
_FENCE = re.compile(r"^(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})\s*(?P<info>[^`]*)$")
_SHELLS = ("bash", "sh", "shell", "console", "")
_DEFAULT_S = 600.0


@dataclass(frozen=True)
class Command:
    """One marked block: the lines, and the line of the document where its fence stands."""

    line: int
    text: str
    timeout_s: float = _DEFAULT_S


def documents(paths: Iterable[str]) -> list[str]:
    """Return the documents among the paths of a tree: READMEs first, nearer to the root first."""
    found = [path for path in paths if _DOC.search(path) and not _NOT.search(path)]
    return sorted(found, key=lambda path: (path.count("/"), "readme" not in path.lower(), path.lower()))


def commands(text: str) -> tuple[list[Command], list[Fault]]:
    """Return the marked blocks of a document in order, and what is wrong with marks, by line."""
    found: list[Command] = []
    faults: list[Fault] = []
    opened: re.Match[str] | None = None
    begun, held = 0, list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        fence = _FENCE.match(line)
        if opened is None:
            if fence is not None:
                opened, begun, held = fence, number, []
            continue
        if fence is not None and fence["fence"].startswith(opened["fence"]) and not fence["info"].strip():
            _block(opened["info"], begun, held, found, faults)
            opened = None
            continue
        held.append(line.removeprefix(opened["indent"]))
    if opened is not None and MARK in opened["info"].split():
        faults.append(Fault("docs_block_open", "", begun))
    return found, faults


def _block(info: str, line: int, held: list[str], found: list[Command], faults: list[Fault]) -> None:
    words = info.split()
    if MARK not in words:
        return
    language, timeout_s = (words[0] if words[0] != MARK else ""), _DEFAULT_S
    if language not in _SHELLS:
        faults.append(Fault("docs_language", "", line, {"language": language}))
        return
    for word in words[words.index(MARK) + 1 :]:
        name, _, value = word.partition("=")
        try:
            if name != "timeout":
                raise ValueError(word)
            timeout_s = parse_duration(value)
        except ValueError:
            faults.append(Fault("docs_option", "", line, {"option": word}))
            return
    lines = [one.removeprefix("$ ") for one in held if language != "console" or one.startswith("$ ")]
    found.append(Command(line, "\n".join(lines), timeout_s))
