"""Filters and orders of the runs table as conditions of the database: `compile(text)`, `order(text)`.

A run without the metric or param of a comparison does not meet it, `!=` included; `not (…)` turns that around.
"""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Integer, Text, and_, case, cast, false, func, literal, not_, or_, select, true
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from trackbed.base.clock import SystemClock
from trackbed.base.errors import BadInput
from trackbed.base.units import parse_duration
from trackbed.tracking.facts_values import pack
from trackbed.tracking.ingest_tables import metric, param
from trackbed.tracking.runs_tables import run
from trackbed.tracking.search_parse import Both, Comparison, Either, Field, Node, Not, parse, parse_field

_TEXTS = {
    "id": run.c.id, "name": run.c.name, "description": run.c.description, "project": run.c.project, "space": run.c.space,
    "owner": run.c.owner, "state": run.c.state, "cause": run.c.cause, "priority": run.c.priority,
    "tree": run.c.tree_digest, "environment": run.c.environment_digest, "reproduces": run.c.reproduces,
}  # fmt: skip
_NUMBERS = {
    "number": run.c.number, "cards": run.c.cards, "attempt": run.c.attempt, "step": run.c.step,
    "steps_total": run.c.steps_total, "card_seconds": run.c.card_seconds,
}  # fmt: skip
_TIMES = {
    "created": run.c.created_us, "queued": run.c.queued_us, "started": run.c.started_us, "ended": run.c.ended_us,
    "contact": run.c.contact_us,
}  # fmt: skip
_INDEXED = ("state", "owner", "project")
_OTHERS = ("tags", "ref", "outside", "duration")
FIELDS = tuple(sorted([*_TEXTS, *_NUMBERS, *_TIMES, *_OTHERS]))
_AGO = re.compile(r"(?P<time>.+?)\s+ago")
_COMPARE: dict[str, Callable[[Any, Any], ColumnElement[bool]]] = {
    "=": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip


class _place(FunctionElement[int]):  # noqa: N801 - a function of the database
    """Where a text stands in another, from 1; 0 where it does not. Case matters, unlike in SQLite's LIKE."""

    inherit_cache = True
    name = "strpos"
    type = Integer()


@compiles(_place)
def _strpos(element: Any, compiler: Any, **how: Any) -> str:
    return f"strpos({compiler.process(element.clauses, **how)})"


@compiles(_place, "sqlite")
def _instr(element: Any, compiler: Any, **how: Any) -> str:
    return f"instr({compiler.process(element.clauses, **how)})"


class _listed(FunctionElement[Any]):  # noqa: N801 - a function of the database
    """A column for which SQLite looks up no other index than the one of lists: without statistics it guesses wrong."""

    inherit_cache = True

    def __init__(self, column: ColumnElement[Any]) -> None:
        super().__init__(column)
        self.type = column.type


@compiles(_listed)
def _as_it_is(element: Any, compiler: Any, **how: Any) -> str:
    return str(compiler.process(element.clauses, **how))


@compiles(_listed, "sqlite")
def _no_index(element: Any, compiler: Any, **how: Any) -> str:
    return f"+{compiler.process(element.clauses, **how)}"


def compile(text: str, *, now_us: int | None = None) -> ColumnElement[bool]:
    """Return a filter as a condition over the run table; an empty one is always true.

    `now_us` is what `2h ago` counts from; None: now.

    Raises:
        BadInput: with the position of the fault and what may stand there.
    """
    node = parse(text)
    return true() if node is None else _condition(node, SystemClock().now_us() if now_us is None else now_us)


def order(text: str) -> ColumnElement[Any] | None:
    """Return what `order_by` names: a field, `metrics.KEY`, `min(metrics.KEY)` or `params.NAME`; None for nothing.

    Rows without the metric or param have NULL.
    """
    if not text.strip():
        return None
    field = parse_field(text)
    if field.group == "metrics":
        return _metric(field).scalar_subquery()
    if field.group == "params":
        stmt = select(param.c.number).where(param.c.run_id == run.c.id, param.c.name == field.name)
        # what has no number has none to order by either; said, so that SQLite takes the index that holds the number
        return stmt.where(param.c.number >= -math.inf).correlate(run).scalar_subquery()
    name = {"created_us": "created", "ref": "number"}.get(field.name, field.name)
    column = (_TEXTS | _NUMBERS | _TIMES).get(name)
    if name == "duration":
        return _duration()
    if column is None:
        raise _unknown(field)
    return column


def _condition(node: Node, now_us: int) -> ColumnElement[bool]:
    if isinstance(node, Not):
        return not_(_condition(node.inner, now_us))
    if isinstance(node, Both):
        return and_(true(), *(_condition(part, now_us) for part in node.parts))
    if isinstance(node, Either):
        return or_(false(), *(_condition(part, now_us) for part in node.parts))
    if node.field.group == "metrics":
        return run.c.id.in_(_with_metric(node.field).where(_compared(_aggregate(node.field), node, float)))
    if node.field.group == "params":
        return _params(node)
    return _plain(node, now_us)


def _aggregate(field: Field) -> ColumnElement[Any]:
    return {"last": metric.c.last, "min": metric.c.min, "max": metric.c.max}[field.aggregate]


def _metric(field: Field) -> Any:
    """Return the select of one metric of the run of the outer query; of rank 0, whose values stand for the run."""
    # no rank is less than 0; with "=" SQLite would take the unique index, and read each row for its value
    stmt = select(_aggregate(field)).where(metric.c.run_id == run.c.id, metric.c.key == field.name, metric.c.rank <= 0)
    return stmt.correlate(run)


def _with_metric(field: Field) -> Any:
    """Return the select of runs with a metric: a list found by its index once, not a look-up for each run."""
    return select(metric.c.run_id).where(metric.c.key == field.name, metric.c.rank == 0)


def _params(test: Comparison) -> ColumnElement[bool]:
    of_name = select(param.c.run_id).where(param.c.name == test.field.name)
    numbers = [value for value in test.values if isinstance(value, float)]
    if test.operator in ("like", "has"):
        return run.c.id.in_(of_name.where(_like(func.trim(param.c.value, '"'), test)))
    if len(numbers) == len(test.values):
        return run.c.id.in_(of_name.where(_compared(param.c.number, test, float)))
    texts = [pack(value) for value in test.values]
    if test.operator == "in":
        return run.c.id.in_(of_name.where(param.c.value.in_(texts)))
    return run.c.id.in_(of_name.where(_COMPARE[test.operator](param.c.value, texts[0])))


def _plain(test: Comparison, now_us: int) -> ColumnElement[bool]:
    name = test.field.name
    if name == "tags":
        return _tags(test)
    if name in _TEXTS:
        column = _TEXTS[name]
        return _text(_listed(column) if name in _INDEXED else column, test)
    if name == "ref":
        return _text(run.c.project + "#" + cast(run.c.number, Text), test)
    if name in _NUMBERS:
        return _compared(_NUMBERS[name], test, float)
    if name == "duration":
        return _compared(_duration(), test, _seconds)
    if name in _TIMES:
        column = _listed(_TIMES[name])
        return and_(column > 0, _compared(column, test, lambda value: _time(value, test, now_us)))
    if name == "outside":
        wanted = [1 if value in (True, 1.0) else 0 for value in test.values]
        return _COMPARE.get(test.operator, _COMPARE["="])(run.c.outside, wanted[0])
    raise _unknown(test.field)


def _tags(test: Comparison) -> ColumnElement[bool]:
    if test.operator not in ("has", "=", "in"):
        raise BadInput("filter_unexpected", position=test.position, found=test.operator, wanted="has, in")
    # tags are a JSON list without spaces: a quote that no backslash precedes begins or ends an element
    written = [pack(str(tag)) for tag in test.values]
    return or_(*(_place(run.c.tags, mark + tag) > 0 for tag in written for mark in "[,"))


def _text(column: ColumnElement[str], test: Comparison) -> ColumnElement[bool]:
    if test.operator in ("like", "has"):
        return _like(column, test)
    values = [_as_text(value, test) for value in test.values]
    if test.operator == "in":
        return column.in_(values)
    return _COMPARE[test.operator](column, values[0])


def _like(column: ColumnElement[str], test: Comparison) -> ColumnElement[bool]:
    """`like` with % and _ as wild cards, `has` for a part; both in any case of letters."""
    pattern = _as_text(test.values[0], test)
    if test.operator == "has":
        return func.lower(column).contains(pattern.lower(), autoescape=True)
    return func.lower(column).like(pattern.lower())


def _compared(column: ColumnElement[Any], test: Comparison, convert: Callable[[Any], float]) -> ColumnElement[bool]:
    """Compare a number column. NaN is stored as NULL: only `= nan` and `!= nan` find or leave it out."""
    if test.operator in ("like", "has"):
        raise BadInput(
            "filter_unexpected", position=test.position, found=test.operator, wanted="=, !=, <, <=, >, >=, in"
        )
    numbers = [_as_number(value, test, convert) for value in test.values]
    if test.operator == "in":
        return column.in_(numbers)
    if math.isnan(numbers[0]):
        return {"=": column.is_(None), "!=": column.is_not(None)}.get(test.operator, false())
    compared = _COMPARE[test.operator](column, literal(numbers[0]))
    return or_(compared, column.is_(None)) if test.operator == "!=" else compared


def _as_number(value: float | str | bool, test: Comparison, convert: Callable[[Any], float]) -> float:
    try:
        if convert is float and isinstance(value, str):
            raise ValueError(value)
        return convert(value)
    except (ValueError, TypeError, OverflowError):
        raise BadInput("filter_value", position=test.position, field=test.field.name, value=str(value)) from None


def _as_text(value: float | str | bool, test: Comparison) -> str:
    if isinstance(value, str):
        return value
    raise BadInput("filter_value_text", position=test.position, field=test.field.name, value=str(value))


def _seconds(value: float | str | bool) -> float:
    return parse_duration(value) if isinstance(value, str) else float(value)


def _time(value: float | str | bool, test: Comparison, now_us: int) -> float:
    """Return microseconds of `2026-11-01`, `2026-11-01T10:00:00Z`, `2h ago`, or of seconds since 1970."""
    if not isinstance(value, str):
        return float(value) * 1e6
    ago = _AGO.fullmatch(value.strip())
    if ago is not None:
        return now_us - parse_duration(ago["time"]) * 1e6
    when = datetime.fromisoformat(value.strip())
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1e6


def _duration() -> ColumnElement[Any]:
    """Seconds from the first start to the end; NULL for a run that has not ended."""
    ended = and_(run.c.started_us > 0, run.c.ended_us > 0)
    return case((ended, (run.c.ended_us - run.c.started_us) / 1e6), else_=None)


def _unknown(field: Field) -> BadInput:
    return BadInput("filter_field_unknown", position=field.position, field=field.name, fields=", ".join(FIELDS))
