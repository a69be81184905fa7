"""Trees from the store by proxy: verified file by file, in place by one rename, and resumed after any break.

    .<target>.<digest>.pull/   what has come so far; a kill leaves it, and the next pull of the same tree goes on from there

What lies there is read through before it is trusted: a file that is whole is not asked for again, one that broke off is asked
for from where it broke off.
"""

# ruff: noqa: PTH103, PTH106, PTH108, PTH114, PTH118, PTH120, PTH211, PTH101 - paths are bytes, as the file system gives them

import fcntl
import os
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from errno import EEXIST, ENOTDIR, ENOTEMPTY
from pathlib import Path

from blake3 import blake3

from trackbed.base.errors import Conflict, Damaged, NotFound, TrackbedError, Unavailable
from trackbed.client.connection import Connection, part
from trackbed.formats.tree import Entry, decode_listing, show, tree_digest
from trackbed.storage.files import disk, remove_tree, write_all
from trackbed.storage.store import Progress
from trackbed.storage.transfer import Pace

_CHUNK = 1 << 20
_TRIES, _PAUSE_S = 4, 0.5


def pull(
    connection: Connection,
    digest: str,
    target: Path,
    *,
    check: Callable[[list[Entry]], None] | None = None,
    paths: Sequence[str] = (),
    bytes_per_s: float | None = None,
    on_progress: Progress | None = None,
) -> list[Entry]:
    """Write a tree, or of it only what lies at or below `paths`, into `target`: exact bytes, modes, links; all or nothing.

    `target` must not exist or be empty. Returns what was written.

    Raises:
        Damaged: `tree_damaged`, `file_damaged`: what came is not what was asked for.
        Conflict: `storage_target_taken`. NotFound: `tree_path_unknown`, nothing lies at one of the paths.
    """
    listing = connection.send("GET", f"/api/v1/trees/{part(digest)}/listing").content
    if tree_digest(listing) != digest:
        raise Damaged("tree_damaged", digest=digest)
    entries = chosen(decode_listing(listing), paths, digest)
    if check is not None:
        check(entries)
    _Pull(connection, digest, target, Pace(bytes_per_s), on_progress).run(entries)
    return entries


def chosen(entries: list[Entry], paths: Sequence[str], digest: str = "") -> list[Entry]:
    """The entries at or below some paths; all without any."""
    if not paths:
        return entries
    wanted = [os.fsencode(path.strip("/")) for path in paths]
    for path in wanted:
        if not any(_below(entry.path, path) for entry in entries):
            raise NotFound("tree_path_unknown", path=show(path), digest=digest)
    return [entry for entry in entries if any(_below(entry.path, path) for path in wanted)]


def _below(path: bytes, folder: bytes) -> bool:
    return path == folder or path.startswith(folder + b"/")


class _Pull:
    def __init__(
        self, connection: Connection, digest: str, target: Path, pace: Pace, on_progress: Progress | None
    ) -> None:
        self._connection, self._digest, self._target = connection, digest, target
        self._pace, self._on_progress = pace, on_progress
        self._aside = target.parent / f".{target.name[:100]}.{digest[3:19]}.pull"
        self._done = self._total = 0

    def run(self, entries: list[Entry]) -> None:
        target = self._target
        if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
            raise Conflict("storage_target_taken", target=str(target))
        self._total = sum(entry.size for entry in entries)
        with disk(target):
            self._aside.mkdir(mode=0o755, parents=True, exist_ok=True)
        with _alone(self._aside):
            try:
                self._write(entries, os.fsencode(self._aside))
                self._place()
            except TrackbedError as fault:
                if not isinstance(fault, Unavailable):
                    remove_tree(self._aside)
                raise

    def _place(self) -> None:
        try:
            self._aside.rename(self._target)
        except OSError as fault:
            if fault.errno not in (EEXIST, ENOTEMPTY, ENOTDIR):
                raise
            raise Conflict("storage_target_taken", target=str(self._target)) from fault

    def _write(self, entries: list[Entry], root: bytes) -> None:
        folders = {root}
        names: set[bytes] = set()
        for entry in entries:
            place = os.path.join(root, entry.path)
            folder = place if entry.kind == "d" else os.path.dirname(place)
            while folder not in folders:
                folders.add(folder)
                folder = os.path.dirname(folder)
            names.add(place)
        self._clear(root, names | folders)
        for folder in sorted(folders):
            os.makedirs(folder, exist_ok=True)
        for entry in entries:
            place = os.path.join(root, entry.path)
            if entry.kind == "f":
                self._file(entry, place)
            elif entry.kind == "l" and not os.path.islink(place):
                os.symlink(entry.target, place)
        for folder in folders:
            os.chmod(folder, 0o755)  # noqa: S103 - as every checkout

    def _clear(self, root: bytes, wanted: set[bytes]) -> None:
        """Take away what another pull of the tree (of other paths) left here."""
        for folder, below, files in os.walk(root, topdown=False):
            for name in [*files, *below]:
                place = os.path.join(folder, name)
                if place not in wanted and (name in files or os.path.islink(place)):
                    os.unlink(place)
            if folder not in wanted:
                os.rmdir(folder)

    def _file(self, entry: Entry, place: bytes) -> None:
        with disk(self._target):
            fd = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            for attempt in range(_TRIES):
                try:
                    self._fetch(entry, fd)
                    break
                except Unavailable:
                    if attempt == _TRIES - 1:
                        raise
                    time.sleep(_PAUSE_S * 2**attempt)
            os.fchmod(fd, 0o755 if entry.executable else 0o644)
        finally:
            os.close(fd)

    def _fetch(self, entry: Entry, fd: int) -> None:
        """Bring an open file to its whole content, from as much of it as is there."""
        before, hasher = self._done, blake3()
        os.lseek(fd, 0, os.SEEK_SET)
        have = 0
        while have < entry.size and (piece := os.read(fd, min(_CHUNK, entry.size - have))):
            hasher.update(piece)
            have += len(piece)
        if have == entry.size and hasher.hexdigest() != entry.digest:
            have, hasher = 0, blake3()
        os.ftruncate(fd, have)
        os.lseek(fd, have, os.SEEK_SET)
        self._done = before
        self._tell(have)
        if have < entry.size:
            self._rest(entry, fd, have, hasher)
        if hasher.hexdigest() != entry.digest:
            if have:  # what was left of an earlier pull is spoilt: once more, all of it
                self._done = before
                os.ftruncate(fd, 0)
                self._fetch(entry, fd)
                return
            raise Damaged("file_damaged", path=show(entry.path), digest=entry.digest)

    def _rest(self, entry: Entry, fd: int, have: int, hasher: blake3) -> None:
        headers = {"Range": f"bytes={have}-"} if have else {}
        place = f"/api/v1/trees/{part(self._digest)}/content"
        with self._connection.stream(place, query=_asked(entry.path), headers=headers) as answer:
            if have and answer.status_code != 206:  # somebody on the way knows no ranges
                os.ftruncate(fd, 0)
                os.lseek(fd, 0, os.SEEK_SET)
                hasher.reset()
                self._done -= have
            for chunk in answer.iter_bytes():
                self._pace.take(len(chunk))
                hasher.update(chunk)
                with disk(self._target):
                    write_all(fd, chunk)
                self._tell(len(chunk))

    def _tell(self, count: int) -> None:
        self._done += count
        if self._on_progress:
            self._on_progress(min(self._done, self._total), self._total)


@contextmanager
def _alone(aside: Path) -> Generator[None]:
    """One pull at a time fills a folder."""
    fd = os.open(aside, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as fault:
            raise Conflict("storage_target_taken", target=str(aside)) from fault
        yield
    finally:
        os.close(fd)


def _asked(path: bytes) -> dict[str, str]:
    """How a path is asked for: as text, or in hex where it is none."""
    try:
        return {"path": path.decode("utf-8")}
    except UnicodeDecodeError:
        return {"path_hex": path.hex()}
