"""A store in a local folder: whole-file blobs, "format 0". Page: docs/formats/store-0.md.

    FORMAT   blobs/aa/<64 hex>   trees/aa/<64 hex>   refs/   tmp/   quarantine/

Everything is written to tmp/, synced, renamed into place, and the folder synced. Reads are verified; bytes that do not match
are moved to quarantine/, never deleted and never given out.
"""

import io
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from blake3 import blake3

from trackbed.base import faults
from trackbed.base.errors import BadInput, Conflict, Damaged, NotFound, TrackbedError
from trackbed.base.ids import Digest, FileDigest
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
from trackbed.storage.checkout import checkout
from trackbed.storage.files import (
    PIECE,
    copy_fd,
    disk,
    hash_fd,
    open_source,
    read_all,
    sweep,
    sync_files,
    sync_folder,
    sync_folders,
    unchanged,
    write_all,
    write_durably,
)
from trackbed.storage.refs import LocalRefs
from trackbed.storage.scan import entries_of, find, tree_info
from trackbed.storage.store import Progress, TreeInfo

FORMAT = b"trackbed store 0\n"
_FOLDERS = ("blobs", "trees", "refs", "tmp", "quarantine")
_SMALL = PIECE  # up to here a blob is read and verified in memory
_GROUP_FILES, _GROUP_BYTES = 256, 64 * PIECE  # written aside before they are synced together


class LocalStore:
    """Adapter of `Store` for one folder. Many threads and processes may use it at once."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self._tmp = self._root / "tmp"
        with disk(self._root):
            _prepare(self._root)
        self._refs = LocalRefs(self._root / "refs", self._tmp)
        self._verified: dict[str, tuple[int, int, int, int]] = {}

    @property
    def root(self) -> Path:
        return self._root

    @property
    def refs(self) -> LocalRefs:
        return self._refs

    def missing(self, digests: Iterable[FileDigest]) -> list[FileDigest]:
        return [digest for digest in dict.fromkeys(digests) if not self._blob(digest).exists()]

    def put_blob(self, source: BinaryIO | bytes | Path, *, expect: FileDigest | None = None) -> tuple[FileDigest, int]:
        if expect is not None and (size := self._size_of(expect)) is not None:
            sync_folder(self._blob(expect).parent)
            return expect, size
        with _Group(self) as group:
            if isinstance(source, bytes):
                digest, size = group.add_bytes(source, expect), len(source)
            elif isinstance(source, Path):
                digest, size = group.add_file(source, expect)
            else:
                digest, size = group.add_stream(source, expect)
        return digest, size

    def put_blobs(self, items: Iterable[tuple[FileDigest, bytes]]) -> int:
        batch = list(items)
        for expected, data in batch:
            _match(expected, file_digest(data))
        with _Group(self) as group:
            for _, data in batch:
                group.add_bytes(data)
        return group.new

    def open_range(self, digest: FileDigest, start: int = 0, length: int | None = None) -> "BlobReader":
        fd = self._open(digest)
        size = os.fstat(fd).st_size
        if start < 0 or start > size or (length is not None and length < 0):
            os.close(fd)
            raise BadInput("storage_range_bad", start=start, end=start + (length or 0), size=size)
        stretch = size - start if length is None else min(length, size - start)
        try:
            data = self._verify(digest, fd)
        except BaseException:
            os.close(fd)
            raise
        if data is not None:
            os.close(fd)
            return BlobReader(io.BytesIO(data[start : start + stretch]), size, stretch)
        stream = os.fdopen(fd, "rb", buffering=0)
        stream.seek(start)
        return BlobReader(stream, size, stretch)

    def put_tree(self, root: Path, *, on_progress: Progress | None = None, owner: str = "") -> TreeInfo:
        found = find(root)
        total = sum(one.size for one in found if one.is_file)
        done = 0
        with _Group(self) as group:

            def count(size: int) -> None:
                nonlocal done
                done += size
                if on_progress:
                    on_progress(done, max(total, done))

            entries = entries_of(found, lambda one: group.add_file(one.place, on_bytes=count))
        listing = encode_listing(entries)
        self.put_listing(listing)
        return tree_info(listing, entries)

    def put_listing(self, listing: bytes) -> Digest:
        entries = [entry for entry in decode_listing(listing) if entry.kind == "f"]
        digest = tree_digest(listing)
        absent: list[str] = []
        for entry in entries:
            size = self._size_of(FileDigest(entry.digest))
            if size is None:
                absent.append(entry.digest)
            elif size != entry.size:
                raise BadInput("tree_format", at=0, why=f"{show(entry.path)} has {size} bytes, not {entry.size}")
        if absent:
            raise NotFound("storage_blobs_missing", count=len(absent), digest=absent[0])
        target = self._tree(digest)
        with disk(self._root):
            # a blob found here may be another writer's, renamed but not yet durable
            sync_folders({self._blob(FileDigest(entry.digest)).parent for entry in entries})
            if target.exists():
                sync_folder(target.parent)
            else:
                write_durably(target, listing, aside=self._tmp, mode=0o444, step="listing")
        return digest

    def has_tree(self, digest: Digest) -> bool:
        return self._tree(digest).exists()

    def listing(self, digest: Digest) -> bytes:
        path = self._tree(digest)
        try:
            with disk(path):
                data = path.read_bytes()
        except TrackbedError as fault:
            if isinstance(fault.__cause__, FileNotFoundError):
                raise NotFound("storage_tree_missing", digest=digest) from fault
            raise
        if tree_digest(data) != digest:
            raise Damaged("storage_tree_damaged", digest=digest, quarantine=self._quarantine(path))
        return data

    def read_listing(self, digest: Digest) -> list[Entry]:
        return decode_listing(self.listing(digest))

    def get_tree(
        self, digest: Digest, target: Path, *, read_only: bool = False, on_progress: Progress | None = None
    ) -> None:
        checkout(self.read_listing(digest), target, self._write_out, read_only=read_only, on_progress=on_progress)

    def _write_out(self, entry: Entry, target: int) -> None:
        """Copy a blob into an open file and verify the copy."""
        digest = FileDigest(entry.digest)
        source = self._open(digest)
        try:
            if entry.size <= _SMALL:
                data = self._verify(digest, source)
                write_all(target, data if data is not None else read_all(source, entry.size))
                return
            copy_fd(source, target)
            if hash_fd(target)[0] != digest:
                self._verified.pop(digest, None)
                self._verify(digest, source)
                raise Damaged("storage_digest_mismatch", actual=hash_fd(target)[0], expected=digest)
        finally:
            os.close(source)

    def _open(self, digest: FileDigest) -> int:
        try:
            return os.open(self._blob(digest), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError as fault:
            raise NotFound("storage_blob_missing", digest=digest) from fault

    def _verify(self, digest: FileDigest, fd: int) -> bytes | None:
        """Check a blob; return the bytes of a small one. A large one is checked once while its file does not change."""
        info = os.fstat(fd)
        data = None
        with disk(self._blob(digest)):
            if info.st_size <= _SMALL:
                data = read_all(fd, info.st_size)
                right = file_digest(data) == digest
            else:
                state = (info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
                right = self._verified.get(digest) == state or hash_fd(fd)[0] == digest
                if right:
                    self._verified[digest] = state
        if not right:
            where = self._quarantine(self._blob(digest), inode=info.st_ino)
            raise Damaged("storage_blob_damaged", digest=digest, quarantine=where)
        return data

    def _quarantine(self, path: Path, *, inode: int | None = None) -> str:
        target = self._root / "quarantine" / f"{path.parent.parent.name}-{path.name}-{secrets.token_hex(4)}"
        try:
            if inode is None or path.stat().st_ino == inode:  # else somebody put a sound copy there meanwhile
                path.rename(target)
                sync_folder(path.parent)
                sync_folder(target.parent)
        except FileNotFoundError:
            pass  # another reader was faster
        return f"quarantine/{target.name}"

    def _blob(self, digest: FileDigest) -> Path:
        if not is_file_digest(digest):
            raise BadInput("storage_digest_bad", digest=digest[:100])
        return self._root / "blobs" / digest[:2] / digest

    def _tree(self, digest: Digest) -> Path:
        if not is_digest(digest):
            raise BadInput("storage_digest_bad", digest=digest[:100])
        return self._root / "trees" / digest[3:5] / digest[3:]

    def _size_of(self, digest: FileDigest) -> int | None:
        try:
            return self._blob(digest).stat().st_size
        except FileNotFoundError:
            return None


class BlobReader:
    """A verified stretch of a blob (`store.Reader`)."""

    def __init__(self, stream: io.RawIOBase | io.BytesIO, size: int, length: int) -> None:
        self._stream = stream
        self._left = length
        self.size = size
        self.length = length

    def read(self, size: int = -1, /) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        pieces: list[bytes] = []
        while wanted and (piece := self._stream.read(wanted)):
            pieces.append(piece)
            wanted -= len(piece)
            self._left -= len(piece)
        return b"".join(pieces)

    def __iter__(self) -> Iterator[bytes]:
        with self:
            while piece := self.read(PIECE):
                yield piece

    def close(self) -> None:
        self._stream.close()

    def __enter__(self) -> "BlobReader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Group:
    """Blobs written aside, synced together, then renamed. Whatever is not published at an error is removed."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self._root = store.root
        self._staged: dict[FileDigest, tuple[int, Path]] = {}
        self._touched: set[Path] = set()  # folders of blobs that were here: theirs to sync too
        self._bytes = 0
        self.new = 0

    def __enter__(self) -> "_Group":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._publish()
                with disk(self._root):
                    sync_folders(self._touched)
        finally:
            self._drop()

    def add_bytes(self, data: bytes, expect: FileDigest | None = None) -> FileDigest:
        digest = file_digest(data)
        _match(expect, digest)
        if not self._here(digest, len(data)):
            self._make_room()
            with disk(self._root):
                fd, path = self._aside()
                self._stage(digest, fd, path, len(data))
                write_all(fd, data)
        return digest

    def add_file(
        self,
        path: bytes | Path,
        expect: FileDigest | None = None,
        *,
        on_bytes: Callable[[int], None] | None = None,
    ) -> tuple[FileDigest, int]:
        source = open_source(path)
        try:
            size = os.fstat(source).st_size
            if size <= _SMALL:
                with unchanged(source, path):
                    data = read_all(source, size)
                if on_bytes:
                    on_bytes(len(data))
                return self.add_bytes(data, expect), len(data)
            with unchanged(source, path):
                digest, size = hash_fd(source, on_bytes=on_bytes)
            _match(expect, digest)
            if not self._here(digest, size):
                self._copy(source, digest, size, path)
            return digest, size
        finally:
            os.close(source)

    def add_stream(self, source: BinaryIO, expect: FileDigest | None) -> tuple[FileDigest, int]:
        with disk(self._root):
            fd, path = self._aside()
        hasher, size = blake3(), 0
        try:
            while piece := source.read(PIECE):
                hasher.update(piece)
                with disk(self._root):
                    write_all(fd, piece)
                size += len(piece)
            digest = FileDigest(hasher.hexdigest())
            _match(expect, digest)
            if self._here(digest, size):
                _discard(fd, path)
            else:
                self._stage(digest, fd, path, size)
        except BaseException:
            if (fd, path) not in self._staged.values():
                _discard(fd, path)
            raise
        return digest, size

    def _copy(self, source: int, digest: FileDigest, size: int, shown: bytes | Path) -> None:
        self._make_room()
        with disk(self._root):
            fd, path = self._aside()
            self._stage(digest, fd, path, size)
            copy_fd(source, fd)
            if hash_fd(fd)[0] != digest:
                raise Conflict("storage_file_changed", path=show(os.fsencode(shown)))

    def _here(self, digest: FileDigest, size: int) -> bool:
        if digest in self._staged:
            return True
        blob = self._store._blob(digest)
        try:
            info = blob.stat()
        except FileNotFoundError:
            return False
        if info.st_size != size:
            self._store._quarantine(blob, inode=info.st_ino)
            return False
        self._touched.add(blob.parent)
        return True

    def _make_room(self) -> None:
        if len(self._staged) >= _GROUP_FILES or self._bytes >= _GROUP_BYTES:
            self._publish()

    def _aside(self) -> tuple[int, Path]:
        path = self._root / "tmp" / f"{secrets.token_hex(8)}.part"
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444), path

    def _stage(self, digest: FileDigest, fd: int, path: Path, size: int) -> None:
        self._staged[digest] = (fd, path)
        self._bytes += size

    def _publish(self) -> None:
        with disk(self._root):
            faults.point("blob.written")
            sync_files(fd for fd, _ in self._staged.values())
            faults.point("blob.synced")
            for digest, (_, path) in self._staged.items():
                blob = self._store._blob(digest)
                path.rename(blob)
                self._touched.add(blob.parent)
                faults.point("blob.renamed")
        self.new += len(self._staged)
        self._drop()

    def _drop(self) -> None:
        for fd, path in self._staged.values():
            _discard(fd, path)
        self._staged.clear()
        self._bytes = 0


def _discard(fd: int, path: Path) -> None:
    os.close(fd)
    path.unlink(missing_ok=True)


def _match(expected: FileDigest | None, actual: FileDigest) -> None:
    if expected is not None and expected != actual:
        raise BadInput("storage_digest_mismatch", expected=expected, actual=actual)


def _prepare(root: Path) -> None:
    """Make an empty folder a store, or check that it is one; sweep what a killed writer left aside."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    mark = root / "FORMAT"
    if mark.exists():
        found = mark.read_bytes()
        if found != FORMAT:
            raise BadInput("storage_format_unknown", where=str(root), found=show(found[:40].strip()))
        sweep(root / "tmp")
        return
    if any(path.name not in _FOLDERS for path in root.iterdir()):
        raise BadInput("storage_not_a_store", where=str(root))
    for name in _FOLDERS:
        (root / name).mkdir(exist_ok=True)
    for name in ("blobs", "trees"):
        for number in range(256):
            (root / name / f"{number:02x}").mkdir(exist_ok=True)
        sync_folder(root / name)
    write_durably(mark, FORMAT, aside=root / "tmp", mode=0o444, step="store")
