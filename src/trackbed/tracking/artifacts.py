"""Files that runs leave: what they are called, of which kind, by which digest. The bytes lie in the store."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from sqlalchemy import Row, delete, select

from trackbed.base.errors import NotFound
from trackbed.db import ReadTx, Tx, upsert
from trackbed.tracking.ingest_tables import artifact, file_kind
from trackbed.tracking.runs import RunRow, ref_of
from trackbed.wire.attempts import OutputsReport
from trackbed.wire.runs import ArtifactView

_SUFFIXES = {
    ".png": "image", ".jpg": "image", ".jpeg": "image", ".gif": "image", ".webp": "image", ".svg": "image",
    ".html": "report", ".md": "report", ".pdf": "report", ".ipynb": "report",
    ".csv": "table", ".tsv": "table", ".parquet": "table", ".jsonl": "table",
    ".txt": "text", ".json": "text", ".yaml": "text", ".yml": "text", ".log": "log",
    ".safetensors": "model", ".pt": "model", ".pth": "model", ".bin": "model", ".onnx": "model", ".gguf": "model",
}  # fmt: skip
_FOLDERS = {
    "images": "image", "tables": "table", "texts": "text", "histograms": "histogram", "samples": "sample",
    "model": "model", "checkpoints": "checkpoint", "logs": "log", "reports": "report",
}  # fmt: skip


@dataclass(frozen=True)
class Kept:
    """A file in the store."""

    path: str
    kind: str
    size_bytes: int
    file_digest: str


def record_outputs(tx: Tx, run: RunRow, attempt: int, report: OutputsReport) -> None:
    """Record what an attempt left. Said twice it changes nothing; a later report of the same path replaces it."""
    record(
        tx, run, attempt,
        [Kept(entry.path, entry.kind, entry.size_bytes, entry.file_digest) for entry in report.entries],
    )  # fmt: skip


def record(tx: Tx, run: RunRow, attempt: int, files: Iterable[Kept]) -> None:
    """Record files of an attempt; a kind that the program said goes before one that is guessed."""
    rows: list[dict[str, Any]] = [
        {
            "run_id": run.id, "attempt": attempt, "path": file.path, "kind": file.kind or "other",
            "size_bytes": file.size_bytes, "file_digest": file.file_digest, "created_us": tx.now_us,
        }
        for file in files
    ]  # fmt: skip
    if not rows:
        return
    said = {row.path: row.kind for row in tx.rows(select(file_kind).where(file_kind.c.run_id == run.id))}
    for row in rows:
        row["kind"] = said.get(row["path"]) or (row["kind"] if row["kind"] != "other" else kind_of(row["path"]))
    update = ["kind", "size_bytes", "file_digest", "created_us"]
    tx.execute(upsert(artifact, key=["run_id", "attempt", "path"], update=update), rows)


def say_kind(tx: Tx, run_id: str, path: str, kind: str) -> None:
    """Remember what the program calls a file, for when it comes, and for the one that came."""
    values = {"run_id": run_id, "path": path, "kind": kind}
    tx.execute(upsert(file_kind, values, key=["run_id", "path"], update=["kind"]))
    tx.execute(artifact.update().where(artifact.c.run_id == run_id, artifact.c.path == path).values(kind=kind))


def kind_of(path: str) -> str:
    """Guess a kind by the first folder, then by the suffix."""
    pure = PurePosixPath(path)
    folder = pure.parts[0] if len(pure.parts) > 1 else ""
    return _FOLDERS.get(folder) or _SUFFIXES.get(pure.suffix.lower(), "other")


def of_run(tx: ReadTx, run_id: str) -> list[ArtifactView]:
    """Return the newest file of each path, by path."""
    newest: dict[str, Row[Any]] = {}
    stmt = select(artifact).where(artifact.c.run_id == run_id).order_by(artifact.c.path, artifact.c.attempt)
    for row in tx.rows(stmt):
        newest[row.path] = row
    return [_view(row) for row in newest.values()]


def find(tx: ReadTx, run: RunRow, path: str) -> ArtifactView:
    """Return the newest file of a path.

    Raises:
        NotFound: `artifact_unknown`.
    """
    where = (artifact.c.run_id == run.id, artifact.c.path == path)
    row = tx.one(select(artifact).where(*where).order_by(artifact.c.attempt.desc()).limit(1))
    if row is None:
        raise NotFound("artifact_unknown", path=path, ref=ref_of(run))
    return _view(row)


def forget(tx: Tx, run_id: str, path: str) -> int:
    """Take a file, or all files below a folder, off the record; return how many. The store keeps bytes until it is swept."""
    below = artifact.c.path.startswith(path + "/", autoescape=True)
    return tx.execute(delete(artifact).where(artifact.c.run_id == run_id, (artifact.c.path == path) | below)).rowcount


def _view(row: Row[Any]) -> ArtifactView:
    return ArtifactView(
        path=row.path, kind=row.kind, size_bytes=row.size_bytes, file_digest=row.file_digest, attempt=row.attempt,
        created_us=row.created_us,
    )  # fmt: skip
