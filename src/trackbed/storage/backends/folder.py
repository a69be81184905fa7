"""Objects as files of a folder: written aside, synced, renamed, the folder synced. A failed sync is never tried again."""

import fcntl
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from trackbed.base import faults
from trackbed.base.errors import Conflict, NotFound, TrackbedError
from trackbed.formats.tree import file_digest
from trackbed.storage.backends.port import ObjectInfo, checked
from trackbed.storage.files import (
    PIECE,
    copy_fd,
    disk,
    new_aside,
    open_source,
    sweep,
    sync_folder,
    unchanged,
    write_all,
)

_ASIDE = ".aside"  # no object's name starts with a dot
_LOCK = ".lock"


class FolderBackend:
    """Adapter of `Backend` for one folder of one machine, or of a file system that keeps the promise of `flock`."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self._aside = self._root / _ASIDE
        with disk(self._root):
            if not self._aside.is_dir():
                _make(self._root, Path(self._root.anchor))
                _make(self._aside, self._root)
            sweep(self._aside)

    @property
    def url(self) -> str:
        return self._root.as_uri()

    @property
    def spool(self) -> Path | None:
        return self._aside

    def get(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        fd = self._open(name)
        if fd is None:
            raise NotFound("storage_object_missing", name=name, where=self.url)
        try:
            with disk(self._path(name)):
                wanted = max(os.fstat(fd).st_size - start, 0)
                return _read(fd, start, wanted if length is None else min(length, wanted))
        finally:
            os.close(fd)

    def read(self, name: str) -> tuple[bytes, str] | None:
        fd = self._open(name)
        if fd is None:
            return None
        try:
            with disk(self._path(name)):
                data = _read(fd, 0, os.fstat(fd).st_size)
        finally:
            os.close(fd)
        return data, file_digest(data)

    def stat(self, name: str) -> ObjectInfo | None:
        with disk(self._path(name)):
            try:
                info = self._path(name).stat()
            except FileNotFoundError:
                return None
        return ObjectInfo(name, info.st_size, info.st_mtime_ns // 1000)

    def put(self, name: str, source: bytes | Path) -> None:
        self._put(name, source)

    def put_if(self, name: str, data: bytes, *, version: str | None) -> bool:
        with self._lock():
            now = self.read(name)
            if (now[1] if now else None) != version:
                return False
            self._put(name, data)
            return True

    def delete(self, name: str) -> bool:
        path = self._path(name)
        with disk(path):
            try:
                path.unlink()
            except FileNotFoundError:
                return False
            faults.point("object.deleted")
            sync_folder(path.parent)
        return True

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        top = self._path(prefix.rstrip("/")) if prefix else self._root
        yield from self._walk(top, prefix)

    def _walk(self, folder: Path, prefix: str) -> Iterator[ObjectInfo]:
        with disk(folder):
            try:
                entries = sorted(os.scandir(folder), key=lambda one: one.name + ("/" if one.is_dir() else ""))
            except (FileNotFoundError, NotADirectoryError):
                return
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from self._walk(folder / entry.name, f"{prefix}{entry.name}/")
            else:
                try:
                    info = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # deleted meanwhile
                yield ObjectInfo(prefix + entry.name, info.st_size, info.st_mtime_ns // 1000)

    def _put(self, name: str, source: bytes | Path) -> None:
        target = self._path(name)
        with disk(target):
            _make(target.parent, self._root)
            if isinstance(source, Path) and source.parent == self._aside:
                fd, temporary = os.open(source, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC), source
            else:
                fd, temporary = new_aside(self._aside)
            try:
                try:
                    if temporary is not source:
                        _fill(fd, source)
                    faults.point("object.written")
                    os.fsync(fd)
                finally:
                    os.close(fd)
                faults.point("object.synced")
                temporary.rename(target)
                faults.point("object.renamed")
                sync_folder(target.parent)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
            faults.point("object.published")

    def _path(self, name: str) -> Path:
        return self._root / checked(name)

    def _open(self, name: str) -> int | None:
        path = self._path(name)
        try:
            with disk(path):
                return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except TrackbedError as fault:
            if isinstance(fault.__cause__, (FileNotFoundError, NotADirectoryError)):
                return None
            raise

    @contextmanager
    def _lock(self) -> Generator[None]:
        with disk(self._root):
            fd = os.open(self._root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)  # gives the lock back


def _fill(fd: int, source: bytes | Path) -> None:
    if isinstance(source, bytes):
        write_all(fd, source)
        return
    given = open_source(source)
    try:
        with unchanged(given, source):
            copy_fd(given, fd)
        if os.fstat(fd).st_size != os.fstat(given).st_size:
            raise Conflict("storage_file_changed", path=str(source))
    finally:
        os.close(given)


def _read(fd: int, start: int, length: int) -> bytes:
    pieces: list[bytes] = []
    while length and (piece := os.pread(fd, min(length, 64 * PIECE), start)):
        pieces.append(piece)
        start += len(piece)
        length -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _make(folder: Path, stop: Path) -> None:
    """Make a folder and what is missing above it, each name durable before something is put inside."""
    if folder == stop or folder.is_dir():
        return
    _make(folder.parent, stop)
    folder.mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder.parent)
