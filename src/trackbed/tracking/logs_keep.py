"""How long lines are kept, by level: errors longest, debug output with a limit of its own. What was deleted is counted and shown."""

from dataclasses import dataclass

from sqlalchemy import Column, Integer, Table, Text, delete, func, select

from trackbed.db import ReadTx, Tx, metadata, upsert
from trackbed.domain.events import Event
from trackbed.tracking import runs
from trackbed.tracking.ingest_tables import line
from trackbed.tracking.logs_lines import DEBUG, INFO, LEVELS
from trackbed.tracking.runs_tables import run

DAY_US = 24 * 3600 * 1_000_000
AT_ONCE = 100  # runs looked at in one tick

log_trim = Table(
    "run_log_trim",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("aged", Integer, nullable=False, default=-1),  # the highest level whose age is over and was deleted
    Column("debug", Integer, nullable=False, default=0),  # lines deleted
    Column("info", Integer, nullable=False, default=0),
)


@dataclass(frozen=True)
class Keeping:
    """Ages count from the end of a run. Warnings and errors stay as long as the run's record does."""

    debug_days: float = 14.0
    info_days: float = 400.0
    debug_lines: int = 200_000  # of one run; the newest stay


def due(tx: ReadTx, keeping: Keeping) -> list[tuple[str, int]]:
    """Return runs with lines whose age is over, and up to which level."""
    found: list[tuple[str, int]] = []
    for level, days in ((INFO, keeping.info_days), (DEBUG, keeping.debug_days)):
        over = tx.now_us - int(days * DAY_US)
        stmt = (
            select(run.c.id)
            .outerjoin(log_trim, log_trim.c.run_id == run.c.id)
            .where(run.c.ended_us > 0, run.c.ended_us < over, func.coalesce(log_trim.c.aged, -1) < level)
            .order_by(run.c.ended_us)
            .limit(AT_ONCE)
        )
        known = {run_id for run_id, _ in found}
        found += [(row.id, level) for row in tx.rows(stmt) if row.id not in known]
    return found


def crowded(tx: ReadTx, run_ids: list[str], keeping: Keeping) -> list[str]:
    """Return those of some runs that have more debug lines than are kept."""
    stmt = select(line.c.run_id).where(line.c.run_id.in_(run_ids), line.c.level == DEBUG).group_by(line.c.run_id)
    return [row.run_id for row in tx.rows(stmt.having(func.count() > keeping.debug_lines))]


def trim_aged(tx: Tx, run_id: str, level: int) -> int:
    """Delete the lines of a run up to a level; return how many."""
    counts = _counts(tx, run_id, level)
    tx.execute(delete(line).where(line.c.run_id == run_id, line.c.level <= level))
    return _note(tx, run_id, counts, aged=level)


def trim_crowd(tx: Tx, run_id: str, keeping: Keeping) -> int:
    """Delete the oldest debug lines of a run beyond the limit; return how many."""
    mine = (line.c.run_id == run_id, line.c.level == DEBUG)
    newest = select(line.c.pos).where(*mine).order_by(line.c.pos.desc()).offset(keeping.debug_lines).limit(1)
    pos = tx.scalar(newest)
    if pos is None:
        return 0
    gone = tx.execute(delete(line).where(*mine, line.c.pos <= pos)).rowcount
    return _note(tx, run_id, {DEBUG: gone})


def _counts(tx: ReadTx, run_id: str, level: int) -> dict[int, int]:
    stmt = select(line.c.level, func.count().label("n")).where(line.c.run_id == run_id, line.c.level <= level)
    return {row.level: row.n for row in tx.rows(stmt.group_by(line.c.level))}


def _note(tx: Tx, run_id: str, counts: dict[int, int], *, aged: int | None = None) -> int:
    stands = tx.one(select(log_trim).where(log_trim.c.run_id == run_id))
    row = {
        "run_id": run_id,
        "aged": aged if aged is not None else (stands.aged if stands is not None else -1),
        "debug": (stands.debug if stands is not None else 0) + counts.get(DEBUG, 0),
        "info": (stands.info if stands is not None else 0) + counts.get(INFO, 0),
    }
    tx.execute(upsert(log_trim, row, key=["run_id"], update=["aged", "debug", "info"]))
    total = sum(counts.values())
    if total:
        its_run = runs.get(tx, run_id)
        said = {LEVELS[level]: count for level, count in counts.items()}
        tx.emit(Event("run.log_trimmed", run_id, its_run.space_id, run_id, data={"lines": total, **said}))
    return total


def trimmed_of(tx: ReadTx, run_id: str) -> dict[str, int]:
    """Return how many lines of a run were deleted, by level."""
    row = tx.one(select(log_trim).where(log_trim.c.run_id == run_id))
    counts = {} if row is None else {"debug": row.debug, "info": row.info}
    return {level: count for level, count in counts.items() if count}
