"""MLflow's search language: `metrics.loss < 0.1 and params.\"lr\" = '0.1' and tags.x ILIKE '%a%'`. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from trackbed.base.errors import BadInput

_BLANK = re.compile(r"\s*")
_FIELD = re.compile(
    r"(?:(?P<entity>[A-Za-z_]+)\.)?(?:`(?P<tick>[^`]+)`|\"(?P<quoted>[^\"]+)\"|(?P<plain>[^\s=!<>,()'\"`]+))"
)
_OPERATOR = re.compile(
    r"<=|>=|!=|=|<|>|IS\s+NOT\s+NULL\b|IS\s+NULL\b|NOT\s+IN\b|NOT\s+I?LIKE\b|I?LIKE\b|IN\b", re.IGNORECASE
)
_AND = re.compile(r"AND\b", re.IGNORECASE)
_VALUE = re.compile(r"'(?P<single>(?:[^'\\]|\\.|'')*)'|\"(?P<double>(?:[^\"\\]|\\.)*)\"|(?P<number>[+-]?[\w.+-]+)")
_ORDER = re.compile(r"(?P<field>.*?)(?:\s+(?P<way>ASC|DESC))?\s*", re.IGNORECASE | re.DOTALL)
_ENTITIES = {
    "metric": "metrics", "metrics": "metrics", "parameter": "params", "parameters": "params", "param": "params",
    "params": "params", "tag": "tags", "tags": "tags", "attribute": "attributes", "attributes": "attributes",
    "attr": "attributes", "run": "attributes", "dataset": "datasets", "datasets": "datasets",
}  # fmt: skip


@dataclass(frozen=True)
class Field:
    """`entity` is metrics, params, tags, attributes or datasets."""

    entity: str
    key: str


@dataclass(frozen=True)
class Term:
    """One comparison; all terms of a filter must hold. `values` has one entry but for IN (any) and IS NULL (none)."""

    field: Field
    operator: str  # = != < <= > >= LIKE ILIKE IN NULL; negated ones by `negated`
    values: tuple[str | float, ...] = ()
    negated: bool = False


def parse(text: str) -> list[Term]:
    """Return the comparisons of a filter.

    Raises:
        BadInput: `mlflow_filter_bad`, with the place and what may stand there.
    """
    terms: list[Term] = []
    at = _skip(text, 0)
    while at < len(text):
        if terms:
            joined = _AND.match(text, at)
            if joined is None:
                raise _wrong(text, at, "AND")
            at = _skip(text, joined.end())
        term, at = _term(text, at)
        terms.append(term)
        at = _skip(text, at)
    return terms


def parse_order(text: str) -> tuple[Field, bool]:
    """Return the field of an `order_by` entry, and whether it ascends."""
    found = _ORDER.fullmatch(text.strip())
    assert found is not None
    field, at = _field(found["field"], 0)
    if _skip(found["field"], at) != len(found["field"]):
        raise _wrong(text, at, "ASC, DESC")
    return field, (found["way"] or "ASC").upper() == "ASC"


def _term(text: str, at: int) -> tuple[Term, int]:
    field, at = _field(text, at)
    at = _skip(text, at)
    found = _OPERATOR.match(text, at)
    if found is None:
        raise _wrong(text, at, "=, !=, <, <=, >, >=, LIKE, ILIKE, IN, IS NULL")
    words = found.group().upper().split()
    at = _skip(text, found.end())
    negated = words[-1] != words[0] and "NOT" in words
    if words[0] == "IS":
        return Term(field, "NULL", negated=negated), at
    if words[-1] == "IN":
        values, at = _list(text, at)
        return Term(field, "IN", tuple(values), negated), at
    value, at = _value(text, at)
    return Term(field, words[-1], (value,), negated), at


def _field(text: str, at: int) -> tuple[Field, int]:
    found = _FIELD.match(text, at)
    if found is None:
        raise _wrong(text, at, "metrics.KEY, params.KEY, tags.KEY, attributes.NAME")
    key = found["tick"] or found["quoted"] or found["plain"]
    entity = _ENTITIES.get((found["entity"] or "attributes").lower())
    if entity is None:
        raise _wrong(text, at, "metrics.KEY, params.KEY, tags.KEY, attributes.NAME")
    return Field(entity, key), found.end()


def _list(text: str, at: int) -> tuple[list[str | float], int]:
    if text[at : at + 1] != "(":
        raise _wrong(text, at, "(")
    values: list[str | float] = []
    while True:
        at = _skip(text, at + 1)
        value, at = _value(text, at)
        values.append(value)
        at = _skip(text, at)
        if text[at : at + 1] == ")":
            return values, at + 1
        if text[at : at + 1] != ",":
            raise _wrong(text, at, ", or )")


def _value(text: str, at: int) -> tuple[str | float, int]:
    found = _VALUE.match(text, at)
    if found is None:
        raise _wrong(text, at, "'TEXT', a number")
    if found["number"] is not None:
        try:
            return float(found["number"]), found.end()
        except ValueError:
            raise _wrong(text, at, "'TEXT', a number") from None
    if found["single"] is not None:
        return re.sub(r"\\(['\\])", r"\1", found["single"].replace("''", "'")), found.end()
    return re.sub(r"\\([\"\\])", r"\1", found["double"]), found.end()


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _wrong(text: str, at: int, wanted: str) -> BadInput:
    return BadInput("mlflow_filter_bad", position=at + 1, found=text[at : at + 40] or "-", wanted=wanted)


def unknown(field: Field, known: Mapping[str, object] | tuple[str, ...]) -> BadInput:
    """Return the error of a field that nothing here has."""
    return BadInput("mlflow_filter_field", field=f"{field.entity}.{field.key}"[:200], known=", ".join(sorted(known)))
