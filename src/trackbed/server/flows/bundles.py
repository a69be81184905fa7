"""bundles: runs out into one checked file, and in again as foreign records. Audit events on both sides."""

import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, Any

import msgspec

from trackbed.access import ensure_project, next_run_number
from trackbed.base.errors import BadInput, Damaged
from trackbed.base.ids import FileDigest
from trackbed.db import ReadTx, Tx
from trackbed.domain.events import Event
from trackbed.domain.scope import Scope
from trackbed.formats import bundle, spool
from trackbed.formats.bundle import Manifest, Reader, Writer
from trackbed.server.app import App
from trackbed.server.flows.points import keep_points_here
from trackbed.tracking import export, imported, runs
from trackbed.tracking.artifacts import Kept
from trackbed.tracking.export_tables import installation_id
from trackbed.tracking.ingest import prepare
from trackbed.tracking.search import compile as compile_filter
from trackbed.wire.bundle import ImportedRun, ImportReply, RunRecord

MOST_RUNS = 100_000
BATCH_BYTES = 2**20
_PAGE = 500


def find_runs(app: App, who: Scope, filter: str) -> list[runs.RunRow]:
    """Return the runs of a filter, or the one that a reference names, oldest first.

    Raises:
        BadInput: `export_none`, `export_many`, and as the filter says.
    """

    def read(tx: ReadTx) -> list[runs.RunRow]:
        found: list[runs.RunRow] = []
        cursor = ""
        where = [compile_filter(filter)] if filter.strip() else []
        while True:
            page, cursor, total = runs.list_runs(tx, who, where=where, descending=False, cursor=cursor, limit=_PAGE)
            if total > MOST_RUNS:
                raise BadInput("export_many", found=total, most=MOST_RUNS)
            found += page
            if not cursor:
                return found

    found = app.db.read(read)
    if not found:
        raise BadInput("export_none", filter=filter[:300])
    return found


def write_bundle(
    app: App, who: Scope, rows: list[runs.RunRow], filter: str, *, artifacts: bool
) -> tuple[IO[bytes], str]:
    """Return a file that holds the bundle, at its beginning, and the digest of the bundle; the file goes when it is closed.

    Raises:
        Damaged: a file of a run cannot be read from the store.
    """
    ours = app.db.write(installation_id, actor=who.actor)
    target: IO[bytes] = tempfile.TemporaryFile(dir=app.home)  # noqa: SIM115 - it is closed when it was sent
    try:
        writer = Writer(target)
        for row in rows:
            record = app.db.read(lambda tx, row=row: _write_run(app, tx, writer, row))
            for one in record.files if artifacts else []:
                if not writer.has(name := f"blobs/{one.file_digest}"):
                    writer.add(name, _blob(app, row.space_id, one.file_digest))
        manifest = Manifest(
            made_us=app.db.read(lambda tx: tx.now_us), origin={"installation": ours, "by": who.actor.name}, filter=filter,
            artifacts=artifacts, runs={row.id: runs.ref_of(row) for row in rows},
        )  # fmt: skip
        digest = writer.close(manifest)
        target.seek(0)
    except BaseException:
        target.close()
        raise
    app.db.write(lambda tx: _exported(tx, rows, digest), actor=who.actor)
    return target, digest


def _write_run(app: App, tx: ReadTx, writer: Writer, row: runs.RunRow) -> RunRecord:
    record, at = export.record_of(tx, row), f"runs/{row.id}/"
    writer.add(at + bundle.RECORD, [msgspec.json.encode(record)])
    writer.add(at + bundle.POINTS, export.points_of(tx, app.curves.view(tx, row.id)))
    writer.add(at + bundle.LOG, export.lines_of(tx, row.id))
    writer.add(at + bundle.EVENTS, _events(app, tx, row.id))
    return record


def _events(app: App, tx: ReadTx, run_id: str) -> Iterator[bytes]:
    """The journal of a run, a line an event; the manifest holds the digest of the whole table."""
    after = 0
    while found := app.db.events_in(tx, after, limit=_PAGE, run_id=run_id):
        for one in found:
            said = {
                "id": one.id, "time_us": one.time_us, "kind": one.kind, "actor_kind": one.actor_kind,
                "actor": one.actor, "actor_name": one.actor_name, "subject": one.subject,
                "attempt": one.attempt_id, "data": msgspec.Raw(one.data.encode()),
            }  # fmt: skip
            yield msgspec.json.encode(said) + b"\n"
        after = found[-1].id


def _blob(app: App, space_id: str, digest: str) -> Iterator[bytes]:
    reader = app.store_of(space_id).open_range(FileDigest(digest))
    try:
        while block := reader.read(2**20):
            yield block
    finally:
        reader.close()


def _exported(tx: Tx, rows: list[runs.RunRow], digest: str) -> None:
    for row in rows:
        data = {"ref": runs.ref_of(row), "bundle": digest, "runs": len(rows)}
        tx.emit(Event("run.exported", row.id, row.space_id, row.id, data=data))


def take_bundle(app: App, who: Scope, source: IO[bytes], *, project: str, space: str) -> ImportReply:
    """Bring the runs of a bundle in. All of it is checked before the first is made; a broken import goes on when repeated.

    Raises:
        BadInput, TooLarge, Damaged: as the bundle's reader says.
        NotFound, Denied: the space, or the right to write there, is missing.
    """
    reader = Reader(source)
    reader.verify()
    records = {
        ident: imported.read_record(reader.read(f"runs/{ident}/{bundle.RECORD}")) for ident in reader.manifest.runs
    }
    for ident, record in records.items():
        _check(reader, ident, record)
    origin = reader.manifest.origin.get("installation", "")
    reply = ImportReply(bundle=reader.digest, installation=origin)
    reply.runs = [_take_run(app, who, reader, record, project, space) for record in records.values()]
    return reply


def _check(reader: Reader, ident: str, record: RunRecord) -> None:
    if record.id != ident:
        raise BadInput("bundle_record_bad", what=f"{ident}: {record.id}"[:300])
    for name in (bundle.POINTS, bundle.LOG):
        lost = sum(spool.decode(block).lost for block in _batches(reader, f"runs/{ident}/{name}"))
        if lost:
            raise Damaged("bundle_damaged", member=f"runs/{ident}/{name}", expected="0", found=str(lost))
    for one in record.files if reader.manifest.artifacts else []:
        if not reader.has(f"blobs/{one.file_digest}"):
            raise Damaged("bundle_damaged", member=f"blobs/{one.file_digest}"[:200], expected="-", found="-")


def _take_run(app: App, who: Scope, reader: Reader, record: RunRecord, project: str, space: str) -> ImportedRun:
    at, origin = f"runs/{record.id}/", reader.manifest.origin.get("installation", "")
    digest = reader.manifest.members[at + bundle.RECORD].blake3

    def begin(tx: Tx) -> tuple[runs.RunRow, bool]:
        home = ensure_project(tx, who, space or "default", project or record.project)
        known = imported.find(tx, home.space_id, origin, record, digest)
        if known is not None:
            return known
        place = imported.Place(home.space_id, home.space, home.id, home.name, next_run_number(tx, home.id))
        made = imported.begin(
            tx, who, record, place=place, installation=origin, digest=digest, bundle=reader.digest
        )  # fmt: skip
        return made, False

    row, whole = app.db.write(begin, actor=who.actor)
    told = ImportedRun(
        id=row.id, ref=runs.ref_of(row), original_id=record.id, original_ref=record.ref, points=record.points,
        lines=record.lines, known=whole,
    )  # fmt: skip
    if whole:
        return told
    for name in (bundle.POINTS, bundle.LOG):
        for batch in _batches(reader, at + name):
            prepared = prepare(batch)
            refused = keep_points_here(
                app, lambda tx, sealed, prepared=prepared: imported.keep(tx, row, prepared, sealed), actor=who.actor
            )  # fmt: skip
            if refused:
                raise BadInput("bundle_record_bad", what=", ".join(sorted(set(refused))))
    files = _take_files(app, row.space_id, reader, record)
    app.db.write(lambda tx: imported.end(tx, row, record, files=files), actor=who.actor)
    return msgspec.structs.replace(told, files=len(files or []))


def _take_files(app: App, space_id: str, reader: Reader, record: RunRecord) -> list[Kept] | None:
    if not reader.manifest.artifacts:
        return None
    kept: list[Kept] = []
    for one in record.files:
        stream: Any = _Stream(reader.blocks(f"blobs/{one.file_digest}"))
        digest, size = app.store_of(space_id).put_blob(stream)
        kept.append(Kept(one.path, one.kind, size, str(digest)))
    return kept


def _batches(reader: Reader, name: str) -> Iterator[bytes]:
    """Whole frames, about a mebibyte at a time; what is no frame comes at the end, to be counted as lost."""
    if not reader.has(name):
        return
    rest = b""
    for block in reader.blocks(name):
        data = rest + block
        used = spool.decode(data, final=False).used if len(data) >= BATCH_BYTES else 0
        if used:
            yield data[:used]
        rest = data[used:]
    if rest:
        yield rest


class _Stream:
    """Blocks as a file for the store."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks, self._rest = iter(blocks), b""

    def read(self, size: int = -1, /) -> bytes:
        if not self._rest:
            self._rest = next(self._blocks, b"")
        piece, self._rest = (self._rest, b"") if size < 0 else (self._rest[:size], self._rest[size:])
        return piece
