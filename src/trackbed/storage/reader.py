"""Reading frames and chunks: every frame opened and checked by its tag, every chunk by its id. Nothing unchecked leaves here.

A frame that is spoiled in one pack is read from another copy if there is one. Plain frames stay in a small cache by frame id,
so a base of many deltas is unpacked once.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

from cryptography.exceptions import InvalidTag

from trackbed.base.errors import Damaged, NotFound, TrackbedError
from trackbed.formats import frame as frames
from trackbed.formats import manifest, pack
from trackbed.formats.footer import FileRow, FrameRow, PackRows
from trackbed.formats.frame import FrameFault, Header
from trackbed.storage.backends.port import Backend, ObjectInfo
from trackbed.storage.index import ChunkAt, ChunkIndex, FrameAt
from trackbed.storage.keys import Keys
from trackbed.storage.packs import pack_id_of, pack_name

CACHE_BYTES = 48 * 1024 * 1024
HINT = 255  # levels of a file row that names a page to compress a near copy against
_AHEAD = 16 * 1024 * 1024
_GROUP = 1024 * 1024  # of chunks of one frame at once, repeated ones included


@dataclass(frozen=True, slots=True)
class Want:
    """Chunks of one `file` that touch in their frame are given as one piece, and their ids are not compared: whoever reads
    checks the digest of that file. 0: every chunk by itself, checked."""

    chunk_id: bytes
    size: int
    file: int = 0


class FrameReader:
    """Opens frames. Safe for threads."""

    def __init__(self, backend: Backend, keys: Keys, index: ChunkIndex, *, cache_bytes: int = CACHE_BYTES) -> None:
        self._backend, self._keys, self._index = backend, keys, index
        self._most = cache_bytes
        self._held = 0
        self._cache: OrderedDict[bytes, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def plain(self, frame: FrameAt) -> bytes:
        """Return the plain bytes of a frame, from any copy of it that is sound.

        Raises:
            Damaged: `storage_frame_damaged`, with the pack, the frame and why.
        """
        if (held := self._held_plain(frame.frame_id)) is not None:
            return held
        try:
            raw = self._open(frame)[1]
        except Damaged as fault:
            raw = self._from_another(frame, fault)
        self._hold(frame.frame_id, raw)
        return raw

    def stretch(self, frame_id: bytes, start: int, length: int, place: FrameAt | None) -> bytes:
        """Return a part of a frame's plain bytes: a base slice. `place`: of the frame, if it is known."""
        if place is None:
            raise Damaged("storage_frame_damaged", frame=frame_id.hex(), pack="-", why="no pack has it")
        part = self.plain(place)[start : start + length]
        if len(part) != length:
            raise Damaged(
                "storage_frame_damaged", frame=frame_id.hex(), pack=place.pack_id.hex(), why="a base is short"
            )
        return part

    def check(self, frame: FrameAt, chunks: tuple[tuple[bytes, int], ...]) -> None:
        """Open this very copy of a frame, the cache aside, and compare its chunks with these ids and lengths."""
        table, raw, header = self._open_all(frame)
        try:
            if rows_of(self._keys, frame, header, table, raw)[0].chunks != chunks:
                raise FrameFault("its chunks are not those of its row")
        except (FrameFault, manifest.ManifestFault) as fault:
            raise _damaged(frame, str(fault)) from fault

    def sealed(self, frame: FrameAt) -> bytes:
        """Return a frame as it stands in its pack, header included, unopened."""
        start = frame.offset - frames.HEADER.size
        return self._backend.get(pack_name(frame.pack_id), start, frames.HEADER.size + frame.length)

    def forget(self) -> None:
        with self._lock:
            self._cache.clear()
            self._held = 0

    def _open(self, frame: FrameAt) -> tuple[frames.Table, bytes]:
        table, raw, _ = self._open_all(frame)
        return table, raw

    def _open_all(self, frame: FrameAt) -> tuple[frames.Table, bytes, Header]:
        try:
            data = self.sealed(frame)
            header = frames.read_header(data)
            if header.frame_id != frame.frame_id or header.sealed_length != frame.length:
                raise FrameFault("another frame stands there")
            return *self.unpack(header, data), header
        except InvalidTag as fault:
            raise _damaged(frame, "its tag does not match") from fault
        except FrameFault as fault:
            raise _damaged(frame, str(fault)) from fault
        except NotFound as fault:
            raise _damaged(frame, fault.code) from fault

    def unpack(
        self, header: Header, data: bytes, beside: Mapping[bytes, FrameAt] | None = None
    ) -> tuple[frames.Table, bytes]:
        """Open and expand a frame given whole. `beside`: frames that the index does not know yet."""
        plain = self._keys.open_frame(
            header.generation, header.frame_id, data[: frames.HEADER.size], data[frames.HEADER.size :]
        )
        table, body = frames.read_table(plain)
        if bool(table.bases) != (header.depth > 0):
            raise FrameFault("depth and bases do not agree")
        parts: list[bytes] = []
        for base in table.bases:
            place = (beside or {}).get(base.frame_id) or self._index.frame(base.frame_id)
            if place and place.depth >= header.depth:
                raise FrameFault("a base is as deep as its delta")
            parts.append(self.stretch(base.frame_id, base.start, base.length, place))
        return table, frames.expand(header, body, b"".join(parts))

    def _from_another(self, frame: FrameAt, fault: Damaged) -> bytes:
        for copy in self._index.places([frame.frame_id]).get(frame.frame_id, []):
            if copy.pack_id != frame.pack_id:
                try:
                    return self._open(copy)[1]
                except Damaged:
                    continue
        raise fault

    def _held_plain(self, frame_id: bytes) -> bytes | None:
        with self._lock:
            raw = self._cache.get(frame_id)
            if raw is not None:
                self._cache.move_to_end(frame_id)
            return raw

    def _hold(self, frame_id: bytes, raw: bytes) -> None:
        with self._lock:
            if frame_id not in self._cache:
                self._cache[frame_id] = raw
                self._held += len(raw)
            while self._held > self._most:
                self._held -= len(self._cache.popitem(last=False)[1])


class ChunkReader:
    """Finds chunks and gives them in order, with frames read ahead."""

    def __init__(
        self, backend: Backend, keys: Keys, index: ChunkIndex, frame_reader: FrameReader, pool: ThreadPoolExecutor
    ) -> None:
        self._backend, self._keys, self._index = backend, keys, index
        self._frames, self._pool = frame_reader, pool

    def one(self, chunk_id: bytes) -> bytes:
        return bytes(next(self.many([Want(chunk_id, -1)])))

    def places(self, ids: Sequence[bytes]) -> dict[bytes, ChunkAt]:
        """Where chunks lie; packs that others wrote meanwhile are looked at when one is not known.

        Raises:
            Damaged: `storage_chunk_missing`.
        """
        found = self._index.chunks(ids, any_owner=True)
        if len(found) < len(set(ids)):
            self.refresh()
            found = self._index.chunks(ids, any_owner=True)
            for one in ids:
                if one not in found:
                    raise Damaged("storage_chunk_missing", what=one.hex())
        return found

    def refresh(self) -> None:
        self._index.refresh(self._backend, self.read_rows)

    def many(self, wants: Iterable[Want]) -> Iterator[bytes | memoryview]:
        """Give the bytes of chunks, in order, checked as `Want` says. About 16 MiB are read ahead."""
        flying: deque[tuple[int, Future[Sequence[bytes | memoryview]]]] = deque()
        ahead = 0
        for group in self._groups(wants):
            size = max(group[0][1].frame.raw_length, sum(place.length for _, place in group))
            flying.append((size, self._pool.submit(self._cut_out, group)))
            ahead += size
            while ahead > _AHEAD:
                size, future = flying.popleft()
                ahead -= size
                yield from future.result()
        while flying:
            yield from flying.popleft()[1].result()

    def _groups(self, wants: Iterable[Want]) -> Iterator[list[tuple[Want, ChunkAt]]]:
        group: list[tuple[Want, ChunkAt]] = []
        size = 0
        for batch in _batches(wants):
            places = self.places([want.chunk_id for want in batch])
            for want in batch:
                place = places[want.chunk_id]
                if group and (
                    group[0][1].frame.frame_id != place.frame.frame_id or group[0][0].file != want.file or size > _GROUP
                ):
                    yield group
                    group, size = [], 0
                group.append((want, place))
                size += place.length
        if group:
            yield group

    def _cut_out(self, group: list[tuple[Want, ChunkAt]]) -> Sequence[bytes | memoryview]:
        try:
            return self._joined(group) if group[0][0].file else self._checked(group)
        except Damaged:
            self._frames.forget()
            self.refresh()  # collected or compacted meanwhile: look again, once
            places = self.places([want.chunk_id for want, _ in group])
            return [self._checked([(want, places[want.chunk_id])])[0] for want, _ in group]

    def _joined(self, group: list[tuple[Want, ChunkAt]]) -> list[memoryview]:
        """The bytes of chunks of whole files, as few pieces as they lie in."""
        raw = memoryview(self._frames.plain(group[0][1].frame))
        out: list[memoryview] = []
        start = end = 0
        for want, place in group:
            if place.length != want.size or place.start + place.length > len(raw):
                raise Damaged("storage_chunk_damaged", chunk=want.chunk_id.hex(), pack=place.frame.pack_id.hex())
            if place.start != end or not out:
                start = place.start
                out.append(raw[:0])
            end = place.start + place.length
            out[-1] = raw[start:end]
        return out

    def _checked(self, group: list[tuple[Want, ChunkAt]]) -> list[bytes]:
        raw = self._frames.plain(group[0][1].frame)
        out: list[bytes] = []
        for want, place in group:
            data = raw[place.start : place.start + place.length]
            if (want.size >= 0 and len(data) != want.size) or self._keys.chunk_id(data) != want.chunk_id:
                raise Damaged("storage_chunk_damaged", chunk=want.chunk_id.hex(), pack=place.frame.pack_id.hex())
            out.append(data)
        return out

    def read_rows(self, backend: Backend, info: ObjectInfo) -> PackRows:
        """What a pack says about itself: by its footer, or, where that is spoiled, by its frames.

        Raises:
            Damaged: `storage_pack_damaged`, it has neither.
        """
        pack_id = pack_id_of(info.name)
        try:
            return read_footer(backend, self._keys, info)
        except Damaged:
            rows = self.scan(backend, info)
            if not rows.frames:
                raise Damaged("storage_pack_damaged", name=pack_id.hex(), why="footer and frames are spoiled") from None
            return rows

    def scan(self, backend: Backend, info: ObjectInfo) -> PackRows:
        """Rows of a pack made from its frame headers. Spoiled frames are left out.

        Raises:
            Damaged: `storage_pack_damaged`, a frame is whole but one that it is compressed against is not to be found.
        """
        found: list[FrameRow] = []
        files: list[FileRow] = []
        head = backend.get(info.name, 0, pack.HEADER_BYTES)
        try:
            pack_id, kind, owner = pack.read_header(head)
        except pack.PackFault:
            pack_id, kind, owner = pack_id_of(info.name), 0, b""
        at = pack.HEADER_BYTES
        beside: dict[bytes, FrameAt] = {}
        while at + frames.HEADER.size < info.size:
            try:
                header = frames.read_header(backend.get(info.name, at, frames.HEADER.size))
                place = FrameAt(
                    header.frame_id, pack_id_of(info.name), at + frames.HEADER.size, header.sealed_length, header.codec,
                    header.depth, header.raw_length, (),
                )  # fmt: skip
                table, raw = self._frames.unpack(header, self._frames.sealed(place), beside)
                beside[header.frame_id] = place
                row, below = rows_of(self._keys, place, header, table, raw)
                found.append(row)
                files += below
                at += frames.HEADER.size + header.sealed_length
            except Damaged as fault:  # it is delta of a frame that is not known, yet: asked again when more packs are
                raise Damaged(
                    "storage_pack_damaged", name=pack_id.hex(), why=f"no footer; {fault.params['why']}"
                ) from fault
            except (FrameFault, manifest.ManifestFault, InvalidTag):
                at = _next_header(backend, info, at + 1)
        return PackRows(pack_id, info.size, kind, owner, tuple(found), tuple(files))


def rows_of(
    keys: Keys, place: FrameAt, header: Header, table: frames.Table, raw: bytes
) -> tuple[FrameRow, list[FileRow]]:
    """What a frame says about itself once it is open: its row, and those of the files whose roots it holds."""
    chunks: list[tuple[bytes, int]] = []
    files: list[FileRow] = []
    at = 0
    for role, length in table.rows:
        data = memoryview(raw)[at : at + length]
        chunk_id = keys.chunk_id(data)
        chunks.append((chunk_id, length))
        if role == frames.ROOT:
            files.append(file_row(keys, chunk_id, manifest.read_root(data)))
        if role != frames.DATA:
            files += hints_of(keys, chunk_id, role, data)
        at += length
    if at != len(raw):
        raise FrameFault("rows do not add up")
    row = FrameRow(
        header.frame_id, place.offset, header.sealed_length, header.codec, header.depth, header.raw_length, frames.named(table.bases),
        tuple(chunks),
    )  # fmt: skip
    return row, files


class Standing:
    """Which frames can be opened as far as the index knows: every frame below them is there. Remembers what it found."""

    def __init__(self, index: ChunkIndex) -> None:
        self._index = index
        self._known: dict[bytes, bool] = {}

    def __call__(self, frame: FrameAt) -> bool:
        if not frame.bases:
            return True
        stands = self._known.get(frame.frame_id)
        if stands is None:
            below = [self._index.frame(base.frame_id) for base in frame.bases]
            stands = all(base is not None and base.depth < frame.depth and self(base) for base in below)
            self._known[frame.frame_id] = stands
        return stands


def names_of(keys: Keys, root: bytes, size: int, *, first: bytes, path: bytes) -> list[FileRow]:
    """Rows under which the next version of a file finds the root of this one: by its first chunk, and by its path."""
    ways = [b"F" + first, *([b"N" + path] if path else [])]
    return [FileRow(keys.hint_id(way), size, root, HINT) for way in ways]


def file_row(keys: Keys, chunk_id: bytes, root: manifest.Root) -> FileRow:
    return FileRow(keys.file_id(root.digest), root.size, chunk_id, root.levels)


def hints_of(keys: Keys, chunk_id: bytes, role: int, data: bytes | memoryview) -> list[FileRow]:
    """Rows under which the next version of a page finds this one: by its first and by its last id."""
    head = 49 if role == frames.ROOT else 0  # bytes of a root before its rows
    width = 40 if role == frames.ROOT and data[48] > 1 else 36
    rows = data[head:]
    if not rows or len(rows) % width:
        return []
    ends = {bytes(rows[:32]), bytes(rows[-width:][:32])}
    return [FileRow(keys.hint_id(bytes([role]) + one), len(data), chunk_id, HINT) for one in sorted(ends)]


def read_footer(backend: Backend, keys: Keys, info: ObjectInfo) -> PackRows:
    """Rows of a pack by its footer. Damaged (`storage_pack_damaged`) if it is spoiled."""
    pack_id = pack_id_of(info.name)
    try:
        tail = max(info.size - 256 * 1024, 0)
        end = backend.get(info.name, tail)
        offset, length = pack.read_trailer(end[-pack.TRAILER_BYTES :])
        if offset + length + pack.TRAILER_BYTES != info.size:
            raise pack.PackFault("its end tells of another length")
        sealed = (
            end[offset - tail : offset - tail + length] if offset >= tail else backend.get(info.name, offset, length)
        )
        head = backend.get(info.name, 0, pack.HEADER_BYTES)
        named, kind, owner = pack.read_header(head)
        if named != pack_id:
            raise pack.PackFault(f"it says that it is {named.hex()}")
        data = keys.open("footer", pack.footer_name(pack_id, offset), sealed)
        return pack.read_footer(data, pack_id=pack_id, size=info.size, kind=kind, owner=owner)
    except (pack.PackFault, TrackbedError) as fault:
        if isinstance(fault, TrackbedError) and not isinstance(fault, Damaged):
            raise
        raise Damaged("storage_pack_damaged", name=pack_id.hex(), why=str(fault)) from fault


def _next_header(backend: Backend, info: ObjectInfo, start: int) -> int:
    step = 1024 * 1024
    while start < info.size:
        data = backend.get(info.name, start, step + 3)
        found = data.find(frames.MAGIC)
        if found >= 0:
            return start + found
        start += step
    return info.size


def _batches(wants: Iterable[Want]) -> Iterator[list[Want]]:
    every = iter(wants)
    while batch := list(islice(every, 256)):
        yield batch


def _damaged(frame: FrameAt, why: str) -> Damaged:
    return Damaged("storage_frame_damaged", frame=frame.frame_id.hex(), pack=frame.pack_id.hex(), why=why)
