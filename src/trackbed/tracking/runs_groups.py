"""Runs that agree in params, tags or facts, each group with the mean and the spread of metrics."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, FromClause, and_, func, select

from trackbed.base.errors import BadInput
from trackbed.db import ReadTx, scope_clause
from trackbed.domain.scope import Scope
from trackbed.tracking.facts_values import plain, unpack
from trackbed.tracking.ingest_tables import metric, param
from trackbed.tracking.metrics_state import word
from trackbed.tracking.runs_tables import run
from trackbed.tracking.search_parse import Field, field_text, parse_field, value_text
from trackbed.wire.table import GroupPage, GroupSpread, RunGroup

MOST_FIELDS, MOST_METRICS, MOST_GROUPS = 3, 20, 1000
_FACTS = {
    "state": run.c.state, "cause": run.c.cause, "owner": run.c.owner, "project": run.c.project, "space": run.c.space,
    "name": run.c.name, "priority": run.c.priority, "cards": run.c.cards, "attempt": run.c.attempt,
    "tree": run.c.tree_digest, "environment": run.c.environment_digest, "tags": run.c.tags,
}  # fmt: skip
FIELDS = (*sorted(_FACTS), "params.NAME")


@dataclass
class _Moments:
    """Count, mean, sum of squared distances from it, least and greatest; two of them add up without cancellation."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    low: float = math.inf
    high: float = -math.inf

    def add(self, other: "_Moments") -> None:
        if other.count == 0:
            return
        total = self.count + other.count
        apart = other.mean - self.mean
        self.squares += other.squares + apart * apart * self.count * other.count / total
        self.mean = other.mean if self.count == 0 else self.mean + apart * other.count / total
        self.count = total
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)

    def spread(self) -> GroupSpread:
        if self.count == 0:
            return GroupSpread()
        std = word(math.sqrt(self.squares / (self.count - 1))) if self.count > 1 else None
        return GroupSpread(count=self.count, mean=word(self.mean), std=std, min=word(self.low), max=word(self.high))


@dataclass
class _Group:
    runs: int = 0
    created_us: int = 0
    states: dict[str, int] = field(default_factory=dict[str, int])
    rows: list[Sequence[Any]] = field(default_factory=list[Sequence[Any]])  # five figures of each metric, per state

    def spreads(self, names: Sequence[str]) -> dict[str, GroupSpread]:
        """Add up what its rows say of each metric. Of shown groups only: there may be as many groups as runs."""
        found: dict[str, GroupSpread] = {}
        for at, name in enumerate(names):
            whole = _Moments()
            for row in self.rows:
                whole.add(_moments(row[5 * at : 5 * at + 5]))
            found[name] = whole.spread()
        return found


def groups(
    tx: ReadTx,
    scope: Scope,
    *,
    by: Sequence[str],
    metrics: Sequence[str] = (),
    where: Sequence[ColumnElement[bool]] = (),
    limit: int = 200,
) -> GroupPage:
    """Return groups of the runs that meet `where`, the largest first.

    `by`: one to three of `params.NAME`, `tags` and the facts of a run; `metrics`: `metrics.KEY` or `min(metrics.KEY)`.

    Raises:
        BadInput: `group_fields_count`, `group_field_unknown`, `group_metrics_many`, `group_metric_wrong`.
    """
    fields = _fields(by)
    asked = _metrics(metrics)
    found = _merged(tx.rows(_statement(fields, asked, [scope_clause(run, scope), *where])), fields)
    ordered = sorted(found.items(), key=lambda one: (-one[1].runs, -one[1].created_us))
    tags = {
        tag for key in found for one, tag in zip(fields, key, strict=True) if one.name == "tags" and tag is not None
    }
    page = [
        RunGroup(
            values=[plain(msgspec.json.decode(part)) if part is not None else None for part in key],
            runs=group.runs, states=group.states, created_us=group.created_us,
            metrics=group.spreads(metrics),
            filter=" and ".join(_test(one, part, tags) for one, part in zip(fields, key, strict=True)),
        )
        for key, group in ordered[: max(1, min(limit, MOST_GROUPS))]
    ]  # fmt: skip
    return GroupPage(groups=page, total=len(found))


def _fields(by: Sequence[str]) -> list[Field]:
    if not 1 <= len(by) <= MOST_FIELDS:
        raise BadInput("group_fields_count", given=len(by), most=MOST_FIELDS)
    fields = [parse_field(name) for name in by]
    for one in fields:
        if one.group == "metrics" or (not one.group and one.name not in _FACTS):
            raise BadInput("group_field_unknown", field=f"{one.group}.{one.name}".lstrip("."), fields=", ".join(FIELDS))
    return fields


def _metrics(names: Sequence[str]) -> list[Field]:
    if len(names) > MOST_METRICS:
        raise BadInput("group_metrics_many", given=len(names), most=MOST_METRICS)
    asked = [parse_field(name) for name in names]
    for one in asked:
        if one.group != "metrics":
            raise BadInput("group_metric_wrong", field=one.name)
    return asked


def _statement(fields: list[Field], asked: list[Field], where: list[ColumnElement[bool]]) -> Any:
    """Distances are taken from each group's own mean, found by a window: a difference of large sums would lose it."""
    source: FromClause = run
    keys: list[ColumnElement[Any]] = []
    for at, one in enumerate(fields):
        column = _FACTS[one.name] if not one.group else None
        if column is None:
            joined = param.alias(f"p{at}")
            source = source.outerjoin(joined, and_(joined.c.run_id == run.c.id, joined.c.name == one.name))
            column = joined.c.value
        keys.append(column.label(f"k{at}"))
    values: list[ColumnElement[Any]] = []
    for at, one in enumerate(asked):
        joined = metric.alias(f"m{at}")
        mine = and_(joined.c.run_id == run.c.id, joined.c.key == one.name, joined.c.rank <= 0)
        source = source.outerjoin(joined, mine)
        value = joined.c[one.aggregate]
        values += [
            value.label(f"x{at}"),
            func.avg(value).over(partition_by=[*(key.element for key in keys), run.c.state]).label(f"u{at}"),
        ]
    inner = select(*keys, run.c.state, run.c.created_us, *values).select_from(source).where(*where).subquery()
    parts: list[ColumnElement[Any]] = [inner.c[f"k{at}"] for at in range(len(fields))]
    parts.append(inner.c.state)
    sums: list[ColumnElement[Any]] = [func.count(), func.max(inner.c.created_us)]
    for at in range(len(asked)):
        x, mean = inner.c[f"x{at}"], inner.c[f"u{at}"]
        sums += [func.count(x), func.avg(x), func.sum((x - mean) * (x - mean)), func.min(x), func.max(x)]
    return select(*parts, *sums).group_by(*parts)


def _merged(rows: Sequence[Any], fields: list[Field]) -> dict[tuple[str | None, ...], _Group]:
    """Rows of one state and one list of tags into groups of one tag each and all states."""
    found: dict[tuple[str | None, ...], _Group] = {}
    width = len(fields)
    for row in rows:
        state, runs, created_us = row[width : width + 3]
        for key in product(*(_parts(one, raw) for one, raw in zip(fields, row[:width], strict=True))):
            group = found.setdefault(key, _Group())
            group.runs += runs
            group.states[state] = group.states.get(state, 0) + runs
            group.created_us = max(group.created_us, created_us)
            group.rows.append(row[width + 3 :])
    return found


def _moments(row: Sequence[Any]) -> _Moments:
    count, mean, squares, low, high = row
    if not count:
        return _Moments()
    not_a_number = math.nan  # sums over infinite values are no numbers; SQLite says NULL
    return _Moments(
        count,
        not_a_number if mean is None else float(mean),
        not_a_number if squares is None else float(squares),
        float(low),
        float(high),
    )


def _parts(one: Field, raw: Any) -> list[str | None]:
    """JSON texts of the values that a run has for a field."""
    if raw is None:
        return [None]
    if one.name == "tags" and not one.group:
        tags = msgspec.json.decode(raw, type=list[str])
        return [msgspec.json.encode(tag).decode() for tag in dict.fromkeys(tags)] or [None]
    return [raw if one.group else msgspec.json.encode(raw).decode()]


def _test(one: Field, part: str | None, tags: set[str]) -> str:
    """One comparison of the search language that finds the runs of a group."""
    name = field_text(one.group, one.name)
    if one.name == "tags" and not one.group:
        if part is not None:
            return f"tags has {value_text(msgspec.json.decode(part))}"
        others = ", ".join(value_text(msgspec.json.decode(tag)) for tag in sorted(tags))
        return f"not tags in ({others})" if others else "created > 0"
    if part is None:
        return f"not {name} has ''"  # a param that is there has the empty text in it
    value = unpack(part)
    if isinstance(value, str | bool | int | float):
        return f"{name} = {value_text(value)}"
    return f"{name} like {value_text(part)}"
