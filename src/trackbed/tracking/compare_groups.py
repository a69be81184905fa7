"""Groups of runs that were submitted together: which have ended, and the table that was made of each."""

from collections.abc import Sequence

import msgspec
from sqlalchemy import Column, Index, Integer, Table, Text, or_, select

from trackbed.db import ReadTx, Tx, metadata, scope_clause, upsert
from trackbed.domain.events import Event
from trackbed.domain.scope import Scope
from trackbed.domain.states import TERMINAL
from trackbed.tracking import runs
from trackbed.tracking.ingest_tables import metric
from trackbed.tracking.metrics_state import State
from trackbed.tracking.runs_tables import run
from trackbed.wire.compare import Comparison, GroupComparison

TAGS = ("matrix:", "pair:")  # what submit puts on the runs of one request
_ENDED = [state.value for state in TERMINAL]
_state = msgspec.msgpack.Decoder(State).decode

group_comparison = Table(
    "group_comparison",
    metadata,
    Column("space_id", Text, primary_key=True),
    Column("project_id", Text, primary_key=True),
    Column("tag", Text, primary_key=True),
    Column("project", Text, nullable=False),
    Column("made_us", Integer, nullable=False),
    Column("document", Text, nullable=False),  # wire.compare.Comparison
    Index("group_comparison_by_made", "made_us"),
)


def summaries_of(tx: ReadTx, run_id: str) -> dict[str, State]:
    """Return the summary of each metric of a run, of its lowest rank."""
    stmt = select(metric.c.key, metric.c.state).where(metric.c.run_id == run_id).order_by(metric.c.rank.desc())
    return {row.key: _state(row.state) for row in tx.rows(stmt)}


def tags_of(row: runs.RunRow) -> list[str]:
    """Return the tags that make a run part of a group."""
    found: list[str] = runs.from_json(row.tags, [])
    return [tag for tag in found if tag.startswith(TAGS)]


def ended_since(tx: ReadTx, since_us: int) -> list[runs.RunRow]:
    """Return runs of groups that have ended since then."""
    tagged = or_(*(run.c.tags.contains(f'"{tag}') for tag in TAGS))
    return tx.rows(select(run).where(run.c.state.in_(_ENDED), run.c.ended_us >= since_us, tagged))


def members(tx: ReadTx, project_id: str, tag: str) -> list[runs.RunRow]:
    """Return the runs of a group, in the order of their numbers."""
    has = run.c.tags.contains(runs.to_json(tag), autoescape=True)
    stmt = select(run).where(run.c.project_id == project_id, has).order_by(run.c.number)
    return [row for row in tx.rows(stmt) if tag in runs.from_json(row.tags, [])]


def due(tx: ReadTx, tag: str, rows: Sequence[runs.RunRow]) -> bool:
    """Whether a group has ended, and after its last table, if there is one."""
    if len(rows) < 2 or any(row.state not in _ENDED for row in rows):
        return False
    stmt = select(group_comparison.c.made_us).where(
        group_comparison.c.project_id == rows[0].project_id, group_comparison.c.tag == tag
    )
    made_us = tx.scalar(stmt)
    return made_us is None or made_us < max(row.ended_us for row in rows)


def keep(tx: Tx, tag: str, rows: Sequence[runs.RunRow], comparison: Comparison) -> None:
    """Attach the table to its group, with an event on each of its runs."""
    first = rows[0]
    values = {
        "space_id": first.space_id, "project_id": first.project_id, "tag": tag, "project": first.project,
        "made_us": tx.now_us, "document": runs.to_json(comparison),
    }  # fmt: skip
    tx.execute(
        upsert(
            group_comparison,
            values,
            key=["space_id", "project_id", "tag"],
            update=["project", "made_us", "document"],
        )
    )
    for row in rows:
        tx.emit(Event("run.compared", row.id, row.space_id, row.id, data={"group": tag, "runs": len(rows)}))


def made_of(tx: ReadTx, scope: Scope, row: runs.RunRow) -> list[GroupComparison]:
    """Return the tables that were made of the groups of a run."""
    stmt = select(group_comparison).where(
        scope_clause(group_comparison, scope),
        group_comparison.c.project_id == row.project_id,
        group_comparison.c.tag.in_(tags_of(row)),
    )
    return [
        GroupComparison(
            tag=found.tag, project=found.project, made_us=found.made_us,
            comparison=msgspec.json.decode(found.document, type=Comparison),
        )
        for found in tx.rows(stmt)
    ]  # fmt: skip
