"""A run as a bundle carries it: its record, its points as frames bit for bit, its lines with their bytes."""

from collections.abc import Iterator

from sqlalchemy import select

from trackbed.db import ReadTx
from trackbed.formats import spool
from trackbed.formats.spool import Header, Line, Metrics
from trackbed.tracking import artifacts, export_tables, facts, runs
from trackbed.tracking.ingest_tables import line, tail
from trackbed.tracking.logs_lines import LEVELS
from trackbed.tracking.metrics import key_names
from trackbed.tracking.metrics_view import View
from trackbed.tracking.runs_tables import attempt, checkpoint
from trackbed.wire.bundle import AttemptRecord, FileRecord, RunRecord

CLIENT = "cli_exported"  # who wrote the frames of a bundle; what they say of attempt and rank is the original's
POINTS_PER_FRAME = 16_384
LINES_PER_READ = 2_000
LINE_BYTES_PER_FRAME = 2**20


def record_of(tx: ReadTx, row: runs.RunRow) -> RunRecord:
    """Return everything of a run but points, lines and events."""
    counted = tx.one(select(tail).where(tail.c.run_id == row.id))
    attempts = tx.rows(select(attempt).where(attempt.c.run_id == row.id).order_by(attempt.c.number))
    saved = tx.rows(select(checkpoint).where(checkpoint.c.run_id == row.id).order_by(checkpoint.c.created_us))
    files = artifacts.of_run(tx, row.id)
    return RunRecord(
        id=row.id, ref=runs.ref_of(row), space=row.space, project=row.project, name=row.name,
        description=row.description, owner=row.owner, state=row.state, cause=row.cause, reason_json=row.reason,
        tags=runs.from_json(row.tags, []), spec_json=row.spec, tree_json=row.tree, tree_digest=row.tree_digest,
        environment_json=row.environment, environment_digest=row.environment_digest,
        nondeterminism_json=row.nondeterminism, summary_json=row.summary,
        params=facts.params_of(tx, row.id, as_text=True), definitions=facts.definitions(tx, row.id),
        attempts=[
            AttemptRecord(
                number=one.number, cause=one.cause, stage=one.stage, evidence_json=one.evidence,
                placement_json=one.placement, cards=one.cards, node=one.node, created_us=one.created_us,
                started_us=one.started_us, ended_us=one.ended_us, card_seconds=one.card_seconds,
                resumed_from_step=one.resumed_from_step, last_step=one.last_step,
            )
            for one in attempts
        ],
        files=[
            FileRecord(
                path=one.path, kind=one.kind, size_bytes=one.size_bytes, file_digest=one.file_digest,
                attempt=one.attempt, created_us=one.created_us,
            )
            for one in files
        ],
        checkpoints=[
            {"name": one.name, "step": one.step, "digest": one.digest, "size_bytes": one.size_bytes, "attempt": one.attempt}
            for one in saved
        ],
        origin=export_tables.origin_of(tx, row.id), created_us=row.created_us, queued_us=row.queued_us,
        started_us=row.started_us, ended_us=row.ended_us, card_seconds=row.card_seconds, step=row.step,
        points=counted.points if counted else 0, lines=counted.lines if counted else 0,
    )  # fmt: skip


def points_of(tx: ReadTx, view: View) -> Iterator[bytes]:
    """Yield every point that was ever logged, of every attempt, as frames; the bits of the values are untouched."""
    waiting: dict[tuple[int, int], Metrics] = {}
    seq = 0
    for key in key_names(tx, view.run_id):
        for rank, column in sorted(view.columns(key).items()):
            for step, ts, value, version in zip(
                column.step.tolist(), column.ts.tolist(), column.value.tolist(), column.version.tolist(), strict=True
            ):
                columns = waiting.setdefault((version, rank), spool.new_metrics())
                if not columns.keys or columns.keys[-1] != key:
                    columns.keys.append(key)
                columns.key.append(len(columns.keys) - 1)
                columns.step.append(step)
                columns.ts.append(ts)
                columns.value.append(value)
                if len(columns.key) >= POINTS_PER_FRAME:
                    seq += 1
                    yield _frame(waiting.pop((version, rank)), version, rank, seq)
    for (version, rank), columns in sorted(waiting.items()):
        seq += 1
        yield _frame(columns, version, rank, seq)


def _frame(columns: Metrics, version: int, rank: int, seq: int) -> bytes:
    head = Header(
        kind=spool.METRICS, attempt=version >> 24, inc=version & 0xFFFFFF, rank=rank, client=CLIENT, seq=seq,
        ts=columns.ts[0], n=len(columns.key),
    )  # fmt: skip
    return spool.encode(head, spool.encode_metrics(columns))


def lines_of(tx: ReadTx, run_id: str) -> Iterator[bytes]:
    """Yield every line as frames, in the order in which they became durable; their bytes are untouched."""
    batch: list[Line] = []
    writer, size, seq, pos = (0, 0), 0, 0, 0

    def frame() -> bytes:
        head = Header(
            kind=spool.LOG,
            attempt=writer[0],
            rank=writer[1],
            client=f"{CLIENT}log",
            seq=seq,
            ts=batch[0].ts,
            n=len(batch),
        )
        return spool.encode(head, spool.encode_lines(batch))

    while True:
        stmt = select(line).where(line.c.run_id == run_id, line.c.pos > pos).order_by(line.c.pos)
        rows = tx.rows(stmt.limit(LINES_PER_READ))
        for row in rows:
            if batch and ((row.attempt, row.rank) != writer or size + len(row.data) > LINE_BYTES_PER_FRAME):
                seq += 1
                yield frame()
                batch, size = [], 0
            writer = (row.attempt, row.rank)
            batch.append(Line(row.time_us, row.stream, LEVELS[row.level], row.data))
            size, pos = size + len(row.data) + 32, row.pos
        if len(rows) < LINES_PER_READ:
            break
    if batch:
        seq += 1
        yield frame()


def csv_of(tx: ReadTx, view: View, *, plain: bool) -> Iterator[str]:
    """Yield the points of a run as CSV: every value in the shortest form that reads back to the same bits, save for NaNs.

    Unless `plain`, a name that a spreadsheet would run as a formula gets an apostrophe in front.
    """
    yield "key,step,time_us,value,rank,attempt,incarnation\r\n"
    for frame in points_of(tx, view):
        (one,) = spool.decode(frame).frames
        points = spool.decode_metrics(one.body)
        names = [_quoted(name, plain=plain) for name in points.keys]
        tail_text = f",{one.header.rank},{one.header.attempt},{one.header.inc}\r\n"
        yield "".join(
            f"{names[key]},{step},{ts},{value!r}{tail_text}"
            for key, step, ts, value in zip(points.key, points.step, points.ts, points.value, strict=True)
        )


def _quoted(text: str, *, plain: bool) -> str:
    safe = f"'{text}" if text[:1] in "=+-@" and not plain else text
    return '"' + safe.replace('"', '""') + '"' if any(char in safe for char in ',"\r\n') else safe
