"""Durable files: write aside, sync, rename, sync the folder. And what a disk can answer, as our errors."""

import fcntl
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from errno import EDQUOT, EFBIG, ENOSPC
from pathlib import Path
from typing import TypeVar

from blake3 import blake3

from trackbed.base import faults
from trackbed.base.errors import BadInput, Conflict, Internal, StorageFull
from trackbed.base.ids import FileDigest
from trackbed.formats.tree import show

_T = TypeVar("_T")
PIECE = 1024 * 1024
_FULL = (ENOSPC, EDQUOT, EFBIG)
_FICLONE = 0x40049409
_STALE_S = 24 * 3600.0  # a part that nobody renamed for so long has no writer any more
_SYNC_THREADS = 16  # concurrent fsyncs share one commit of the file system's journal


@contextmanager
def disk(where: Path) -> Generator[None]:
    """Turn what the disk refuses inside the block into StorageFull or Internal."""
    try:
        yield
    except OSError as fault:
        if fault.errno in _FULL:
            raise StorageFull("storage_full", where=str(where)) from fault
        raise Internal("storage_io", where=str(where), why=fault.strerror or str(fault)) from fault


def sync_folder(folder: Path) -> None:
    """Make names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_folders(folders: Iterable[Path]) -> None:
    _each(sync_folder, list(folders))


def sync_files(fds: Iterable[int]) -> None:
    """Make the bytes of open files durable, as a group."""
    _each(os.fsync, list(fds))


def _each(fn: Callable[[_T], None], items: list[_T]) -> None:
    if len(items) < 4:
        for item in items:
            fn(item)
        return
    with ThreadPoolExecutor(min(_SYNC_THREADS, len(items))) as pool:
        list(pool.map(fn, items))


def write_durably(target: Path, data: bytes, *, aside: Path, mode: int = 0o644, step: str = "file") -> None:
    """Put `data` at `target`, whole or not at all. `aside` is a folder of the same file system."""
    temporary = aside / f"{secrets.token_hex(8)}.part"
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            write_all(fd, data)
            faults.point(f"{step}.written")
            os.fsync(fd)
        finally:
            os.close(fd)
        faults.point(f"{step}.synced")
        temporary.rename(target)
        faults.point(f"{step}.renamed")
        sync_folder(target.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    faults.point(f"{step}.published")


def write_all(fd: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def open_source(path: bytes | Path) -> int:
    """Open a regular file to read, never following a link at its end and never blocking on a pipe.

    Raises:
        BadInput: `storage_path_missing`, `storage_file_unreadable`, `storage_special_file`.
    """
    shown = show(os.fsencode(path))
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as fault:
        raise BadInput("storage_path_missing", path=shown) from fault
    except OSError as fault:
        raise BadInput("storage_file_unreadable", path=shown, why=fault.strerror or str(fault)) from fault
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise BadInput("storage_special_file", path=shown, what="special file")
    return fd


def state_of(fd: int) -> tuple[int, int, int, int]:
    """What changes when somebody writes to a file: inode, size, both times."""
    info = os.fstat(fd)
    return info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


@contextmanager
def unchanged(fd: int, path: bytes | Path) -> Generator[None]:
    """Raise Conflict (`storage_file_changed`) if the open file changes during the block."""
    before = state_of(fd)
    yield
    if state_of(fd) != before:
        raise Conflict("storage_file_changed", path=show(os.fsencode(path)))


def read_all(fd: int, size: int) -> bytes:
    """Read an open file from its start to its end, wherever that is by now."""
    pieces: list[bytes] = []
    at = 0
    while piece := os.pread(fd, max(size - at, 0) + 1, at):
        pieces.append(piece)
        at += len(piece)
    return b"".join(pieces)


def hash_fd(fd: int, *, on_bytes: Callable[[int], None] | None = None) -> tuple[FileDigest, int]:
    """Digest and size of an open file, read from its start; its position does not move."""
    size = os.fstat(fd).st_size
    hasher = blake3(max_threads=blake3.AUTO) if size > 16 * PIECE else blake3()
    buffer = bytearray(min(max(size, 1), 8 * PIECE))
    view = memoryview(buffer)
    at = 0
    while count := os.preadv(fd, [buffer], at):
        hasher.update(view[:count])
        at += count
        if on_bytes:
            on_bytes(count)
    return FileDigest(hasher.hexdigest()), at


def hash_file(path: bytes | Path, *, on_bytes: Callable[[int], None] | None = None) -> tuple[FileDigest, int]:
    """Digest and size of a file that nobody writes to meanwhile (`storage_file_changed` otherwise)."""
    fd = open_source(path)
    try:
        with unchanged(fd, path):
            return hash_fd(fd, on_bytes=on_bytes)
    finally:
        os.close(fd)


def copy_fd(source: int, target: int) -> None:
    """Copy all bytes between open files: shared blocks where the file system can, else in the kernel, else here."""
    try:
        fcntl.ioctl(target, _FICLONE, source)
        return
    except OSError:
        pass  # no shared blocks here
    at = 0
    try:
        while count := os.copy_file_range(source, target, 64 * PIECE, at, at):
            at += count
        return
    except OSError as fault:
        if fault.errno in _FULL:
            raise
    while piece := os.pread(source, PIECE, at):  # file systems that refuse to copy in the kernel
        view = memoryview(piece)
        while view:
            done = os.pwrite(target, view, at)
            view, at = view[done:], at + done


def remove_tree(path: Path) -> None:
    """Remove a folder with everything in it, read-only folders too. Nothing there is no fault."""
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    for folder, _, _ in os.walk(path):
        Path(folder).chmod(0o700)
    shutil.rmtree(path)


def new_aside(folder: Path, mode: int = 0o444) -> tuple[int, Path]:
    """Open a new file to write, under a name that only its writer knows."""
    path = folder / f"{secrets.token_hex(8)}.part"
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), path


def sweep(folder: Path) -> None:
    """Remove what killed writers left aside more than a day ago."""
    for path in folder.iterdir():
        try:
            if time.time() - path.stat().st_mtime > _STALE_S:
                path.unlink()
        except FileNotFoundError:
            continue  # its writer has renamed it
