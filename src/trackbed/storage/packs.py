"""Writing packs: frames are compressed and sealed on a few threads, stay in order, and fill packs of 64 MiB.

    frame() ─ pool: compress, seal ─ in order ─ spool file ─ one thread: put the pack, tell the index

What is in flight is bounded. A pack that is not full at the end is put as it is; what was not put at an abort never was.
"""

import os
import secrets
import tempfile
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from trackbed.base import faults
from trackbed.base.errors import Damaged
from trackbed.formats import frame as frames
from trackbed.formats import pack
from trackbed.formats.footer import SHARED, Base, FileRow, FrameRow, PackRows
from trackbed.storage.backends.port import Backend
from trackbed.storage.files import disk, write_all
from trackbed.storage.index import ChunkIndex
from trackbed.storage.keys import Keys

PACK_BYTES = 64 * 1024 * 1024
_IN_FLIGHT = 16 * 1024 * 1024
_GAINS = 0.9  # a difference that saves less is not worth keeping its base for


@dataclass(frozen=True, slots=True)
class Piece:
    """A new chunk on its way into a frame, with the file rows that must lie in its pack."""

    chunk_id: bytes
    data: bytes
    role: int = frames.DATA
    files: tuple[FileRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Sealed:
    """A frame as it stands in a pack, header included; its row still has no offset."""

    data: bytes
    row: FrameRow
    files: tuple[FileRow, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """How to compress a frame: codec, what against, how wide its numbers are."""

    bases: tuple[Base, ...] = ()
    read_base: Callable[[], bytes] | None = None
    depth: int = 0
    width: int = 0  # of a number, for byte planes; 0: not numbers
    rounded: bool = False  # the bytes are those of the bases, rounded to BF16: seen by the caller
    level: int = 2


class PackWriter:
    """One writer's packs. Not for several threads; `finish` or `abort` ends it."""

    def __init__(
        self,
        backend: Backend,
        keys: Keys,
        index: ChunkIndex,
        pool: ThreadPoolExecutor,
        *,
        owner: bytes = b"",
        kind: int = SHARED,
    ) -> None:
        self._backend, self._keys, self._index, self._pool = backend, keys, index, pool
        self._kind, self.owner = kind, owner
        self._flying: deque[tuple[int, Future[Sealed]]] = deque()
        self._in_flight = 0
        self._filling: _Pack | None = None
        self._uploads: list[Future[PackRows]] = []
        self._uploader: ThreadPoolExecutor | None = None
        self.rows: list[PackRows] = []  # of packs that are durable
        self.stored_bytes = 0

    def frame(self, pieces: list[Piece], plan: Plan) -> bytes:
        """Take chunks for one frame; return its id. Blocks while too much is in flight."""
        size = sum(len(piece.data) for piece in pieces)
        frame_id = secrets.token_bytes(16)
        self._flying.append((size, self._pool.submit(seal, self._keys, frame_id, pieces, plan)))
        self._in_flight += size
        while self._in_flight > _IN_FLIGHT or (self._flying and self._flying[0][1].done()):
            self._land()
        return frame_id

    def copy(self, sealed: Sealed) -> None:
        """Take a frame of another pack as it is: nothing is opened."""
        while self._flying:
            self._land()
        self._append(sealed)

    def finish(self) -> set[bytes]:
        """Write out everything; when this returns all packs are durable and in the index. Return their ids."""
        while self._flying:
            self._land()
        self._close_pack()
        while self._uploads:
            self._uploaded()
        if self._uploader:
            self._uploader.shutdown()
        return {row.pack_id for row in self.rows}

    def abort(self) -> None:
        """Drop what is not put yet."""
        for _, future in self._flying:
            future.cancel()
        self._flying.clear()
        if self._filling:
            self._filling.drop()
            self._filling = None
        if self._uploader:
            self._uploader.shutdown()  # a full pack on its way is sound: it is put, and found when the data is added again

    def settled(self) -> bool:
        """Whether nothing waits: what was given so far can be found in the index."""
        return not self._flying and not self._filling and not self._uploads

    def _land(self) -> None:
        size, future = self._flying.popleft()
        self._in_flight -= size
        self._append(future.result())

    def _append(self, sealed: Sealed) -> None:
        if self._filling and self._filling.size + len(sealed.data) > PACK_BYTES:
            self._close_pack()
        if not self._filling:
            self._filling = _Pack(self._backend.spool, self._kind, self.owner)
        self._filling.append(sealed)

    def _close_pack(self) -> None:
        full = self._filling
        if not full:
            return
        rows = full.close(self._keys)  # at a fault it stays the one being filled, and an abort drops it
        self._filling = None
        self.stored_bytes += rows.size
        if not self._uploader:
            self._uploader = ThreadPoolExecutor(1, thread_name_prefix="trackbed-pack")
        self._uploads.append(self._uploader.submit(self._put, full.path, rows))
        if len(self._uploads) > 1:
            self._uploaded()

    def _uploaded(self) -> None:
        self.rows.append(self._uploads.pop(0).result())

    def _put(self, path: Path, rows: PackRows) -> PackRows:
        try:
            faults.point("pack.closed")
            self._backend.put(pack_name(rows.pack_id), path)
            faults.point("pack.put")
            self._index.add(rows)
        finally:
            path.unlink(missing_ok=True)
        return rows


def pack_name(pack_id: bytes) -> str:
    return f"packs/{pack_id.hex()[:2]}/{pack_id.hex()}"


def pack_id_of(name: str) -> bytes:
    return bytes.fromhex(name.rpartition("/")[2])


def seal(keys: Keys, frame_id: bytes, pieces: list[Piece], plan: Plan) -> Sealed:
    """Compress and seal chunks as one frame. The id was never used before."""
    raw = b"".join([piece.data for piece in pieces])
    codec, body, used = _body(raw, plan)
    bases = plan.bases if used else ()
    depth = plan.depth if used else 0
    table = frames.write_table(frames.Table(bases, tuple((piece.role, len(piece.data)) for piece in pieces)))
    length = len(table) + len(body) + 16
    header = frames.Header(frame_id, length, len(raw), codec, depth, keys.generation).pack()
    sealed = keys.seal_frame(frame_id, header, b"".join((table, body)))
    row = FrameRow(
        frame_id,
        0,
        length,
        codec,
        depth,
        len(raw),
        frames.named(bases),
        tuple((piece.chunk_id, len(piece.data)) for piece in pieces),
    )
    return Sealed(header + sealed, row, tuple(row for piece in pieces for row in piece.files))


def _body(raw: bytes, plan: Plan) -> tuple[int, bytes, bool]:
    """Return codec, body, and whether the bases are needed."""
    if plan.rounded:
        return frames.ROUNDED, b"", True
    base = _base(plan)
    if plan.width:
        if len(base) == len(raw) and frames.closer(raw, base, plan.width):
            return frames.XOR, frames.compress_planes(raw, plan.width, base=base), True
        return frames.PLANES, frames.compress_planes(raw, plan.width), False
    against = frames.compress_against(raw, base, level=plan.level) if base else b""
    if base and len(against) < _GAINS * len(raw):
        return frames.DELTA, against, True
    codec, alone = frames.compress(raw, level=plan.level)
    if base and len(against) < _GAINS * len(alone):
        return frames.DELTA, against, True
    return codec, alone, False


def _base(plan: Plan) -> bytes:
    """The bytes to compress against; none if they cannot be read: then the frame stands alone."""
    try:
        return plan.read_base() if plan.read_base else b""
    except Damaged:
        return b""


class _Pack:
    """A pack being filled, in a spool file."""

    def __init__(self, spool: Path | None, kind: int, owner: bytes) -> None:
        self.pack_id = secrets.token_bytes(16)
        folder = spool or Path(tempfile.gettempdir())
        self.path = folder / f"{secrets.token_hex(16)}.part"
        self._kind, self._owner = kind, owner
        self._rows: list[FrameRow] = []
        self._files: list[FileRow] = []
        with disk(folder):
            self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self.size = 0
        try:
            self._write(pack.write_header(self.pack_id, kind, owner))
        except BaseException:
            self.drop()
            raise

    def append(self, sealed: Sealed) -> None:
        self._rows.append(replace(sealed.row, offset=self.size + frames.HEADER.size))
        self._files += sealed.files
        self._write(sealed.data)

    def close(self, keys: Keys) -> PackRows:
        offset = self.size
        footer = keys.seal("footer", pack.footer_name(self.pack_id, offset), pack.write_footer(self._rows, self._files))
        self._write(footer + pack.write_trailer(offset, len(footer)))
        os.close(self._fd)
        return PackRows(self.pack_id, self.size, self._kind, self._owner, tuple(self._rows), tuple(self._files))

    def drop(self) -> None:
        os.close(self._fd)
        self.path.unlink(missing_ok=True)

    def _write(self, data: bytes) -> None:
        with disk(self.path):
            write_all(self._fd, data)
        faults.point("pack.written")
        self.size += len(data)
