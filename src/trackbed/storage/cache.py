"""Trees on a node, fetched once and shared by every attempt there: read-only, by digest.

After a restart of the machine a tree is read through once before it is trusted again: it was written without syncing.
"""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from trackbed.base.errors import BadInput
from trackbed.base.ids import Digest
from trackbed.formats.tree import is_digest, tree_digest
from trackbed.storage.files import disk, remove_tree
from trackbed.storage.scan import scan
from trackbed.storage.store import Progress, Store


class _Mark(msgspec.Struct):
    boot_id: str


class NodeCache:
    """`root/aa/<64 hex>/` holds a tree; a lock beside it lets one process fetch while the others wait."""

    def __init__(self, root: Path, store: Store) -> None:
        self._root = root.absolute()
        self._store = store

    def path_of(self, digest: Digest, *, on_progress: Progress | None = None) -> Path:
        """Return the folder of a tree, fetched if it is not here. Its files and folders are read-only: never write there.

        Raises:
            NotFound: the store has no such tree.
            Damaged, StorageFull: nothing was put in the cache.
        """
        place = self._place(digest)
        if self._trusted(place):
            return place
        with disk(place.parent):
            place.parent.mkdir(parents=True, exist_ok=True)
        with _lock(place.with_suffix(".lock")):
            if self._trusted(place):
                return place
            if place.exists() and not _whole(place, digest):
                remove_tree(place)
            if not place.exists():
                self._store.get_tree(digest, place, read_only=True, on_progress=on_progress)
            place.with_suffix(".json").write_bytes(msgspec.json.encode(_Mark(boot_id())))
        return place

    def file_of(self, digest: Digest, *, on_progress: Progress | None = None) -> Path:
        """Return the one file of a tree that holds one file: the form of a dataset of kind `file`."""
        folder = self.path_of(digest, on_progress=on_progress)
        inside = list(folder.iterdir())
        if len(inside) != 1 or not inside[0].is_file():
            raise BadInput("storage_single_file", digest=digest, files=len(inside))
        return inside[0]

    def has(self, digest: Digest) -> bool:
        """Tell whether a tree can be had without fetching."""
        return self._trusted(self._place(digest))

    def _place(self, digest: Digest) -> Path:
        if not is_digest(digest):
            raise BadInput("storage_digest_bad", digest=digest[:100])
        return self._root / digest[3:5] / digest[3:]

    def _trusted(self, place: Path) -> bool:
        try:
            mark = msgspec.json.decode(place.with_suffix(".json").read_bytes(), type=_Mark)
        except (FileNotFoundError, msgspec.DecodeError):
            return False
        return mark.boot_id == boot_id() and place.is_dir()


def boot_id() -> str:
    """What changes when the machine restarts."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _whole(place: Path, digest: Digest) -> bool:
    try:
        return tree_digest(scan(place).listing) == digest
    except BadInput:
        return False


@contextmanager
def _lock(path: Path) -> Generator[None]:
    with disk(path):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
