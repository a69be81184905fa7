"""The search language of runs: text in, tree out. Pure.

metrics.loss < 2 and params.lr = 0.001 and tags has 'a' and state = 'running' and name like '%x%'
not (max(metrics.'eval/loss') >= 3e-1 or owner in ('ada', 'bo')) and created > '2026-11-01' and 损失 …

or       = and ("or" and)*
and      = not ("and" not)*
not      = "not" not | "(" or ")" | test
test     = field operator value | field ["not"] "in" "(" value ("," value)* ")" | field ["not"] "like" text
         | field ["not"] "has" text
field    = name | ("metrics" | "params") "." key | ("min" | "max" | "last") "(" "metrics" "." key ")"
key      = letters, digits and any of _ / @ . : + -   or quoted
value    = number | 'text' | "text" | true | false | nan | inf
"""

import re
from dataclasses import dataclass
from typing import Any, Literal

from trackbed.base.errors import BadInput

OPERATORS = ("=", "==", "!=", "<>", "<", "<=", ">", ">=")
MAX_CHARS = 10_000
MAX_DEPTH = 50
_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w/@.]))
      | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
      | (?P<op><=|>=|!=|<>|==|=|<|>|\(|\)|,)
      | (?P<word>[\w/@:+%#-]+(?:\.[\w/@:+%#-]+)*\.?)""",
    re.VERBOSE,
)
_WORDS = frozenset({"and", "or", "not", "in", "like", "has"})
Aggregate = Literal["last", "min", "max"]


@dataclass(frozen=True)
class Field:
    """`group` is metrics, params or "" for what stands on the run itself."""

    group: str
    name: str
    position: int
    aggregate: Aggregate = "last"


@dataclass(frozen=True)
class Comparison:
    """`values` holds one value but for `in`. The operator is one of OPERATORS (= and != written once), in, like, has."""

    field: Field
    operator: str
    values: tuple[float | str | bool, ...]
    position: int


@dataclass(frozen=True)
class Not:
    inner: "Node"


@dataclass(frozen=True)
class Both:
    parts: "tuple[Node, ...]"


@dataclass(frozen=True)
class Either:
    parts: "tuple[Node, ...]"


Node = Comparison | Not | Both | Either


@dataclass(frozen=True)
class _Token:
    kind: str  # number | text | op | word | end
    text: str
    position: int


def parse(text: str) -> Node | None:
    """Return the tree of a filter; None for an empty one.

    Raises:
        BadInput: `filter_unreadable`, `filter_unexpected` with the position (from 1) and what may stand there.
    """
    if len(text) > MAX_CHARS:
        raise BadInput("filter_long", size=len(text), limit=MAX_CHARS)
    parser = _Parser(_tokens(text))
    if parser.here.kind == "end":
        return None
    node = parser.either()
    if parser.here.kind != "end":
        raise parser.unexpected("and, or")
    return node


def parse_field(text: str) -> Field:
    """Return the field of `order_by`: as in a filter."""
    parser = _Parser(_tokens(text))
    field = parser.field()
    if parser.here.kind != "end":
        raise parser.unexpected("-")
    return field


def field_text(group: str, name: str) -> str:
    """Return a field as a filter reads it: quoted where its name holds more than the language takes as one word."""
    if not group:
        return name
    plain = re.fullmatch(r"[\w/@:+%#-]+(\.[\w/@:+%#-]+)*", name)
    return f"{group}.{name}" if plain else f"{group}.{value_text(name)}"


def value_text(value: str | float | bool) -> str:
    """Return a value as a filter reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, int | float) else "'" + value.replace("'", "''") + "'"


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise BadInput("filter_unreadable", position=at + 1, near=text[at : at + 20])
        kind = str(match.lastgroup)
        if kind != "space":
            found.append(_Token(kind, match.group(), at + 1))
        at = match.end()
    return [*found, _Token("end", "", len(text) + 1)]


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    @property
    def here(self) -> _Token:
        return self._tokens[self._at]

    def take(self) -> _Token:
        token = self.here
        self._at += token.kind != "end"
        return token

    def word(self, *words: str) -> bool:
        """Take one of the words if it is next."""
        if self.here.kind in ("word", "op") and self.here.text.lower() in words:
            self.take()
            return True
        return False

    def unexpected(self, wanted: str) -> BadInput:
        if self.here.kind == "end":
            return BadInput("filter_ends", position=self.here.position, wanted=wanted)
        return BadInput("filter_unexpected", position=self.here.position, found=self.here.text, wanted=wanted)

    def either(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise BadInput("filter_deep", position=self.here.position, limit=MAX_DEPTH)
        parts = [self.both()]
        while self.word("or"):
            parts.append(self.both())
        self._depth -= 1
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def both(self) -> Node:
        parts = [self.negated()]
        while self.word("and"):
            parts.append(self.negated())
        return parts[0] if len(parts) == 1 else Both(tuple(parts))

    def negated(self) -> Node:
        times = 0
        while self.word("not"):
            times += 1
        node = self.single()
        return Not(node) if times % 2 else node

    def single(self) -> Node:
        if self.word("("):
            node = self.either()
            if not self.word(")"):
                raise self.unexpected(")")
            return node
        return self.test()

    def field(self) -> Field:
        token = self.here
        if token.kind != "word" or token.text.lower() in _WORDS:
            raise self.unexpected("name, metrics.KEY, params.NAME")
        self.take()
        if token.text in ("min", "max", "last") and self.word("("):
            inner = self.field()
            if inner.group != "metrics":
                raise BadInput("filter_unexpected", position=inner.position, found=inner.name, wanted="metrics.KEY")
            if not self.word(")"):
                raise self.unexpected(")")
            aggregate: Any = token.text
            return Field("metrics", inner.name, token.position, aggregate)
        group, dot, name = token.text.partition(".")
        singular = {"metric": "metrics", "param": "params"}.get(group, group)
        if not dot or singular not in ("metrics", "params"):
            return Field("", token.text, token.position)
        if not name:
            if self.here.kind != "text":
                raise self.unexpected("'KEY'")
            name = _unquoted(self.take().text)
        return Field(singular, name, token.position)

    def test(self) -> Node:
        field = self.field()
        token = self.here
        negated = self.word("not")
        node = self._tail(field, token.position, negated=negated)
        return Not(node) if negated else node

    def _tail(self, field: Field, position: int, *, negated: bool) -> Comparison:
        if self.word("in"):
            if not self.word("("):
                raise self.unexpected("(")
            values = [self.value()]
            while self.word(","):
                values.append(self.value())
            if not self.word(")"):
                raise self.unexpected("), ,")
            return Comparison(field, "in", tuple(values), position)
        for operator in ("like", "has"):
            if self.word(operator):
                return Comparison(field, operator, (self.value(),), position)
        if negated or self.here.kind != "op" or self.here.text not in OPERATORS:
            raise self.unexpected("in, like, has" if negated else "=, !=, <, <=, >, >=, in, like, has")
        operator = {"==": "=", "<>": "!="}.get(self.here.text, self.here.text)
        self.take()
        return Comparison(field, operator, (self.value(),), position)

    def value(self) -> float | str | bool:
        token = self.here
        if token.kind == "number":
            return float(self.take().text)
        if token.kind == "text":
            return _unquoted(self.take().text)
        named: dict[str, float | bool] = {
            "true": True, "false": False, "nan": float("nan"), "inf": float("inf"), "+inf": float("inf"),
            "-inf": float("-inf"), "infinity": float("inf"), "-infinity": float("-inf"),
        }  # fmt: skip
        if token.kind == "word" and token.text.lower() in named:
            return named[self.take().text.lower()]
        raise self.unexpected("0.5, 'text', true, false")


def _unquoted(text: str) -> str:
    mark = text[0]
    return text[1:-1].replace(mark * 2, mark)
