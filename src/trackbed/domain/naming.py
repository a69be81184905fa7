"""Patterns that names and tags of a project must fit. Pure, and linear in the length of the name: no regular expressions.

    {team}-{model}-{size}b-{date}     any label is one word; `date` is 2026-12-01 or 20261201, `number` digits, `user` who submits
    exp-{baseline|ablation}-{any}     one of several words; `any` is one or more characters of any kind

Everything outside of braces stands for itself.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

MOST_CHARACTERS = 500
MOST_HOLES = 20
_HOLE = re.compile(r"\{([^{}]*)\}")
_LABEL = re.compile(r"[^\W\d_][\w-]{0,30}")
_DAY = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])|\d{4}(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")
_EXAMPLES = {"date": "2026-12-01", "number": "3", "any": "x1"}


class PatternError(ValueError):
    """`code` says what is wrong with a pattern, `part` where."""

    def __init__(self, code: str, part: str) -> None:
        super().__init__(f"{code}: {part}")
        self.code, self.part = code, part


@dataclass(frozen=True)
class Pattern:
    """A pattern that was read."""

    text: str
    parts: tuple[tuple[str, str], ...]  # (kind, text): literal | word | date | number | any | user | choice

    def fits(self, name: str, *, user: str = "") -> bool:
        """Whether the whole name fits."""
        places = {0}
        for kind, text in self.parts:
            places = {end for at in places for end in _ends(kind, text, name, at, user)}
            if not places:
                return False
        return len(name) in places

    def example(self, *, user: str = "") -> str:
        """Return a name that fits."""
        return "".join(_example(kind, text, user) for kind, text in self.parts)


def read(text: str) -> Pattern:
    """Return the pattern.

    Raises:
        PatternError: `empty`, `too_long`, `brace`, `label`, `choice`, `text`.
    """
    if not text:
        raise PatternError("empty", text)
    if len(text) > MOST_CHARACTERS or text.count("{") > MOST_HOLES:
        raise PatternError("too_long", text[:40])
    parts: list[tuple[str, str]] = []
    at = 0
    for hole in _HOLE.finditer(text):
        parts += _literal(text[at : hole.start()])
        parts.append(_hole(hole[1]))
        at = hole.end()
    parts += _literal(text[at:])
    return Pattern(text, tuple(parts))


def _literal(text: str) -> list[tuple[str, str]]:
    if "{" in text or "}" in text:
        raise PatternError("brace", text)
    if not text.isprintable():
        raise PatternError("text", ascii(text))
    return [("literal", text)] if text else []


def _hole(inside: str) -> tuple[str, str]:
    if "|" in inside:
        words = [word.strip() for word in inside.split("|")]
        if not all(words) or not all(word.isprintable() for word in words):
            raise PatternError("choice", inside)
        return "choice", "|".join(words)
    if inside in ("date", "number", "any", "user"):
        return inside, inside
    if not _LABEL.fullmatch(inside):
        raise PatternError("label", inside)
    return "word", inside


def _example(kind: str, text: str, user: str) -> str:
    if kind == "choice":
        return text.split("|")[0]
    if kind == "user":
        return user or "ann"
    return _EXAMPLES.get(kind, re.sub(r"[\W_]", "", text) if kind == "word" else text)


def _ends(kind: str, text: str, name: str, at: int, user: str) -> Iterator[int]:
    """Where a part that begins at a place may end."""
    if kind in ("literal", "user"):
        wanted = (user or "ann") if kind == "user" else text
        if name.startswith(wanted, at):
            yield at + len(wanted)
    elif kind == "choice":
        yield from (at + len(word) for word in text.split("|") if name.startswith(word, at))
    elif kind == "date":
        yield from (at + length for length in (8, 10) if _DAY.fullmatch(name[at : at + length]))
    else:
        takes = _TAKES[kind]
        end = at
        while end < len(name) and takes(name[end]):
            end += 1
            yield end


_TAKES: dict[str, Callable[[str], bool]] = {
    "word": str.isalnum,
    "number": lambda letter: letter in "0123456789",
    "any": lambda letter: True,
}
