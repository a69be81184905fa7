"""Params, tags, summary and metric definitions of a run: small, named, read whole."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import select, update

from trackbed.db import ReadTx, Tx, upsert
from trackbed.tracking.facts_values import number, pack, plain, unpack
from trackbed.tracking.ingest_tables import definition, param
from trackbed.tracking.runs_tables import run


def begin(tx: Tx, run_id: str, params: Mapping[str, Any]) -> None:
    """Record the params that a run is made with."""
    _insert(tx, run_id, params)


def add_params(tx: Tx, run_id: str, params: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Record params that a rank reports. One that stands with another value is left as it is.

    Returns (name, value that stands, value said) of those.
    """
    known = params_of(tx, run_id, list(params), as_text=True)
    changed = [
        (name, known[name], pack(value))
        for name, value in params.items()
        if known.get(name, pack(value)) != pack(value)
    ]
    _insert(tx, run_id, {name: value for name, value in params.items() if name not in known})
    return changed


def _insert(tx: Tx, run_id: str, params: Mapping[str, Any]) -> None:
    rows = [
        {"run_id": run_id, "name": name, "value": pack(value), "number": number(value)}
        for name, value in params.items()
    ]
    if rows:
        tx.execute(upsert(param, key=["run_id", "name"]), rows)


def params_of(tx: ReadTx, run_id: str, names: Sequence[str] | None = None, *, as_text: bool = False) -> dict[str, Any]:
    """Return params by name, exact; `as_text` as they are stored. `names` asks for some."""
    found: dict[str, Any] = {}
    for part in _parts(names):
        stmt = select(param.c.name, param.c.value).where(param.c.run_id == run_id).order_by(param.c.name)
        rows = tx.rows(stmt if part is None else stmt.where(param.c.name.in_(part)))
        found |= {row.name: row.value if as_text else unpack(row.value) for row in rows}
    return found


def params_of_runs(tx: ReadTx, run_ids: Sequence[str], names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return run → name → value as it crosses the wire: columns of the runs table."""
    stmt = select(param.c.run_id, param.c.name, param.c.value).where(
        param.c.run_id.in_(run_ids), param.c.name.in_(names)
    )
    found: dict[str, dict[str, Any]] = {run_id: {} for run_id in run_ids}
    for row in tx.rows(stmt) if run_ids and names else []:
        found[row.run_id][row.name] = plain(unpack(row.value))
    return found


def all_params_of_runs(tx: ReadTx, run_ids: Sequence[str]) -> list[tuple[str, str, Any]]:
    """Return run, name and value, exact, of all params of some runs, by name."""
    stmt = select(param.c.run_id, param.c.name, param.c.value).where(param.c.run_id.in_(run_ids))
    return [(row.run_id, row.name, unpack(row.value)) for row in tx.rows(stmt.order_by(param.c.name))]


def change_tags(tx: Tx, run_id: str, changes: Iterable[tuple[Sequence[str], Sequence[str]]]) -> None:
    """Add and remove tags in the order said."""
    before = msgspec.json.decode(tx.scalar(select(run.c.tags).where(run.c.id == run_id)), type=list[str])
    tags = dict.fromkeys(before)
    for added, removed in changes:
        tags |= dict.fromkeys(added)
        for tag in removed:
            tags.pop(tag, None)
    if list(tags) != before:
        text = msgspec.json.encode(list(tags)).decode()
        tx.execute(update(run).where(run.c.id == run_id).values(tags=text, version=run.c.version + 1))


def add_summary(tx: Tx, run_id: str, entries: Mapping[str, Any]) -> None:
    """Record results; a later value replaces an earlier one."""
    before = msgspec.json.decode(tx.scalar(select(run.c.summary).where(run.c.id == run_id)), type=dict[str, Any])
    after = {**before, **plain(dict(entries))}
    if after != before:
        tx.execute(update(run).where(run.c.id == run_id).values(summary=msgspec.json.encode(after).decode()))


def define(tx: Tx, run_id: str, said: Mapping[str, Any]) -> None:
    """Record what a metric means; what was said before and not again stays."""
    key: str = said["key"]
    before = definitions(tx, run_id, [key]).get(key, {})
    document = {**before, **plain({name: value for name, value in said.items() if name != "key"})}
    values = {"run_id": run_id, "key": key, "document": msgspec.json.encode(document).decode()}
    tx.execute(upsert(definition, values, key=["run_id", "key"], update=["document"]))


def definitions(tx: ReadTx, run_id: str, keys: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
    """Return what `define_metric` said, by metric."""
    stmt = select(definition.c.key, definition.c.document).where(definition.c.run_id == run_id)
    rows = tx.rows(stmt if keys is None else stmt.where(definition.c.key.in_(keys)))
    return {row.key: msgspec.json.decode(row.document) for row in rows}


def _parts(names: Sequence[str] | None) -> list[list[str] | None]:
    """Split a long list: a statement takes a bounded number of values."""
    if names is None:
        return [None]
    return [list(names[at : at + 500]) for at in range(0, len(names), 500)]
