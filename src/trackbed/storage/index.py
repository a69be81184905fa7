"""Where each chunk lies: a cache of what the packs say about themselves, in SQLite. Never trusted, always rebuildable.

A chunk is looked up by 20 of its 32 bytes; whoever reads it checks the whole id against the bytes, so a spoiled row costs a
refusal and a rebuild, never a wrong byte. Several processes share one file; what is lost with it is only time.
"""

import sqlite3
import struct
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trackbed.base.errors import Damaged, NotFound
from trackbed.formats.footer import SHARED, Base, FileRow, PackRows
from trackbed.storage.backends.port import Backend, ObjectInfo

ReadRows = Callable[[Backend, ObjectInfo], PackRows]
PACKS = "packs/"
_KEY = 20  # of the 32 bytes of an id
_VERSION = 1
_BATCH = 500  # ids of one query
_READERS = 4
_BASE = struct.Struct("<16sII")
_SCHEMA = """
CREATE TABLE pack (no INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, kind INTEGER NOT NULL,
  owner BLOB NOT NULL, fading INTEGER NOT NULL DEFAULT 0);
CREATE TABLE frame (no INTEGER PRIMARY KEY, id BLOB NOT NULL, pack INTEGER NOT NULL, offset INTEGER NOT NULL,
  length INTEGER NOT NULL, codec INTEGER NOT NULL, depth INTEGER NOT NULL, raw INTEGER NOT NULL, bases BLOB NOT NULL);
CREATE INDEX frame_id ON frame (id);
CREATE INDEX frame_pack ON frame (pack);
CREATE TABLE chunk (id BLOB NOT NULL, frame INTEGER NOT NULL, start INTEGER NOT NULL, length INTEGER NOT NULL,
  PRIMARY KEY (id, frame)) WITHOUT ROWID;
CREATE TABLE file (id BLOB NOT NULL, pack INTEGER NOT NULL, size INTEGER NOT NULL, root BLOB NOT NULL,
  levels INTEGER NOT NULL, PRIMARY KEY (id, pack)) WITHOUT ROWID;
"""
_AT = """f.id, p.id, f.offset, f.length, f.codec, f.depth, f.raw, f.bases"""


@dataclass(frozen=True, slots=True)
class FrameAt:
    """A frame and its place; a copy of it may lie in another pack too."""

    frame_id: bytes
    pack_id: bytes
    offset: int
    length: int
    codec: int
    depth: int
    raw_length: int
    bases: tuple[Base, ...]


@dataclass(frozen=True, slots=True)
class ChunkAt:
    frame: FrameAt
    start: int  # in the frame's plain bytes
    length: int
    fading: bool = False  # its pack has a tombstone: to be read, never to be relied on by something new


class ChunkIndex:
    """Open with `open`. Calls from many threads take turns."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._db = connection
        self._lock = threading.RLock()

    @classmethod
    def open(cls, path: Path) -> "ChunkIndex":
        """Open the index at a path; one that is damaged or of another version is thrown away and starts empty."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            return cls(path, _connect(path))
        except sqlite3.DatabaseError:
            throw_away(path)
            return cls(path, _connect(path))

    @property
    def path(self) -> Path:
        return self._path

    def packs(self) -> dict[bytes, int]:
        """Size of each pack that is known here, by id."""
        return dict(self._rows("SELECT id, size FROM pack"))

    def kind_of(self, pack_id: bytes) -> tuple[int, bytes] | None:
        """Class and owner of a pack."""
        rows = self._rows("SELECT kind, owner FROM pack WHERE id = ?", [pack_id])
        return (rows[0][0], rows[0][1]) if rows else None

    def add(self, rows: PackRows) -> None:
        """Take in what a pack says; one that is known is left alone."""
        self.add_many([rows])

    def add_many(self, packs: Iterable[PackRows]) -> None:
        with self._write() as db:
            for rows in packs:
                _add(db, rows)

    def drop(self, pack_ids: Iterable[bytes]) -> None:
        """Forget packs, in one pass over the chunks."""
        with self._write() as db:
            gone = [
                row[0]
                for pack_id in pack_ids
                for row in db.execute("DELETE FROM pack WHERE id = ? RETURNING no", (pack_id,)).fetchall()
            ]
            if not gone:
                return
            db.execute("CREATE TEMP TABLE IF NOT EXISTS gone (no INTEGER PRIMARY KEY)")
            db.execute("DELETE FROM gone")
            db.executemany("INSERT INTO gone VALUES (?)", [(no,) for no in gone])
            db.execute("DELETE FROM chunk WHERE frame IN (SELECT no FROM frame WHERE pack IN (SELECT no FROM gone))")
            db.execute("DELETE FROM frame WHERE pack IN (SELECT no FROM gone)")
            db.execute("DELETE FROM file WHERE pack IN (SELECT no FROM gone)")

    def fade(self, pack_ids: Iterable[bytes]) -> None:
        """Say which packs have a tombstone now; all others have none."""
        fading = set(pack_ids)
        before = {row[0] for row in self._rows("SELECT id FROM pack WHERE fading = 1")}
        if before == fading & self.packs().keys():
            return
        with self._write() as db:
            db.execute("UPDATE pack SET fading = 0 WHERE fading = 1")
            db.executemany("UPDATE pack SET fading = 1 WHERE id = ?", [(pack_id,) for pack_id in fading])

    def chunk(self, chunk_id: bytes, *, owner: bytes = b"") -> ChunkAt | None:
        """Where a shared chunk lies, or one of this owner."""
        return self.chunks([chunk_id], owner=owner).get(chunk_id)

    def chunks(self, ids: Sequence[bytes], *, owner: bytes = b"", any_owner: bool = False) -> dict[bytes, ChunkAt]:
        """Where chunks lie, of those that are known: in no fading pack, by the fewest other frames, the newest copy.

        `frame` chooses alike, so that what a collection copied is what everybody uses from then on.
        """
        wanted = {chunk_id[:_KEY]: chunk_id for chunk_id in ids}
        found: dict[bytes, ChunkAt] = {}
        mine = "" if any_owner else f" AND (p.kind = {SHARED} OR p.owner = ?)"
        for keys in _batches(list(wanted)):
            query = (
                f"SELECT {_AT}, c.id, c.start, c.length, p.fading FROM chunk c JOIN frame f ON f.no = c.frame"
                f" JOIN pack p ON p.no = f.pack WHERE c.id IN ({','.join('?' * len(keys))}){mine} ORDER BY p.fading DESC, f.depth DESC, p.no"
            )
            frames: dict[tuple[bytes, bytes], FrameAt] = {}  # neighbours share one
            for row in self._rows(query, keys if any_owner else [*keys, owner]):
                frame = frames.get(row[:2])
                if frame is None:
                    frame = frames[row[:2]] = _frame(row)
                found[wanted[row[8]]] = ChunkAt(frame, row[9], row[10], bool(row[11]))
        return found

    def frame(self, frame_id: bytes) -> FrameAt | None:
        rows = self._rows(
            f"SELECT {_AT} FROM frame f JOIN pack p ON p.no = f.pack WHERE f.id = ? ORDER BY p.fading, p.no DESC LIMIT 1",
            [frame_id],
        )
        return _frame(rows[0]) if rows else None

    def frames(self, pack_id: bytes) -> list[FrameAt]:
        """The frames of a pack, in its order."""
        query = f"SELECT {_AT} FROM frame f JOIN pack p ON p.no = f.pack WHERE p.id = ? ORDER BY f.offset"
        return [_frame(row) for row in self._rows(query, [pack_id])]

    def places(self, frame_ids: Sequence[bytes]) -> dict[bytes, list[FrameAt]]:
        """Every copy of frames."""
        found: dict[bytes, list[FrameAt]] = {}
        for ids in _batches(list(frame_ids)):
            query = f"SELECT {_AT} FROM frame f JOIN pack p ON p.no = f.pack WHERE f.id IN ({','.join('?' * len(ids))})"
            for row in self._rows(query, ids):
                found.setdefault(row[0], []).append(_frame(row))
        return found

    def file(self, file_id: bytes) -> FileRow | None:
        return self.files([file_id]).get(file_id)

    def files(self, ids: Sequence[bytes]) -> dict[bytes, FileRow]:
        """How files are put together, of those that are known."""
        found: dict[bytes, FileRow] = {}
        for keys in _batches(list(ids)):
            query = f"SELECT id, size, root, levels FROM file WHERE id IN ({','.join('?' * len(keys))}) ORDER BY pack"
            for row in self._rows(query, keys):
                found[row[0]] = FileRow(*row)
        return found

    def counts(self) -> tuple[int, int, int, int]:
        """Packs, frames, chunks and files that are known."""
        return tuple(self._rows(f"SELECT count(*) FROM {table}")[0][0] for table in ("pack", "frame", "chunk", "file"))  # pyright: ignore[reportReturnType]

    def refresh(self, backend: Backend, read_rows: ReadRows) -> list[tuple[str, Exception]]:
        """Take in packs that others wrote, forget those that are gone; return those whose rows could not be read."""
        there = {bytes.fromhex(info.name.rpartition("/")[2]): info for info in backend.list(PACKS)}
        known = self.packs()
        self.drop(known.keys() - there.keys())
        new = [info for pack_id, info in there.items() if pack_id not in known]
        spoiled: list[tuple[str, Exception]] = []

        def read(info: ObjectInfo) -> PackRows | None:
            try:
                return read_rows(backend, info)
            except (Damaged, NotFound) as fault:
                if fault.code != "storage_object_missing":  # collected since it was listed
                    spoiled.append((info.name, fault))
                return None

        if len(new) == 1:
            rows = read(new[0])
            self.add_many([rows] if rows else [])
        elif new:
            with ThreadPoolExecutor(_READERS) as pool:
                for at in range(0, len(new), 2 * _READERS):
                    self.add_many(
                        [rows for rows in pool.map(read, new[at : at + 2 * _READERS]) if rows]
                    )  # read first: readers ask here
        return spoiled

    def rebuild(self, backend: Backend, read_rows: ReadRows) -> list[tuple[str, Exception]]:
        """Forget everything and ask every pack again."""
        with self._write() as db:
            for table in ("chunk", "frame", "file", "pack"):
                db.execute(f"DELETE FROM {table}")
        return self.refresh(backend, read_rows)

    def sound(self) -> bool:
        """Whether SQLite finds nothing wrong with the file."""
        try:
            return self._rows("PRAGMA quick_check")[0][0] == "ok"
        except Damaged:
            return False

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def _rows(self, query: str, params: Sequence[object] = ()) -> list[Any]:
        with self._lock:
            try:
                return self._db.execute(query, params).fetchall()
            except sqlite3.DatabaseError as fault:
                raise Damaged("storage_index_damaged", where=str(self._path), why=str(fault)) from fault

    @contextmanager
    def _write(self) -> Generator[sqlite3.Connection]:
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    yield self._db
                except BaseException:
                    self._db.execute("ROLLBACK")
                    raise
                self._db.execute("COMMIT")
            except sqlite3.DatabaseError as fault:
                raise Damaged("storage_index_damaged", where=str(self._path), why=str(fault)) from fault


def throw_away(path: Path) -> None:
    """Remove an index: the next opening starts empty."""
    for ending in ("", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA cache_size = -16384")
        db.execute("BEGIN IMMEDIATE")
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            for statement in _SCHEMA.split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {_VERSION}")
        elif version != _VERSION:
            raise sqlite3.DatabaseError("another version")
        db.execute("COMMIT")
    except BaseException:
        db.close()
        raise
    return db


def _add(db: sqlite3.Connection, rows: PackRows) -> None:
    cursor = db.execute(
        "INSERT INTO pack (id, size, kind, owner) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (rows.pack_id, rows.size, rows.kind, rows.owner),
    )
    if not cursor.rowcount:
        return
    pack = cursor.lastrowid
    for frame in rows.frames:
        bases = b"".join(_BASE.pack(base.frame_id, base.start, base.length) for base in frame.bases)
        number = db.execute(
            "INSERT INTO frame (id, pack, offset, length, codec, depth, raw, bases) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (frame.frame_id, pack, frame.offset, frame.length, frame.codec, frame.depth, frame.raw_length, bases),
        ).lastrowid
        at = 0
        chunks: list[tuple[bytes, int | None, int, int]] = []
        for chunk_id, length in frame.chunks:
            chunks.append((chunk_id[:_KEY], number, at, length))
            at += length
        db.executemany("INSERT OR IGNORE INTO chunk VALUES (?, ?, ?, ?)", chunks)
    db.executemany(
        "INSERT OR IGNORE INTO file VALUES (?, ?, ?, ?, ?)",
        [(one.file_id, pack, one.size, one.root, one.levels) for one in rows.files],
    )


def _frame(row: Sequence[Any]) -> FrameAt:
    *values, bases = row[:8]
    return FrameAt(*values, bases=tuple(Base(*base) for base in _BASE.iter_unpack(bases)))


def _batches(keys: list[bytes]) -> Iterator[list[bytes]]:
    for at in range(0, len(keys), _BATCH):
        yield keys[at : at + _BATCH]
