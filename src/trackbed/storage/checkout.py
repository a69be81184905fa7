"""Writing a tree to a folder: beside it first, then in place by one rename."""

# ruff: noqa: PTH101, PTH102, PTH118, PTH120, PTH211 - paths are bytes, as the file system gives them

import os
import secrets
from collections.abc import Callable
from errno import EEXIST, ENOTDIR, ENOTEMPTY
from pathlib import Path

from trackbed.base import faults
from trackbed.base.errors import Conflict
from trackbed.formats.tree import Entry
from trackbed.storage.files import disk, remove_tree
from trackbed.storage.store import Progress

WriteBlob = Callable[[Entry, int], None]  # write the verified bytes of a file entry into an open, empty file


def checkout(
    entries: list[Entry],
    target: Path,
    write_blob: WriteBlob,
    *,
    read_only: bool = False,
    on_progress: Progress | None = None,
) -> None:
    """Make `target` hold exactly these entries, or leave it as it was.

    Files are 0644 or 0755, with `read_only` 0444 or 0555 and folders 0555; the umask takes nothing away.

    Raises:
        Conflict: `storage_target_taken`.
        StorageFull: nothing was made.
    """
    if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        raise Conflict("storage_target_taken", target=str(target))
    aside = target.parent / f".{target.name[:100]}.{secrets.token_hex(6)}.tmp"
    try:
        with disk(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            aside.mkdir(mode=0o755)
            _write(entries, os.fsencode(aside), write_blob, read_only, on_progress)
            faults.point("checkout.written")
            _rename(aside, target)
            faults.point("checkout.renamed")
    finally:
        remove_tree(aside)


def _write(
    entries: list[Entry], root: bytes, write_blob: WriteBlob, read_only: bool, on_progress: Progress | None
) -> None:
    folders = {root}
    total = sum(entry.size for entry in entries)
    done = 0
    for entry in entries:
        place = os.path.join(root, entry.path)
        _make_folders(place if entry.kind == "d" else os.path.dirname(place), folders)
        if entry.kind == "f":
            mode = (0o555 if entry.executable else 0o444) if read_only else (0o755 if entry.executable else 0o644)
            fd = os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                write_blob(entry, fd)
                os.fchmod(fd, mode)
            finally:
                os.close(fd)
            done += entry.size
            if on_progress:
                on_progress(done, total)
    for entry in entries:
        if entry.kind == "l":
            os.symlink(entry.target, os.path.join(root, entry.path))
    for folder in sorted(folders, reverse=True):
        os.chmod(folder, 0o555 if read_only else 0o755)


def _rename(aside: Path, target: Path) -> None:
    try:
        aside.rename(target)
    except OSError as fault:
        if fault.errno not in (EEXIST, ENOTEMPTY, ENOTDIR):
            raise
        raise Conflict("storage_target_taken", target=str(target)) from fault


def _make_folders(folder: bytes, made: set[bytes]) -> None:
    if folder in made:
        return
    _make_folders(os.path.dirname(folder), made)
    os.mkdir(folder)
    made.add(folder)
