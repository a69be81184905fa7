"""Which metrics, params and tags runs carry: columns come from here, never from the rows that happen to be loaded."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Select, func, select

from trackbed.db import ReadTx, scope_clause
from trackbed.domain.scope import Scope
from trackbed.tracking.ingest_tables import metric, param
from trackbed.tracking.runs_tables import run
from trackbed.wire.table import ColumnInfo, ColumnsReply

MOST = 1000
NEWEST = 10_000  # runs looked through; the reply says so, and a column may be asked for by a name that is not in it


def columns(
    tx: ReadTx, scope: Scope, *, where: Sequence[ColumnElement[bool]] = (), search: str = "", limit: int = 200
) -> ColumnsReply:
    """Return names and how many of the newest runs that meet `where` have each.

    `search` is a part of the name in any case of letters.
    """
    mine = [scope_clause(run, scope), *where]
    newest = select(run.c.id, run.c.tags).where(*mine).order_by(run.c.created_us.desc(), run.c.id.desc()).limit(NEWEST)
    ids = select(newest.subquery().c.id)
    limit = max(1, min(limit, MOST))
    counted_metrics = select(metric.c.key, func.count()).where(metric.c.run_id.in_(ids), metric.c.rank == 0)
    counted_params = select(param.c.name, func.count()).where(param.c.run_id.in_(ids))
    found = {
        "metrics": _names(tx, counted_metrics.group_by(metric.c.key), search),
        "params": _names(tx, counted_params.group_by(param.c.name), search),
        "tags": _tags(tx, newest, search),
    }
    first = {kind: names[:limit] for kind, names in found.items()}
    looked = min(int(tx.scalar(select(func.count()).select_from(run).where(*mine)) or 0), NEWEST)
    return ColumnsReply(**first, total={kind: len(names) for kind, names in found.items()}, looked=looked)


def _names(tx: ReadTx, stmt: Select[*tuple[Any, ...]], search: str) -> list[ColumnInfo]:
    rows: list[Any] = tx.rows(stmt)
    return _sorted(dict(rows), search)


def _tags(tx: ReadTx, newest: Select[*tuple[Any, ...]], search: str) -> list[ColumnInfo]:
    runs = newest.subquery()
    counts = Counter[str]()
    rows: list[Any] = tx.rows(select(runs.c.tags, func.count()).group_by(runs.c.tags))
    for text, count in rows:
        for tag in msgspec.json.decode(text, type=list[str]):
            counts[tag] += count
    return _sorted(counts, search)


def _sorted(counts: dict[str, int], search: str) -> list[ColumnInfo]:
    part = search.casefold()
    kept = [(name, count) for name, count in counts.items() if part in name.casefold()]
    kept.sort(key=lambda one: (-one[1], one[0]))
    return [ColumnInfo(name=name, runs=count) for name, count in kept]
