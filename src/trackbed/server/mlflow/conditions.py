"""Comparisons of MLflow's search language over columns of the database."""

from typing import Any

from sqlalchemy import ColumnElement, Select, and_, false, func, literal, not_, or_, select, true
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from trackbed.base.errors import BadInput
from trackbed.server.mlflow.filters import Field, Term
from trackbed.server.mlflow.tables import tag

PROMPT_MARK = "mlflow.prompt.is_prompt"


class _alike(FunctionElement[bool]):  # noqa: N801 - a function of the database
    """Whether a text is like a pattern, letter by letter: SQLite's own LIKE does not mind capitals, its GLOB does."""

    inherit_cache = True
    name = "mlflow_alike"


@compiles(_alike)
def _by_like(element: Any, compiler: Any, **how: Any) -> str:
    column, pattern, _ = element.clauses
    return f"({compiler.process(column, **how)} LIKE {compiler.process(pattern, **how)} ESCAPE '')"


@compiles(_alike, "sqlite")
def _by_glob(element: Any, compiler: Any, **how: Any) -> str:
    column, _, pattern = element.clauses
    return f"({compiler.process(column, **how)} GLOB {compiler.process(pattern, **how)})"


def _glob(pattern: str) -> str:
    marks = {"%": "*", "_": "?", "*": "[*]", "?": "[?]", "[": "[[]"}
    return "".join(marks.get(letter, letter) for letter in pattern)


def compared(column: ColumnElement[Any], term: Term, *, numeric: bool = False) -> ColumnElement[bool]:
    """Return a comparison as a condition.

    Raises:
        BadInput: `mlflow_filter_value`, `mlflow_filter_operator`.
    """
    if term.operator == "NULL":
        return column.is_not(None) if term.negated else column.is_(None)
    values = [_fitting(value, term, numeric=numeric) for value in term.values]
    found = _compare(column, term, values, numeric=numeric)
    return not_(found) if term.negated else found


def _compare(column: ColumnElement[Any], term: Term, values: list[Any], *, numeric: bool) -> ColumnElement[bool]:
    if term.operator == "IN":
        return column.in_(values)
    if term.operator in ("LIKE", "ILIKE"):
        if numeric:
            raise BadInput("mlflow_filter_operator", field=_named(term.field), operator=term.operator)
        if term.operator == "LIKE":
            return _alike(column, literal(values[0]), literal(_glob(values[0])))
        return func.lower(column).like(values[0].lower())
    value = literal(values[0])
    return {
        "=": column == value, "!=": column != value, "<": column < value, "<=": column <= value, ">": column > value,
        ">=": column >= value,
    }[term.operator]  # fmt: skip


def _fitting(value: str | float, term: Term, *, numeric: bool) -> Any:
    if numeric:
        try:
            return float(value)
        except ValueError:
            raise BadInput("mlflow_filter_value", field=_named(term.field), value=str(value)[:200]) from None
    if isinstance(value, float):
        raise BadInput("mlflow_filter_value", field=_named(term.field), value=str(value))
    return value


def tagged(kind: str, owner: ColumnElement[str], term: Term) -> ColumnElement[bool]:
    """Return the condition that a thing has a tag whose value compares so; IS NULL means that it has none."""
    mine = select(tag.c.key).where(tag.c.kind == kind, tag.c.owner == owner, tag.c.key == term.field.key)
    if term.field.key == PROMPT_MARK and term.operator == "!=":  # clients add this to every search of models
        return not_(mine.where(tag.c.value == literal(str(term.values[0]))).exists())
    return holds(mine, tag.c.value, term)


def holds(
    of_name: Select[Any], column: ColumnElement[Any], term: Term, *, numeric: bool = False
) -> ColumnElement[bool]:
    """Return the condition that there is a row whose column compares so; IS NULL means that there is no row."""
    if term.operator == "NULL":
        return of_name.exists() if term.negated else not_(of_name.exists())
    return of_name.where(compared(column, term, numeric=numeric)).exists()


def tag_order(kind: str, owner: ColumnElement[str], key: str) -> ColumnElement[Any]:
    stmt = select(tag.c.value).where(tag.c.kind == kind, tag.c.owner == owner, tag.c.key == key)
    return stmt.scalar_subquery()


def ordered(column: ColumnElement[Any], *, ascending: bool) -> list[ColumnElement[Any]]:
    """Return how rows are ordered by a column: those without a value last either way."""
    return [column.is_(None), column.asc() if ascending else column.desc()]


def all_of(conditions: list[ColumnElement[bool]]) -> ColumnElement[bool]:
    return and_(true(), *conditions)


def any_of(conditions: list[ColumnElement[bool]]) -> ColumnElement[bool]:
    return or_(false(), *conditions)


def _named(field: Field) -> str:
    return f"{field.entity}.{field.key}"[:200]
