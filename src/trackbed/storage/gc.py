"""Removing what nobody reaches: from every pointer and every record of the server down, in two steps with a grace between.

    trees   not alive and older than the grace → tombstone; after another grace, still not alive → the record goes
    packs   no frame reached and older than the grace → tombstone; after another grace, still not reached → the pack goes
    packs   less than half reached → the reached frames are copied byte for byte into a new pack, the old one gets a tombstone
    packs   four or more small ones of one kind → the same, into one

Nothing is removed because something is absent: an unreadable record, pack or pointer stops the run before the first tombstone.
Uploads go on beside it: what they wrote is younger than the grace, and what they rely on they ask `tombs` about.
"""

import secrets
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from trackbed.base import faults
from trackbed.base.errors import Conflict, Damaged, Unavailable
from trackbed.base.ids import Digest, FileDigest
from trackbed.storage.backends.port import Backend, ObjectInfo
from trackbed.storage.index import PACKS
from trackbed.storage.marks import TREES, Broken, Kept, Marks, TreeAt, mark, tree_records
from trackbed.storage.tombs import pack_name

GRACE_S = 24 * 3600.0
_LOCK = "locks/gc"
_LOCK_S = 6 * 3600.0
_COMPACT_BELOW = 0.5  # of a pack's bytes reached
_SMALL_BYTES, _SMALL_MANY = 8 * 1024 * 1024, 4  # so many packs below this size become one


@dataclass(frozen=True)
class Alive:
    """What the rest of the system still names."""

    trees: frozenset[Digest]
    files: frozenset[FileDigest] = frozenset()  # that stand outside any tree


@dataclass
class GcReport:
    dry_run: bool
    trees: int = 0
    trees_marked: int = 0  # got a tombstone
    trees_dropped: int = 0
    trees_lifted: int = 0  # a tombstone taken off: somebody wants it again
    packs: int = 0
    bytes_stored: int = 0
    bytes_reached: int = 0
    packs_marked: int = 0
    packs_swept: int = 0
    packs_lifted: int = 0
    packs_compacted: int = 0
    bytes_marked: int = 0  # will be freed by a run after the grace
    bytes_freed: int = 0


def collect(
    store: Kept,
    alive: Callable[[], Alive],
    *,
    grace_s: float = GRACE_S,
    dry_run: bool = False,
    compact: bool = True,
    now: Callable[[], float] = time.time,
) -> GcReport:
    """Run one step of each kind and tell what was done, or with `dry_run` what would be.

    `alive` is asked after the trees were listed, so that a tree which was named before its record was seen counts.

    Raises:
        Damaged: `storage_gc_refused`, something cannot be read; nothing was touched.
        Conflict: `storage_gc_running`, another run holds the lock.
    """
    if dry_run:
        return _Run(store, grace_s, now, dry_run=True).run(alive, compact)
    with locked(store.backend, now):
        return _Run(store, grace_s, now, dry_run=False).run(alive, compact)


class _Run:
    def __init__(self, store: Kept, grace_s: float, now: Callable[[], float], *, dry_run: bool) -> None:
        self._store = store
        self._now_us = int(now() * 1_000_000)
        self._old_us = int((now() - grace_s) * 1_000_000)
        self._dry = dry_run
        self._report = GcReport(dry_run)

    def run(self, alive: Callable[[], Alive], compact: bool) -> GcReport:
        store, report = self._store, self._report
        spoiled = store.refresh()
        packs = {bytes.fromhex(info.name.rpartition("/")[2]): info for info in store.backend.list(PACKS)}
        pack_tombs, tree_tombs = store.tombs.all(), store.tombs.trees()
        trees, broken = tree_records(store)
        wanted = alive()
        refuse_broken([Broken(name, "storage_pack_damaged", str(fault)) for name, fault in spoiled] + broken)
        kept = self._trees(trees, wanted, tree_tombs)
        young = [pack_id for pack_id, info in packs.items() if info.modified_us > self._old_us]
        marks = mark(store, kept, wanted.files, packs=young)
        refuse_broken(marks.broken)
        report.packs, report.bytes_stored = len(packs), sum(info.size for info in packs.values())
        self._packs(packs, marks, pack_tombs, compact)
        return report

    def _trees(self, trees: list[TreeAt], wanted: Alive, tombs: dict[str, int]) -> list[TreeAt]:
        """Give tombstones, take them off, drop records; return the trees that still hold something."""
        kept: list[TreeAt] = []
        self._report.trees = len(trees)
        for tree in trees:
            young = tree.modified_us > self._old_us
            if tree.digest in wanted.trees or young:
                kept.append(tree)
                if tree.name in tombs:
                    self._report.trees_lifted += 1
                    self._do(self._store.tombs.lift_tree, tree.name)
            elif tree.name not in tombs:
                kept.append(tree)
                self._report.trees_marked += 1
                self._do(lambda name: self._store.tombs.put_tree(name, now_us=self._now_us), tree.name)
            elif tombs[tree.name] > self._old_us:
                kept.append(tree)
            else:
                self._report.trees_dropped += 1
                self._do(self._drop_tree, tree.name)
        if not self._dry:
            for name in tombs.keys() - {tree.name for tree in trees}:
                self._store.tombs.lift_tree(name)  # left by a run that was cut off behind its delete
        return kept

    def _drop_tree(self, name: str) -> None:
        self._store.backend.delete(f"{TREES}{name[:2]}/{name}")
        faults.point("gc.tree_dropped")
        self._store.tombs.lift_tree(name)

    def _packs(self, packs: dict[bytes, ObjectInfo], marks: Marks, tombs: dict[bytes, int], compact: bool) -> None:
        report, reached = self._report, marks.by_pack()
        swept: list[bytes] = []
        small: list[tuple[ObjectInfo, set[bytes]]] = []
        for pack_id, info in packs.items():
            live = reached.get(pack_id, set())
            live_bytes = sum(one.length for one in self._store.index.frames(pack_id) if one.frame_id in live)
            report.bytes_reached += live_bytes
            if pack_id in tombs:
                if live:
                    report.packs_lifted += 1
                    self._do(self._store.tombs.lift, pack_id)
                elif tombs[pack_id] <= self._old_us:
                    report.packs_swept += 1
                    report.bytes_freed += info.size
                    swept.append(pack_id)
                    self._do(self._sweep, pack_id)
            elif info.modified_us > self._old_us:
                continue
            elif not live:
                report.packs_marked += 1
                report.bytes_marked += info.size
                self._do(self._bury, pack_id)
            elif compact and live_bytes < _COMPACT_BELOW * info.size:
                report.packs_compacted += 1
                report.bytes_marked += info.size - live_bytes
                self._do(lambda one: self._compact([one]), (info, live))
            elif compact and info.size < _SMALL_BYTES:
                small.append((info, live))
        self._merge(small)
        if not self._dry:
            self._store.index.drop(swept)
            for pack_id in tombs.keys() - packs.keys():
                self._store.tombs.lift(pack_id)
            self._store.tombs.refresh(self._store.index)

    def _bury(self, pack_id: bytes) -> None:
        self._store.tombs.put(pack_id, now_us=self._now_us)
        faults.point("gc.pack_marked")

    def _sweep(self, pack_id: bytes) -> None:
        self._store.backend.delete(pack_name(pack_id))
        faults.point("gc.pack_swept")
        self._store.tombs.lift(pack_id)

    def _merge(self, small: list[tuple[ObjectInfo, set[bytes]]]) -> None:
        """Many commits leave many small packs; readers and lists pay for each."""
        groups: dict[tuple[int, bytes], list[tuple[ObjectInfo, set[bytes]]]] = {}
        for one in small if len(small) >= _SMALL_MANY else ():
            kind = self._store.index.kind_of(bytes.fromhex(one[0].name.rpartition("/")[2]))
            if kind is not None:
                groups.setdefault(kind, []).append(one)
        for group in groups.values():
            if len(group) >= _SMALL_MANY:
                self._report.packs_compacted += len(group)
                self._do(self._compact, group)

    def _compact(self, packs: list[tuple[ObjectInfo, set[bytes]]]) -> None:
        """Copy what is reached of packs of one kind and owner, then mark them."""
        rows = [(self._store.read_rows(self._store.backend, info), live) for info, live in packs]
        self._store.copy_frames(rows)
        faults.point("gc.pack_copied")
        for one, _ in rows:
            self._bury(one.pack_id)

    def _do(self, act: Callable[[object], object] | Callable[..., object], what: object) -> None:
        if not self._dry:
            act(what)


def refuse_broken(broken: Iterable[Broken]) -> None:
    """Raise Damaged (`storage_gc_refused`) if anything could not be read: nothing is removed because it is absent."""
    every = list(broken)
    if every:
        raise Damaged("storage_gc_refused", count=len(every), what=every[0].what, why=every[0].why)


class _Lock(msgspec.Struct):
    by: str
    until_us: int


@contextmanager
def locked(backend: Backend, now: Callable[[], float]) -> Generator[None]:
    """One run at a time; a run that died holds the lock for six hours at most."""
    mine = _Lock(secrets.token_hex(8), int((now() + _LOCK_S) * 1_000_000))
    data = msgspec.json.encode(mine)
    found = backend.read(_LOCK)
    if found is not None and msgspec.json.decode(found[0], type=_Lock).until_us > int(now() * 1_000_000):
        raise Conflict("storage_gc_running", where=backend.url)
    if not _take(backend, data, found[1] if found else None):
        raise Conflict("storage_gc_running", where=backend.url)
    try:
        yield
    finally:
        left = backend.read(_LOCK)
        if left is not None and left[0] == data:
            backend.delete(_LOCK)


def _take(backend: Backend, data: bytes, version: str | None) -> bool:
    """Put the lock. Where no conditions are kept, whoever calls sees to it that it is the only one (the server's lease)."""
    try:
        return backend.put_if(_LOCK, data, version=version)
    except Unavailable as fault:
        if fault.code != "storage_no_conditions":
            raise
    backend.put(_LOCK, data)
    left = backend.read(_LOCK)
    return left is not None and left[0] == data
