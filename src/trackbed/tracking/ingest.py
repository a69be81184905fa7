"""Frames become part of a run's record: exactly once, in one transaction, answered item by item with a count.

bytes ─ parse (off the lane) ─► items ─ ingest (one write) ─► frames, lines, params, tags, summaries ─► receipt
"""

from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import insert, select, update

from trackbed.db import Tx, upsert
from trackbed.domain.events import Event
from trackbed.formats import spool
from trackbed.formats.spool import Line, Metrics
from trackbed.tracking import artifacts, facts, ingest_summary, runs
from trackbed.tracking.facts_values import pack, plain
from trackbed.tracking.ingest_parse import Batch, FileSaid, Item, parse, reject
from trackbed.tracking.ingest_summary import Group, Known
from trackbed.tracking.ingest_tables import frame, line, tail, watermark
from trackbed.tracking.logs_lines import LevelGuess
from trackbed.wire.series import FramesReceipt, Rejected

EVENT_BYTES = 4096
# Statements are built once: building one costs more than running it.
_LOCK = upsert(tail, key=["run_id"], update=["run_id"])
_MARK = upsert(watermark, key=["run_id", "client"], update=["seq", "attempt", "rank", "updated_us"])
_INSERT_FRAME, _INSERT_LINE = insert(frame), insert(line)


@dataclass(frozen=True)
class Prepared:
    """A request, parsed and summarized; `ingest` takes it."""

    batch: Batch
    groups: list[Group]

    @property
    def digests(self) -> list[str]:
        """Files that frames say the store has; `ingest` is told which of them it has not."""
        said = [item.content for item in self.batch.items if isinstance(item.content, FileSaid)]
        return [one.digest for one in said if one.digest]


@dataclass
class Ingested:
    """The receipt, and what others do with the news."""

    receipt: FramesReceipt
    step: int | None = None
    last: dict[str, float] = field(default_factory=dict[str, float])  # of rank 0, metrics of this batch
    finish: dict[str, Any] | None = None
    fresh: list[Item] = field(default_factory=list[Item])


def prepare(body: bytes) -> Prepared:
    """Parse a request body. Takes time with its size; belongs off the writer lane and off the event loop."""
    batch = parse(body)
    return Prepared(batch, ingest_summary.group(batch.items))


def ingest(
    tx: Tx,
    run: runs.RunRow,
    prepared: Prepared,
    *,
    attempt: int | None = None,
    missing: frozenset[str] = frozenset(),
    sealed: Known | None = None,
) -> Ingested:
    """Keep what is new. `attempt`: the only one that the sender may speak for; `missing`: digests that the store lacks.

    Raises:
        Unread: it must be known first what counts among sealed points; `metrics_sealed.known` finds it, for `sealed`.
    """
    stands = _lock(tx, run.id)
    receipt = FramesReceipt()
    # copies: the function may run again from the start
    batch = Batch(
        [replace(item, rejected=[*item.rejected]) for item in prepared.batch.items], prepared.batch.lost_bytes
    )
    fresh = _fresh(tx, run.id, batch, attempt, receipt)
    as_prepared = len(fresh) == len(batch.items) and not any(item.foreign for item in fresh)
    groups = prepared.groups if as_prepared else ingest_summary.group(fresh)
    changed = ingest_summary.update(tx, run.id, groups, sealed)
    done = Ingested(receipt, last={key: state.last for (key, rank), state in changed.items() if rank == 0})
    done.fresh = fresh
    frames = _keep_frames(tx, run.id, stands.frames, fresh, receipt)
    lines = _keep_lines(tx, run.id, stands.lines, fresh, receipt)
    _apply(tx, run, fresh, done, missing)
    steps = [state.last_step for state in changed.values()] + (
        [stands.last_step] if stands.last_step is not None else []
    )
    done.step = max(steps, default=None)
    tx.execute(
        update(tail)
        .where(tail.c.run_id == run.id)
        .values(frames=frames, lines=lines, points=tail.c.points + receipt.points, last_step=done.step)
    )
    for item in batch.items:
        receipt.rejected += item.rejected
    if batch.lost_bytes:
        receipt.rejected.append(Rejected(client="", sequence=0, code="bytes_lost", params={"bytes": batch.lost_bytes}))
    return done


def _lock(tx: Tx, run_id: str) -> Any:
    """Take the run's row: whoever else brings frames of the same run waits, so positions grow in the order of commits."""
    tx.execute(_LOCK, [{"run_id": run_id, "frames": 0, "lines": 0, "points": 0}])
    return tx.one(select(tail).where(tail.c.run_id == run_id))


def _fresh(tx: Tx, run_id: str, batch: Batch, attempt: int | None, receipt: FramesReceipt) -> list[Item]:
    """Return the items that were not kept before, and move the watermarks of their clients."""
    clients = sorted({item.header.client for item in batch.items if item.header.client.isprintable()})
    stmt = select(watermark.c.client, watermark.c.seq)
    kept: dict[str, int] = {}
    for at in range(0, len(clients), 500):
        part = watermark.c.client.in_(clients[at : at + 500])
        kept |= {row.client: row.seq for row in tx.rows(stmt.where(watermark.c.run_id == run_id, part))}
    fresh: list[Item] = []
    moved: dict[str, Item] = {}
    for item in batch.items:
        head = item.header
        if any(why.code == "frame_identity_bad" for why in item.rejected):
            continue
        if head.seq <= kept.get(head.client, 0):
            item.rejected = []  # it was answered then
            receipt.duplicates += 1
            continue
        kept[head.client], moved[head.client] = head.seq, item
        if head.run not in ("", run_id):
            item.content, item.foreign = None, True
            reject(item, "frame_of_another_run", head.run, run=head.run[:64])
        elif attempt is not None and head.attempt != attempt:
            item.content, item.foreign = None, True
            reject(item, "frame_of_another_attempt", str(head.attempt), attempt=head.attempt, own=attempt)
        receipt.frames += 1
        fresh.append(item)
    rows = [
        {
            "run_id": run_id, "client": client, "seq": item.header.seq, "attempt": item.header.attempt,
            "rank": item.header.rank, "updated_us": tx.now_us,
        }
        for client, item in moved.items()
    ]  # fmt: skip
    if rows:
        tx.execute(_MARK, rows)
    receipt.watermarks = {client: kept[client] for client in clients if client in kept}
    return fresh


def _keep_frames(tx: Tx, run_id: str, pos: int, fresh: list[Item], receipt: FramesReceipt) -> int:
    rows: list[dict[str, Any]] = []
    for item in fresh:
        if item.header.kind != spool.METRICS or item.content is None:
            continue
        points: Metrics = item.content
        receipt.points += len(points.step)
        if not len(points.step):
            continue
        pos += 1
        rows.append(
            {
                "run_id": run_id, "pos": pos, "attempt": item.header.attempt, "incarnation": item.header.inc,
                "rank": item.header.rank, "client": item.header.client, "seq": item.header.seq, "kind": spool.METRICS,
                "n": len(points.step), "first_step": min(points.step), "last_step": max(points.step), "bytes": item.raw,
            }
        )  # fmt: skip
    if rows:
        tx.execute(_INSERT_FRAME, rows)
    return pos


def _keep_lines(tx: Tx, run_id: str, pos: int, fresh: list[Item], receipt: FramesReceipt) -> int:
    rows: list[dict[str, Any]] = []
    guesses: dict[tuple[str, str], LevelGuess] = {}
    for item in fresh:
        if item.header.kind != spool.LOG or item.content is None:
            continue
        said: list[Line] = item.content
        for one in said:
            pos += 1
            guess = guesses.setdefault((item.header.client, one.stream), LevelGuess())
            rows.append(
                {
                    "run_id": run_id, "pos": pos, "time_us": one.ts, "attempt": item.header.attempt,
                    "rank": item.header.rank, "stream": one.stream, "level": guess.level(one.stream, one.level, one.data),
                    "data": one.data,
                }
            )  # fmt: skip
    receipt.lines = len(rows)
    if rows:
        tx.execute(_INSERT_LINE, rows)
    return pos


def _apply(tx: Tx, run: runs.RunRow, fresh: list[Item], done: Ingested, missing: frozenset[str]) -> None:
    """Do what the small kinds say, in their order."""
    summary: dict[str, Any] = {}
    tags: list[tuple[list[str], list[str]]] = []
    progress: Item | None = None
    for item in fresh:
        kind, said = item.header.kind, item.content
        if not said:
            continue
        if kind == spool.PARAMS:
            for name, stands, given in facts.add_params(tx, run.id, said):
                reject(item, "param_changed", name, stands=stands[:200], given=given[:200])
        elif kind == spool.SUMMARY:
            summary |= said
        elif kind == spool.TAGS:
            tags.append(said)
        elif kind == spool.DEFINE:
            facts.define(tx, run.id, said)
        elif kind == spool.FILE:
            _file(tx, run, item, said, missing)
        elif kind == spool.FINISH:
            done.finish = said
        elif kind == spool.EVENT and said["kind"] == "progress":
            progress = item
        elif kind == spool.EVENT:
            _note(tx, run, item)
    if summary:
        facts.add_summary(tx, run.id, summary)
    if tags:
        facts.change_tags(tx, run.id, tags)
    if progress is not None:
        _progress(tx, run, progress)


def _file(tx: Tx, run: runs.RunRow, item: Item, said: FileSaid, missing: frozenset[str]) -> None:
    if said.digest in missing:
        reject(item, "blob_missing", said.path, digest=said.digest)
        return
    artifacts.say_kind(tx, run.id, said.path, said.kind)
    if said.digest:
        artifacts.record(tx, run, item.header.attempt, [artifacts.Kept(said.path, said.kind, said.size, said.digest)])


def _note(tx: Tx, run: runs.RunRow, item: Item) -> None:
    """Put an event of a rank into the journal; one that is too large for it is refused by name."""
    kind, data = str(item.content["kind"]), plain(item.content.get("data", {}))
    if len(pack(data)) > EVENT_BYTES or len(kind) > 100 or not kind.isprintable():
        reject(item, "event_refused", kind[:100], limit=EVENT_BYTES)
        return
    tx.emit(
        Event("run.noted", run.id, run.space_id, run.id, data={"what": kind, "rank": item.header.rank, "data": data})
    )


def _progress(tx: Tx, run: runs.RunRow, item: Item) -> None:
    data: dict[str, Any] = item.content.get("data", {})
    step, total, left = data.get("step"), data.get("steps_total", 0), data.get("seconds_left")
    if not isinstance(step, int) or not isinstance(total, int) or abs(step) >= 2**63 or abs(total) >= 2**63:
        reject(item, "event_refused", "progress", limit=EVENT_BYTES)
        return
    seconds = float(left) if isinstance(left, int | float) and 0 <= left < 1e12 else None
    runs.note_progress(tx, run.id, step=step, steps_total=total, seconds_left=seconds,
                       at_us=min(item.header.ts, tx.now_us))  # fmt: skip
