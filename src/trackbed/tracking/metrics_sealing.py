"""Moves points from frames into objects of the store, off the writer lane, in steps of which each may be the last.

    due ► gather (read) ► build ► blob into the store ► `keep` (row) ► `sweep` (frames, a slice at a time)

Killed before the row, the blob is garbage; after it, the frames below are garbage that nobody reads. A row is kept only if it
begins where the last one ends, so of two sealers one wins.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import and_, case, delete, func, insert, or_, select

from trackbed.base.errors import Conflict
from trackbed.db import ReadTx, Tx
from trackbed.domain.states import TERMINAL
from trackbed.formats.points import Points, Sorted, encode
from trackbed.formats.tree import file_digest
from trackbed.tracking.ingest_tables import frame, seal, tail
from trackbed.tracking.metrics_sealed import Part, Seal, SealReader, sealed_to, seals_of
from trackbed.tracking.metrics_tail import Loose, gather, together
from trackbed.tracking.runs_tables import run

LONG_POINTS = 200_000  # a run that goes on is sealed from here
SHORT_POINTS = 256  # what a run that has ended may leave in the database
OBJECT_POINTS = 1_000_000  # of one object; also the most that is decoded at once
REST_S = 30.0  # after the end, for the last spools
LINGER_S = 30.0  # sealed frames stay so long for those who read the newest frames in turn (anomalies)
SLICE_BYTES = 2 * 2**20  # of frames deleted in one write
MERGE = 8  # neighbouring small objects become one
_INCARNATION = (1 << 24) - 1


@dataclass(frozen=True)
class Sealing:
    """An object to be kept: `body` goes into the store first. `replaces` are rows that it stands for."""

    run_id: str
    first_pos: int
    last_pos: int
    points: int
    low_step: int
    high_step: int
    body: bytes
    digest: str
    replaces: tuple[int, ...] = ()


def due(tx: ReadTx, run_ids: Sequence[str] | None = None) -> list[str]:
    """Return runs with points to seal: long ones, and those that ended. `run_ids`: of these."""
    sealed = select(func.coalesce(func.sum(seal.c.points), 0)).where(seal.c.run_id == tail.c.run_id).scalar_subquery()
    over = and_(run.c.state.in_([state.value for state in TERMINAL]), run.c.ended_us < tx.now_us - int(REST_S * 1e6))
    stmt = select(tail.c.run_id, (tail.c.points - sealed).label("loose")).join(run, run.c.id == tail.c.run_id)
    stmt = stmt.where(or_(tail.c.points >= LONG_POINTS, and_(over, tail.c.points >= SHORT_POINTS)))
    stmt = stmt.where(tail.c.points - sealed >= case((over, SHORT_POINTS), else_=LONG_POINTS))
    found: list[str] = []
    if run_ids is None:
        return [row.run_id for row in tx.rows(stmt)]
    for at in range(0, len(run_ids), 500):
        found += [row.run_id for row in tx.rows(stmt.where(tail.c.run_id.in_(run_ids[at : at + 500])))]
    return found


def going(tx: ReadTx) -> list[str]:
    """Return the runs that have not ended."""
    return [row.id for row in tx.rows(select(run.c.id).where(run.c.state.not_in([state.value for state in TERMINAL])))]


def take(tx: ReadTx, run_id: str, *, most: int) -> Loose:
    """Return the oldest unsealed points of a run, at most about `most`."""
    keys: dict[str, int] = {}
    after = sealed_to(seals_of(tx, run_id))
    return together(keys, gather(tx, run_id, after=after, keys=keys, most=most))


def build(run_id: str, loose: Loose) -> Sealing:
    """Return the object of some points. Takes time with their number."""
    names = list(loose.keys)
    return _made(run_id, int(loose.pos[0]), int(loose.pos[-1]), names, loose)


def small_ones(seals: Sequence[Seal]) -> list[Seal]:
    """Return neighbours that are worth one object, or none."""
    group: list[Seal] = []
    for one in seals:
        if one.points >= OBJECT_POINTS or sum(other.points for other in group) + one.points > 2 * OBJECT_POINTS:
            group = []
        if one.points < OBJECT_POINTS:
            group.append(one)
        if len(group) == MERGE:
            return group
    return []


def merge(run_id: str, reader: SealReader, seals: Sequence[Seal]) -> Sealing:
    """Return one object that says what some neighbouring ones say."""
    names: dict[str, int] = {}
    found: list[Loose] = []
    for one in seals:
        directory = reader.directory(one)
        numbers = np.array([names.setdefault(key, len(names)) for key in directory.keys], np.int64)
        parts = [Part(one, directory, chunk) for chunk in range(len(directory.key))]
        for part, column in zip(parts, reader.column(parts), strict=True):
            size = len(column)
            key, rank = numbers[directory.key[part.chunk]], int(directory.rank[part.chunk])
            found.append(
                Loose(
                    names, np.full(size, key), np.full(size, rank), column.version, np.full(size, one.first_pos),
                    column.step, column.ts, column.value,
                )
            )  # fmt: skip
    replaces = tuple(int(one.first_pos) for one in seals)
    return _made(run_id, replaces[0], int(seals[-1].last_pos), list(names), together(names, found), replaces)


def _made(
    run_id: str, first_pos: int, last_pos: int, names: list[str], loose: Loose, replaces: tuple[int, ...] = ()
) -> Sealing:
    order = np.lexsort((loose.rank, loose.key))  # stable: the order of the log within a stream
    one = loose.cut(order)
    points = Points(one.step, one.ts, one.value)
    attempt, incarnation = one.version >> 24, one.version & _INCARNATION
    body = encode(Sorted(names, one.key, one.rank, attempt, incarnation, points))
    return Sealing(
        run_id,
        first_pos,
        last_pos,
        len(one.step),
        int(one.step.min()),
        int(one.step.max()),
        body,
        str(file_digest(body)),
        replaces,
    )


def keep(tx: Tx, made: Sealing) -> None:
    """Say that the object stands for its frames, or for the rows that it replaces. Its blob is in the store already.

    Raises:
        Conflict: `points_sealed`: another sealer was faster.
    """
    if made.replaces:
        these = and_(seal.c.run_id == made.run_id, seal.c.first_pos.in_(made.replaces))
        if tx.execute(delete(seal).where(these)).rowcount != len(made.replaces):
            raise Conflict("points_sealed", run=made.run_id, position=made.first_pos)
    elif made.first_pos <= sealed_to(seals_of(tx, made.run_id)):
        raise Conflict("points_sealed", run=made.run_id, position=made.first_pos)
    row = {
        "run_id": made.run_id, "first_pos": made.first_pos, "last_pos": made.last_pos, "digest": made.digest,
        "size_bytes": len(made.body), "points": made.points, "low_step": made.low_step, "high_step": made.high_step,
        "created_us": tx.now_us,
    }  # fmt: skip
    tx.execute(insert(seal), [row])


def sweep(tx: Tx, run_id: str, most_bytes: int) -> bool:
    """Delete a slice of frames that are sealed; return whether more are left."""
    upto = sealed_to(seals_of(tx, run_id))
    stmt = select(frame.c.pos, func.length(frame.c.bytes).label("size")).where(frame.c.run_id == run_id)
    rows = tx.rows(stmt.where(frame.c.pos <= upto).order_by(frame.c.pos).limit(500))
    total, last = 0, 0
    for row in rows:
        total, last = total + row.size, row.pos
        if total >= most_bytes:
            break
    tx.execute(delete(frame).where(frame.c.run_id == run_id, frame.c.pos <= min(last, upto)))
    return bool(rows) and (last < rows[-1].pos or len(rows) == 500)


def unswept(tx: ReadTx) -> list[str]:
    """Return runs with frames that are sealed already: a sweep was cut short."""
    stmt = select(seal.c.run_id).where(
        select(frame.c.pos).where(frame.c.run_id == seal.c.run_id, frame.c.pos <= seal.c.last_pos).exists()
    )
    return [row.run_id for row in tx.rows(stmt.distinct())]
