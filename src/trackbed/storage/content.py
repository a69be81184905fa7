"""How files lie in chunks: which are here whole, which chunks a stretch needs, and its bytes, checked.

digest ─┬ one chunk, found by the id of its content
        └ row ─ root ─ pages ─ chunks
"""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from blake3 import blake3

from trackbed.base.errors import Damaged
from trackbed.base.ids import FileDigest
from trackbed.formats import manifest
from trackbed.formats.footer import FileRow
from trackbed.formats.manifest import LEAF, ManifestFault
from trackbed.formats.tree import Entry, show
from trackbed.storage.files import PIECE, write_all
from trackbed.storage.index import ChunkIndex
from trackbed.storage.keys import Keys
from trackbed.storage.reader import ChunkReader, Standing, Want, names_of

_BATCH = 1024


class Contents:
    """Files by their digest. Safe for threads."""

    def __init__(self, keys: Keys, index: ChunkIndex, reader: ChunkReader) -> None:
        self._keys, self._index, self._reader = keys, index, reader

    def rows(self, digests: Iterable[FileDigest], *, lasting: bool = False) -> dict[FileDigest, FileRow]:
        """Rows of the files that are here: levels 0 for one chunk. With `lasting`, only what is here down to the last
        chunk and not about to be collected."""
        standing = Standing(self._index)
        alone = {self._keys.content_id(digest): digest for digest in digests}
        found: dict[FileDigest, FileRow] = {}
        for chunk_id, place in self._index.chunks(list(alone), any_owner=True).items():
            if not lasting or (standing(place.frame) and not place.fading):
                found[alone[chunk_id]] = FileRow(self._keys.file_id(alone[chunk_id]), place.length, chunk_id, 0)
        others = {self._keys.file_id(digest): digest for digest in alone.values() if digest not in found}
        rows = self._index.files(list(others))
        roots = self._index.chunks([row.root for row in rows.values()], any_owner=True)
        for file_id, row in rows.items():
            if row.root in roots and (not lasting or self._lasts(row, standing)):
                found[others[file_id]] = row
        return found

    def pages_of(self, row: FileRow) -> Iterator[tuple[bytes, bool]]:
        """Every chunk that a file needs, with whether it is a page of its manifest."""
        if row.levels == 0:
            yield row.root, False
            return
        yield row.root, True
        root = self._root(row)
        yield from self._below(root.rows, root.levels)

    def chunks_of(self, row: FileRow, *, file: int = 0) -> Iterator[Want]:
        """The chunks of a file in order; pages are read as they are needed. `file`: see `Want`."""
        for want, _ in self._wants(row, 0, row.size, file):
            yield want

    def former(self, *, first: bytes, path: bytes) -> Iterator[Want] | None:
        """The chunks of the file that began with this chunk, or else had this path; None if there is none."""
        names = names_of(self._keys, b"", 0, first=first, path=path)
        rows = self._index.files([name.file_id for name in names])
        for name in names:
            if row := rows.get(name.file_id):
                try:
                    root = manifest.read_root(self._reader.one(row.root))
                except (Damaged, ManifestFault):
                    continue
                return (want for want, _ in self._wants_below(root.rows, root.levels, 0, 0, root.size))
        return None

    def _root(self, row: FileRow) -> manifest.Root:
        try:
            root = manifest.read_root(self._reader.one(row.root))
        except ManifestFault as fault:
            raise Damaged("storage_chunk_damaged", chunk=row.root.hex(), pack="-") from fault
        if self._keys.file_id(root.digest) != row.file_id or root.size != row.size:
            raise Damaged("storage_chunk_damaged", chunk=row.root.hex(), pack="-")
        return root

    def _below(self, rows: list[manifest.Row], level: int) -> Iterator[tuple[bytes, bool]]:
        for row in rows:
            yield row.chunk_id, level > LEAF
            if level > LEAF:
                yield from self._below(self._page(row, level - 1), level - 1)

    def _page(self, row: manifest.Row, level: int) -> list[manifest.Row]:
        try:
            rows = manifest.read_page(self._reader.one(row.chunk_id), level=level)
        except ManifestFault as fault:
            raise Damaged("storage_chunk_damaged", chunk=row.chunk_id.hex(), pack="-") from fault
        if sum(one.size for one in rows) != row.size:
            raise Damaged("storage_chunk_damaged", chunk=row.chunk_id.hex(), pack="-")
        return rows

    def _wants(self, row: FileRow, start: int, end: int, file: int = 0) -> Iterator[tuple[Want, int]]:
        """Chunks that touch a stretch, with where each begins in the file."""
        if row.levels == 0:
            yield Want(row.root, row.size), 0
            return
        root = self._root(row)
        yield from self._wants_below(root.rows, root.levels, 0, start, end, file)

    def _wants_below(
        self, rows: list[manifest.Row], level: int, at: int, start: int, end: int, file: int = 0
    ) -> Iterator[tuple[Want, int]]:
        for row in rows:
            if at < end and at + row.size > start:
                if level == LEAF:
                    yield Want(row.chunk_id, row.size, file), at
                else:
                    yield from self._wants_below(self._page(row, level - 1), level - 1, at, start, end, file)
            at += row.size

    def stretch(self, row: FileRow, start: int, length: int) -> Iterator[bytes | memoryview]:
        """The bytes of a stretch, chunk by chunk."""
        if length == 0:
            return
        at = -1

        def wants() -> Iterator[Want]:
            nonlocal at
            for want, place in self._wants(row, start, start + length):
                at = place if at < 0 else at
                yield want

        for data in self._reader.many(wants()):
            low, high = max(start - at, 0), min(start + length - at, len(data))
            yield data[low:high]
            at += len(data)

    def _lasts(self, row: FileRow, standing: Standing) -> bool:
        batch: list[bytes] = []
        try:
            for chunk_id, _ in self.pages_of(row):
                batch.append(chunk_id)
                if len(batch) == _BATCH:
                    if not self._all_last(batch, standing):
                        return False
                    batch = []
        except Damaged:
            return False
        return self._all_last(batch, standing)

    def _all_last(self, ids: list[bytes], standing: Standing) -> bool:
        places = self._index.chunks(ids, any_owner=True)
        return len(places) == len(set(ids)) and all(
            standing(place.frame) and not place.fading for place in places.values()
        )


class ChunkStream:
    """A verified stretch of a file (`store.Reader`). Its first bytes were checked when it was opened."""

    def __init__(self, pieces: Iterator[bytes | memoryview], size: int, length: int) -> None:
        self._pieces = pieces
        self._rest = memoryview(next(pieces, b""))
        self.size = size
        self.length = length

    def read(self, size: int = -1, /) -> bytes:
        parts: list[bytes | memoryview] = []
        left = size if size >= 0 else self.length
        while left and (part := self._take(left)):
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def __iter__(self) -> Iterator[bytes]:
        with self:
            while piece := self.read(PIECE):
                yield piece

    def close(self) -> None:
        self._pieces = iter(())
        self._rest = memoryview(b"")

    def __enter__(self) -> "ChunkStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, most: int) -> memoryview:
        if not self._rest:
            self._rest = memoryview(next(self._pieces, b""))
        part, self._rest = self._rest[:most], self._rest[most:]
        return part


WriteOld = Callable[[FileDigest, int], None]  # write a file of an older store into an open file


class TreeStream:
    """All files of a tree as one stream of chunks, so that frames shared by neighbours are opened once and read ahead."""

    def __init__(self, contents: Contents, reader: ChunkReader, entries: list[Entry], write_old: WriteOld) -> None:
        self._contents, self._reader, self._write_old = contents, reader, write_old
        self._entries = [entry for entry in entries if entry.kind == "f"]
        self._rows = contents.rows([FileDigest(entry.digest) for entry in self._entries])
        self._stream = reader.many(self._wants())

    def write(self, entry: Entry, fd: int) -> None:
        """Write the next file; files are asked for in the order of the tree."""
        digest = FileDigest(entry.digest)
        row = self._rows.get(digest)
        if row is None:
            self._write_old(digest, fd)
            return
        if row.size != entry.size:
            raise Damaged("storage_record_damaged", what="listing", name=show(entry.path))
        if row.levels == 0:
            write_all(fd, next(self._stream))  # its id is that of the whole file
            return
        if _copy(self._stream, row.size, fd) == digest:
            return
        os.lseek(fd, 0, os.SEEK_SET)  # a row of the index led astray: once more, each chunk by its id
        os.ftruncate(fd, 0)
        actual = _copy(self._reader.many(self._contents.chunks_of(row)), row.size, fd)
        if actual != digest:
            raise Damaged("storage_digest_mismatch", actual=actual, expected=digest)

    def _wants(self) -> Iterator[Want]:
        for number, entry in enumerate(self._entries, 1):
            if row := self._rows.get(FileDigest(entry.digest)):
                yield from self._contents.chunks_of(row, file=number)


def _copy(pieces: Iterator[bytes | memoryview], size: int, fd: int) -> str:
    """Write so many bytes of a stream into an open file; return their digest."""
    hasher, left = blake3(), size
    while left > 0:
        data = next(pieces)
        hasher.update(data)
        write_all(fd, data)
        left -= len(data)
    return hasher.hexdigest()


class Joined:
    """Bytes that were read already, then the rest of a stream."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head, self._stream = memoryview(head), stream

    def readinto(self, buffer: memoryview, /) -> int:
        if self._head:
            count = min(len(self._head), len(buffer))
            buffer[:count], self._head = self._head[:count], self._head[count:]
            return count
        data = self._stream.read(min(len(buffer), PIECE))
        buffer[: len(data)] = data
        return len(data)
