"""Trees on a node, fetched once and shared by every attempt there: read-only, by digest.

    aa/<64 hex>/       the tree            aa/<64 hex>.json   since which start of the machine, how large; its time = last use
    aa/<64 hex>.lock   one process fetches or removes at a time; who uses the tree holds it shared
    LIMIT              most bytes, in digits; without it only a full disk makes room
    COUNTS             hits and misses of all processes

Who asks for a tree holds it for the life of its `NodeCache`; what nobody holds goes first, the longest unused before the others.
After a restart of the machine a tree is read through once before it is trusted again: it was written without syncing.
"""

import fcntl
import os
import secrets
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import msgspec

from trackbed.base.errors import BadInput, StorageFull
from trackbed.base.ids import Digest
from trackbed.formats.tree import Entry, is_digest, tree_digest
from trackbed.storage.files import disk, remove_tree
from trackbed.storage.scan import scan
from trackbed.storage.store import Progress

_KEEP_FREE_BYTES = 256 * 1024 * 1024  # of the disk, for those who write to it


class _Mark(msgspec.Struct):
    boot_id: str
    size_bytes: int = 0


class CacheCounts(msgspec.Struct):
    """What the cache of a node has done since it was made."""

    hits: int = 0
    misses: int = 0
    hit_bytes: int = 0
    fetched_bytes: int = 0
    evicted: int = 0
    evicted_bytes: int = 0

    @property
    def hit_rate(self) -> float:
        asked = self.hits + self.misses
        return self.hits / asked if asked else 0.0


class Trees(Protocol):
    """What a cache asks of a store; see there."""

    def read_listing(self, digest: Digest) -> list[Entry]: ...
    def get_tree(
        self, digest: Digest, target: Path, *, read_only: bool = False, on_progress: Progress | None = None
    ) -> None: ...


class NodeCache:
    """Many processes of one node share a folder. Close it, or end, to let go of its trees."""

    def __init__(self, root: Path, store: Trees, *, limit_bytes: int | None = None) -> None:
        self._root = root.absolute()
        self._store = store
        self._limit = limit_bytes if limit_bytes is not None else _limit(self._root)
        self._held: dict[Path, int] = {}
        self._guard = threading.Lock()

    def path_of(self, digest: Digest, *, on_progress: Progress | None = None) -> Path:
        """Return the folder of a tree, fetched if it is not here. Its files and folders are read-only: never write there.

        Raises:
            NotFound: the store has no such tree.
            Damaged, StorageFull: nothing was put in the cache.
        """
        place = self._place(digest)
        with disk(place.parent):
            place.parent.mkdir(parents=True, exist_ok=True)
        self._hold(place)
        if self._trusted(place):
            self._used(place, hit=True)
            return place
        self._let_go(place)
        with _lock(place.with_suffix(".fill")):  # not the one that users hold: a spoilt copy is replaced under them
            if not self._trusted(place):
                self._fill(digest, place, on_progress)
            else:
                self._used(place, hit=True)
        self._hold(place)
        return place if self._trusted(place) else self.path_of(digest, on_progress=on_progress)

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

    def size_of(self, digest: Digest) -> int:
        """Bytes of a tree that is here; 0 where nobody knows."""
        try:
            data = self._place(digest).with_suffix(".json").read_bytes()
            return msgspec.json.decode(data, type=_Mark).size_bytes
        except (OSError, msgspec.DecodeError):
            return 0

    def counts(self) -> CacheCounts:
        return _counts(self._root)

    def size_bytes(self) -> int:
        """Of all trees that are here."""
        return sum(size for _, size, _ in self._trees())

    def evict(self, wanted_bytes: int) -> int:
        """Remove trees that nobody holds, the longest unused first, until so many bytes are gone; return how many are."""
        gone = 0
        for _, size, place in sorted(self._trees()):
            if gone >= wanted_bytes:
                break
            if self._remove(place):
                gone += size
                self._count(evicted=1, evicted_bytes=size)
        return gone

    def close(self) -> None:
        """Let go of every tree."""
        with self._guard:
            for fd in self._held.values():
                os.close(fd)
            self._held.clear()

    def _fill(self, digest: Digest, place: Path, on_progress: Progress | None) -> None:
        size = sum(entry.size for entry in self._store.read_listing(digest))
        if not (place.exists() and _whole(place, digest)):
            fresh = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
            self._make_room(size)
            try:
                self._store.get_tree(digest, fresh, read_only=True, on_progress=on_progress)
            except StorageFull:
                if not self.evict(size):
                    raise
                self._store.get_tree(digest, fresh, read_only=True, on_progress=on_progress)
            _replace(place, fresh)
        place.with_suffix(".json").write_bytes(msgspec.json.encode(_Mark(boot_id(), size)))
        self._count(misses=1, fetched_bytes=size)

    def _make_room(self, size: int) -> None:
        over = self.size_bytes() + size - self._limit if self._limit is not None else 0
        info = os.statvfs(self._root)
        short = size + _KEEP_FREE_BYTES - info.f_bavail * info.f_frsize
        if max(over, short) > 0:
            self.evict(max(over, short))

    def _trees(self) -> Iterator[tuple[int, int, Path]]:
        """Time of last use, size and place of each tree."""
        for mark in self._root.glob("??/*.json"):
            try:
                size = msgspec.json.decode(mark.read_bytes(), type=_Mark).size_bytes
                yield mark.stat().st_mtime_ns, size, mark.with_suffix("")
            except (FileNotFoundError, msgspec.DecodeError):
                continue

    def _remove(self, place: Path) -> bool:
        """Remove a tree if nobody holds it."""
        fd = os.open(place.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            place.with_suffix(".json").unlink(missing_ok=True)
            aside = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
            try:
                place.rename(aside)
            except FileNotFoundError:
                return False
            remove_tree(aside)
            return True
        finally:
            os.close(fd)

    def _hold(self, place: Path) -> None:
        with self._guard:
            if place in self._held:
                return
        with disk(place):
            fd = os.open(place.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_SH)
        with self._guard:
            if place in self._held:
                os.close(fd)
            else:
                self._held[place] = fd

    def _let_go(self, place: Path) -> None:
        with self._guard:
            fd = self._held.pop(place, None)
        if fd is not None:
            os.close(fd)

    def _used(self, place: Path, *, hit: bool) -> None:
        mark = place.with_suffix(".json")
        try:
            size = msgspec.json.decode(mark.read_bytes(), type=_Mark).size_bytes
            os.utime(mark)
        except (OSError, msgspec.DecodeError):
            return
        if hit:
            self._count(hits=1, hit_bytes=size)

    def _count(self, **more: int) -> None:
        """Add to the counts of the node; a cache that cannot count still serves."""
        try:
            with _lock(self._root / "COUNTS.lock"):
                now = _counts(self._root)
                for name, value in more.items():
                    setattr(now, name, getattr(now, name) + value)
                aside = self._root / f".counts.{secrets.token_hex(4)}"
                aside.write_bytes(msgspec.json.encode(now))
                aside.replace(self._root / "COUNTS")
        except OSError:
            return

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


def _replace(place: Path, fresh: Path) -> None:
    """Put a whole copy where a spoilt one may stand; who has that open keeps it, who opens by path gets the whole one."""
    if place.exists():
        aside = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
        place.rename(aside)
        fresh.rename(place)
        remove_tree(aside)
    else:
        fresh.rename(place)


def _limit(root: Path) -> int | None:
    try:
        return int((root / "LIMIT").read_text(encoding="ascii").strip())
    except (OSError, ValueError):
        return None


def _counts(root: Path) -> CacheCounts:
    try:
        return msgspec.json.decode((root / "COUNTS").read_bytes(), type=CacheCounts)
    except (OSError, msgspec.DecodeError):
        return CacheCounts()


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
