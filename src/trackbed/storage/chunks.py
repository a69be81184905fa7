"""The chunk store: adapter of `Store` over packs. Pages: docs/formats/{chunks,packs,manifest}.md.

    format   keys/ring   packs/aa/<id>   trees/aa/<keyed name>        written in this order: packs, then the tree, then a pointer

Files are cut where their content says, new chunks lie compressed and sealed in packs, a tree is a listing that is itself a
file. Reads are verified chunk by chunk. What is not here may be found in a store of format 0 behind it.
"""

import io
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

from trackbed.base import faults
from trackbed.base.clock import SystemClock
from trackbed.base.errors import BadInput, Conflict, Damaged, NotFound, Unavailable
from trackbed.base.ids import Digest, FileDigest
from trackbed.formats import manifest
from trackbed.formats.cut import CutRule, Cutter
from trackbed.formats.footer import PRIVATE, SHARED, FileRow, PackRows
from trackbed.formats.manifest import ManifestFault, TreeRecord
from trackbed.formats.tensors import MOST_BYTES, header_size, rounded_places, stretches, told_size
from trackbed.formats.tree import (
    Entry,
    decode_listing,
    encode_listing,
    file_digest,
    is_digest,
    is_file_digest,
    show,
    tree_digest,
)
from trackbed.storage.backends.port import Backend, ObjectInfo
from trackbed.storage.checkout import checkout
from trackbed.storage.content import ChunkStream, Contents, Joined, TreeStream
from trackbed.storage.files import PIECE, open_source, read_all, unchanged, write_all
from trackbed.storage.index import ChunkIndex, FrameAt
from trackbed.storage.keys import Keys
from trackbed.storage.local import LocalStore
from trackbed.storage.packs import PackWriter, Sealed
from trackbed.storage.reader import ChunkReader, FrameReader
from trackbed.storage.scan import Found, entries_of, find, tree_info
from trackbed.storage.store import Progress, Reader, Refs, TreeInfo
from trackbed.storage.tombs import Tombs
from trackbed.storage.writer import SMALL, ContentWriter, Rounding

_TRIES = 3  # a write that relied on packs collected meanwhile is done again
_T = TypeVar("_T")


class _Bytes(Protocol):
    def __call__(self, count: int, /) -> None: ...


class ChunkStore:
    """Adapter of `Store`. Many threads and processes may use one place at once; each writes packs of its own."""

    def __init__(
        self,
        backend: Backend,
        keys: Keys,
        index: ChunkIndex,
        *,
        refs: Refs,
        old: LocalStore | None = None,
        threads: int = 2,
        level: int = 2,
        rule: CutRule | None = None,
    ) -> None:
        self.backend, self.keys, self.index = backend, keys, index
        self._refs, self._old, self._level = refs, old, level
        self._rule = rule or CutRule()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="trackbed-store")
        self.frames = FrameReader(backend, keys, index)
        self.reader = ChunkReader(backend, keys, index, self.frames, self._pool)
        self.tombs = Tombs(backend)
        self._contents = Contents(keys, index, self.reader)

    @property
    def refs(self) -> Refs:
        return self._refs

    def close(self) -> None:
        """End its threads and its index. Nothing is lost without it."""
        self._pool.shutdown()
        self.index.close()

    # ---- blobs

    def missing(self, digests: Iterable[FileDigest]) -> list[FileDigest]:
        asked = list(dict.fromkeys(digests))
        for digest in asked:
            _check_file_digest(digest)
        self.refresh()
        absent = self._absent(asked)
        return self._old.missing(absent) if self._old else absent

    def put_blob(
        self, source: BinaryIO | bytes | Path, *, expect: FileDigest | None = None, owner: str = ""
    ) -> tuple[FileDigest, int]:
        if expect is not None and (row := self.file_of(expect)):
            return expect, row.size
        with self._writing(owner) as writer:
            if isinstance(source, bytes):
                found = self._put_bytes(writer, source)
            elif isinstance(source, Path):
                found = self._put_file(writer, source)
            else:
                found = _put_stream(writer, source)
            _match(expect, found[0])
        return found

    def put_blobs(self, items: Iterable[tuple[FileDigest, bytes]]) -> int:
        batch = dict(items)
        for expected, data in batch.items():
            _match(expected, file_digest(data))
        new = self._absent(list(batch))
        with self._writing() as writer:
            for digest in new:
                self._put_bytes(writer, batch[digest])
        return len(new)

    def open_range(self, digest: FileDigest, start: int = 0, length: int | None = None) -> Reader:
        _check_file_digest(digest)
        row = self.file_of(digest)
        if row is None:
            if self._old and not self._old.missing([digest]):
                return self._old.open_range(digest, start, length)
            raise NotFound("storage_blob_missing", digest=digest)
        if start < 0 or start > row.size or (length is not None and length < 0):
            raise BadInput("storage_range_bad", start=start, end=start + (length or 0), size=row.size)
        stretch = row.size - start if length is None else min(length, row.size - start)
        return ChunkStream(self._contents.stretch(row, start, stretch), row.size, stretch)

    def file_of(self, digest: FileDigest) -> FileRow | None:
        """How a file is put together (levels 0: it is one chunk); None if it is not in a pack."""
        found = self._contents.rows([digest])
        if not found:
            self.refresh()
            found = self._contents.rows([digest])
        return found.get(digest)

    # ---- trees

    def put_tree(self, root: Path, *, on_progress: Progress | None = None, owner: str = "") -> TreeInfo:
        return self._again(lambda: self._put_tree(root, on_progress, owner))

    def put_listing(self, listing: bytes) -> Digest:
        return self._again(lambda: self._put_listing(listing))

    def has_tree(self, digest: Digest) -> bool:
        name = self._tree(digest)
        if self.backend.stat(name) is not None and not self.tombs.tree_fades(name.rpartition("/")[2]):
            return True
        return bool(self._old and self._old.has_tree(digest))

    def listing(self, digest: Digest) -> bytes:
        if self.record(digest) is None:
            if self._old and self._old.has_tree(digest):
                return self._old.listing(digest)
            raise NotFound("storage_tree_missing", digest=digest)
        data = self.open_range(FileDigest(digest[3:])).read()
        if tree_digest(data) != digest:
            raise Damaged("storage_record_damaged", what="listing", name=digest)
        return data

    def read_listing(self, digest: Digest) -> list[Entry]:
        return decode_listing(self.listing(digest))

    def get_tree(
        self, digest: Digest, target: Path, *, read_only: bool = False, on_progress: Progress | None = None
    ) -> None:
        entries = self.read_listing(digest)
        stream = self._tree_stream(entries)
        checkout(entries, target, stream.write, read_only=read_only, on_progress=on_progress)

    def record(self, digest: Digest) -> TreeRecord | None:
        """What the store says about a tree; None if it is not one of this store.

        Raises:
            Damaged: `storage_record_damaged`.
        """
        name = self._tree(digest)
        found = self.backend.read(name)
        if found is None:
            return None
        record = self._read_record(name, found[0])
        if record.tree != digest:
            raise Damaged("storage_record_damaged", what="tree", name=name)
        return record

    def _read_record(self, name: str, sealed: bytes) -> TreeRecord:
        """Open the object of a tree."""
        try:
            return manifest.read_record(self.keys.open("tree", name, sealed))
        except ManifestFault as fault:
            raise Damaged("storage_record_damaged", what="tree", name=name) from fault

    # ---- for verify, gc and repair

    def refresh(self) -> list[tuple[str, Exception]]:
        """Look at packs that others wrote or removed; return those whose rows cannot be read."""
        spoiled = self.index.refresh(self.backend, self.reader.read_rows)
        before = len(spoiled) + 1
        while spoiled and len(spoiled) < before:  # one without a footer may need frames of another
            before = len(spoiled)
            spoiled = self.index.refresh(self.backend, self.reader.read_rows)
        self.tombs.refresh(self.index)
        return spoiled

    def read_rows(self, backend: Backend, info: ObjectInfo) -> PackRows:
        return self.reader.read_rows(backend, info)

    def pages_of(self, row: FileRow) -> Iterator[tuple[bytes, bool]]:
        """Every chunk that a file needs, with whether it is a page of its manifest."""
        return self._contents.pages_of(row)

    def tree_record(self, name: str) -> tuple[Digest, FileRow]:
        """The tree of a record, by the hex name of its object, and the row of its listing.

        Raises:
            Damaged: `storage_record_damaged`, `storage_chunk_missing`. NotFound: `storage_object_missing`.
        """
        place = f"trees/{name[:2]}/{name}"
        record = self._read_record(place, self.backend.get(place))
        digest = Digest(record.tree)
        row = self.file_of(FileDigest(digest[3:])) if self.keys.tree_name(digest) == name else None
        if row is None:
            raise Damaged("storage_chunk_missing", what=digest)
        return digest, row

    def check_frame(self, frame: FrameAt, chunks: tuple[tuple[bytes, int], ...]) -> None:
        """Open this very copy of a frame and compare the id of every chunk. Damaged: `storage_frame_damaged`."""
        self.frames.check(frame, chunks)

    def raw_frame(self, frame: FrameAt) -> bytes:
        """A frame as it stands in its pack, header included, unopened."""
        return self.frames.sealed(frame)

    def copy_frames(self, packs: list[tuple[PackRows, set[bytes]]]) -> list[PackRows]:
        """Write these frames of packs of one kind and owner byte for byte into new packs, with the file rows that belong;
        durable, and indexed."""
        return copy_frames(self, packs)

    def pack_writer(self, *, owner: bytes = b"", kind: int = SHARED) -> PackWriter:
        """A writer of packs, to copy frames with."""
        return PackWriter(self.backend, self.keys, self.index, self._pool, owner=owner, kind=kind)

    # ---- inside

    def _put_tree(self, root: Path, on_progress: Progress | None, owner: str) -> TreeInfo:
        self.refresh()
        found = find(root)
        total = sum(one.size for one in found if one.is_file)
        done = 0

        def count(size: int) -> None:
            nonlocal done
            done += size
            if on_progress:
                on_progress(done, max(total, done))

        with self._writing(owner) as writer:

            def read(one: Found) -> tuple[FileDigest, int]:
                return self._put_file(writer, one.place, name=one.path, on_bytes=count)

            entries = entries_of(found, read)
            listing = encode_listing(entries)
            self._put_bytes(writer, listing)
            packs = writer.finish()
            self._publish(listing, entries, packs)
        return tree_info(listing, entries)

    def _put_listing(self, listing: bytes) -> Digest:
        entries = decode_listing(listing)
        files = [entry for entry in entries if entry.kind == "f"]
        self.refresh()
        rows = self._contents.rows([FileDigest(entry.digest) for entry in files], lasting=True)
        absent: list[str] = []
        for entry in files:
            size = self._size_of(entry, rows)
            if size is None:
                absent.append(entry.digest)
            elif size != entry.size:
                raise BadInput("tree_format", at=0, why=f"{show(entry.path)} has {size} bytes, not {entry.size}")
        if absent:
            raise NotFound("storage_blobs_missing", count=len(set(absent)), digest=absent[0])
        with self._writing() as writer:
            self._put_bytes(writer, listing)
            self._publish(listing, entries, writer.finish() | self._packs_of(rows.values()))
        return tree_digest(listing)

    def _publish(self, listing: bytes, entries: list[Entry], packs: set[bytes]) -> None:
        digest = tree_digest(listing)
        name = self._tree(digest)
        sizes = [entry.size for entry in entries if entry.kind == "f"]
        record = TreeRecord(
            tree=digest,
            listing_size=len(listing),
            files=len(sizes),
            size_bytes=sum(sizes),
            made_us=SystemClock().now_us(),
        )
        sealed = self.keys.seal("tree", name, manifest.write_record(record))
        self.tombs.refuse(packs)
        faults.point("tree.ready")
        if not self._put_new(name, sealed):
            self.backend.put(name, sealed)  # says the same, but is young again: whoever collects waits
        self.tombs.lift_tree(name.rpartition("/")[2])
        faults.point("tree.published")

    def _put_new(self, name: str, data: bytes) -> bool:
        try:
            return self.backend.put_if(name, data, version=None)
        except Unavailable as fault:
            if fault.code != "storage_no_conditions":
                raise
            return False

    def _packs_of(self, rows: Iterable[FileRow]) -> set[bytes]:
        """Packs that files rely on, bases included; asked only where something is being collected."""
        if not self.tombs.refresh(self.index):
            return set()
        packs: set[bytes] = set()
        for row in rows:
            ids = [chunk_id for chunk_id, _ in self.pages_of(row)]
            todo = [place.frame for place in self.reader.places(ids).values()]
            while todo:
                frame = todo.pop()
                packs.add(frame.pack_id)
                todo += [base for one in frame.bases if (base := self.index.frame(one.frame_id))]
        return packs

    def _put_bytes(self, writer: ContentWriter, data: bytes) -> tuple[FileDigest, int]:
        return (writer.small(data), len(data)) if len(data) < SMALL else writer.large(_Memory(data))

    def _put_file(
        self, writer: ContentWriter, path: bytes | Path, *, name: bytes = b"", on_bytes: _Bytes | None = None
    ) -> tuple[FileDigest, int]:
        source = open_source(path)

        def peek(start: int, length: int) -> bytes:
            return os.pread(source, length, start)

        try:
            with unchanged(source, path):
                size = os.fstat(source).st_size
                if size < SMALL:
                    data = read_all(source, size)
                    found = self._put_bytes(writer, data)
                    if on_bytes:
                        on_bytes(len(data))
                    return found
                header = _tensor_header(source, size)
                pieces = stretches(header, size) if header else None
                with os.fdopen(source, "rb", buffering=0, closefd=False) as stream:
                    if header and pieces:
                        rounding = Rounding(rounded_places(header, size, peek), peek)
                        return writer.tensors(stream, pieces, path=name, rounding=rounding, on_bytes=on_bytes)
                    return writer.large(stream, path=name, expect=size, on_bytes=on_bytes)
        finally:
            os.close(source)

    @contextmanager
    def _writing(self, owner: str = "") -> Generator[ContentWriter]:
        packs = self.pack_writer(owner=self.keys.owner_id(owner), kind=PRIVATE if owner else SHARED)
        writer = ContentWriter(
            packs,
            self.keys,
            self.index,
            self.frames,
            self._contents,
            Cutter(self.keys.cut_key, self._rule),
            level=self._level,
        )
        try:
            yield writer
            writer.finish()
        except BaseException:
            packs.abort()
            raise

    def _again(self, write: Callable[[], _T]) -> _T:
        for _ in range(_TRIES - 1):
            try:
                return write()
            except Conflict as fault:
                if fault.code != "storage_pack_collected":
                    raise
                self.refresh()
        return write()

    def _absent(self, digests: list[FileDigest]) -> list[FileDigest]:
        found = self._contents.rows(digests, lasting=True)
        return [digest for digest in digests if digest not in found]

    def _size_of(self, entry: Entry, rows: dict[FileDigest, FileRow]) -> int | None:
        digest = FileDigest(entry.digest)
        if digest in rows:
            return rows[digest].size
        if self._old and not self._old.missing([digest]):
            with self._old.open_range(digest, 0, 0) as reader:
                return reader.size
        return None

    def _tree(self, digest: Digest) -> str:
        if not is_digest(digest):
            raise BadInput("storage_digest_bad", digest=digest[:100])
        name = self.keys.tree_name(digest)
        return f"trees/{name[:2]}/{name}"

    def _tree_stream(self, entries: list[Entry]) -> TreeStream:
        self.refresh()
        return TreeStream(self._contents, self.reader, entries, self._write_old)

    def _write_old(self, digest: FileDigest, fd: int) -> None:
        """Copy a file of the store of format 0 behind this one into an open file, verified.

        Raises:
            NotFound: `storage_blob_missing`, it is in neither.
        """
        if self._old is None:
            raise NotFound("storage_blob_missing", digest=digest)
        for piece in self._old.open_range(digest):
            write_all(fd, piece)


class _Memory(io.BytesIO):
    """Bytes as a source."""


def copy_frames(store: ChunkStore, packs: list[tuple[PackRows, set[bytes]]]) -> list[PackRows]:
    """See `ChunkStore.copy_frames`."""
    writer = store.pack_writer(owner=packs[0][0].owner, kind=packs[0][0].kind)
    copied: set[bytes] = set()
    try:
        for rows, keep in packs:
            by_root: dict[bytes, list[FileRow]] = {}
            for row in rows.files:
                by_root.setdefault(row.root, []).append(row)
            for frame in rows.frames:
                if frame.frame_id not in keep or frame.frame_id in copied:
                    continue
                copied.add(frame.frame_id)
                place = FrameAt(
                    frame.frame_id, rows.pack_id, frame.offset, frame.length, frame.codec, frame.depth, frame.raw_length,
                    frame.bases,
                )  # fmt: skip
                files = tuple(row for chunk_id, _ in frame.chunks for row in by_root.get(chunk_id, []))
                writer.copy(Sealed(store.raw_frame(place), frame, files))
        writer.finish()
    except BaseException:
        writer.abort()
        raise
    return writer.rows


def _tensor_header(fd: int, size: int) -> bytes:
    """The header of what may be a safetensors file; nothing for other files."""
    length = header_size(os.pread(fd, 16, 0), size)
    header = os.pread(fd, length, 0) if length else b""
    return header if len(header) == length else b""


def _put_stream(writer: ContentWriter, stream: BinaryIO) -> tuple[FileDigest, int]:
    head = b""
    while len(head) < SMALL and (piece := stream.read(PIECE)):
        head += piece
    if len(head) < SMALL:
        return writer.small(head), len(head)
    length = header_size(head, MOST_BYTES)
    while length and len(head) < length and (piece := stream.read(PIECE)):
        head += piece
    pieces = stretches(head[:length], told_size(head[:length])) if length and len(head) >= length else None
    if pieces:
        return writer.tensors(Joined(head, stream), pieces, path=b"")
    return writer.large(Joined(head, stream))


def _check_file_digest(digest: FileDigest) -> None:
    if not is_file_digest(digest):
        raise BadInput("storage_digest_bad", digest=digest[:100])


def _match(expected: FileDigest | None, actual: FileDigest) -> None:
    if expected is not None and expected != actual:
        raise BadInput("storage_digest_mismatch", expected=expected, actual=actual)
