"""Which metrics, params and tags runs carry: columns come from here, never from the rows that happen to be loaded."""

from collections import Counter

import msgspec
from sqlalchemy import ColumnElement, Select, func, select

from trackbed.db import ReadTx, scope_clause
from trackbed.domain.scope import Scope
from trackbed.tracking.ingest_tables import metric, param
from trackbed.tracking.runs_tables import run
from trackbed.wire.table import ColumnInfo, ColumnsReply

MOST = 1000


def columns(tx: ReadTx, scope: Scope, *, project: str = "", search: str = "", limit: int = 200) -> ColumnsReply:
    """Return names and how many runs have each; `search` is a part of the name in any case of letters."""
    mine = [scope_clause(run, scope)]
    if project:
        mine.append(run.c.project == project)
    limit = max(1, min(limit, MOST))
    found = {
        "metrics": _names(tx, _counted(metric.c.key, metric.c.run_id, mine).where(metric.c.rank == 0), search),
        "params": _names(tx, _counted(param.c.name, param.c.run_id, mine), search),
        "tags": _tags(tx, mine, search),
    }
    first = {kind: names[:limit] for kind, names in found.items()}
    return ColumnsReply(**first, total={kind: len(names) for kind, names in found.items()})


def _counted(name: ColumnElement[str], run_id: ColumnElement[str], mine: list[ColumnElement[bool]]) -> Select[str, int]:
    return select(name, func.count()).select_from(run).where(run_id == run.c.id, *mine).group_by(name)


def _names(tx: ReadTx, stmt: Select[str, int], search: str) -> list[ColumnInfo]:
    return _sorted({row[0]: row[1] for row in tx.rows(stmt)}, search)


def _tags(tx: ReadTx, mine: list[ColumnElement[bool]], search: str) -> list[ColumnInfo]:
    counts = Counter[str]()
    for text, count in tx.rows(select(run.c.tags, func.count()).where(*mine).group_by(run.c.tags)):
        for tag in msgspec.json.decode(text, type=list[str]):
            counts[tag] += count
    return _sorted(counts, search)


def _sorted(counts: dict[str, int], search: str) -> list[ColumnInfo]:
    part = search.casefold()
    kept = [(name, count) for name, count in counts.items() if part in name.casefold()]
    kept.sort(key=lambda one: (-one[1], one[0]))
    return [ColumnInfo(name=name, runs=count) for name, count in kept]
