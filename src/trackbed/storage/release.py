"""Freeing what a run let go, at once: the trees of dropped checkpoints and the run-private packs that only they reached.

First call: tree and packs get tombstones. A call after `grace_s`: everything else is marked again; what is reached now loses
its tombstone, the rest goes, the tree's record before its packs. A commit that relied on one of them meets the tombstone
right before it is published and writes it again (`tombs`), so the grace need only be longer than that last look takes.

Shared packs and packs that an upload may be filling are left to `gc`.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from trackbed.base import faults
from trackbed.base.ids import Digest
from trackbed.formats.footer import PRIVATE
from trackbed.storage.backends.port import ObjectInfo
from trackbed.storage.gc import GRACE_S, Alive, locked, refuse_broken
from trackbed.storage.index import PACKS
from trackbed.storage.marks import TREES, Broken, Kept, TreeAt, mark, tree_records
from trackbed.storage.tombs import pack_name

RELEASE_GRACE_S = 120.0


@dataclass
class ReleaseReport:
    done: list[Digest] = field(default_factory=list[Digest])  # gone, or named by somebody else
    waiting: list[Digest] = field(default_factory=list[Digest])  # marked: ask again after the grace
    packs_freed: int = 0
    bytes_freed: int = 0
    bytes_marked: int = 0

    def __add__(self, other: "ReleaseReport") -> "ReleaseReport":
        """Both together: of several domains."""
        return ReleaseReport(
            self.done + other.done, self.waiting + other.waiting, self.packs_freed + other.packs_freed,
            self.bytes_freed + other.bytes_freed, self.bytes_marked + other.bytes_marked,
        )  # fmt: skip


def release(
    store: Kept,
    dropped: Iterable[Digest],
    alive: Callable[[], Alive],
    *,
    grace_s: float = RELEASE_GRACE_S,
    now: Callable[[], float] = time.time,
) -> ReleaseReport:
    """Bring each dropped tree one step nearer to its end.

    Raises:
        Damaged: `storage_gc_refused`, something cannot be read; nothing was touched.
        Conflict: `storage_gc_running`.
    """
    with locked(store.backend, now):
        return _Release(store, set(dropped), grace_s, now()).run(alive)


class _Release:
    def __init__(self, store: Kept, dropped: set[Digest], grace_s: float, now_s: float) -> None:
        self._store, self._dropped = store, dropped
        self._now_us, self._old_us = int(now_s * 1e6), int((now_s - grace_s) * 1e6)
        self._young_us = int((now_s - GRACE_S) * 1e6)
        self._report = ReleaseReport()

    def run(self, alive: Callable[[], Alive]) -> ReleaseReport:
        store, report = self._store, self._report
        spoiled = store.refresh()
        packs = {bytes.fromhex(info.name.rpartition("/")[2]): info for info in store.backend.list(PACKS)}
        tree_tombs = store.tombs.trees()
        trees, broken = tree_records(store)
        wanted = alive()
        refuse_broken([Broken(name, "storage_pack_damaged", str(fault)) for name, fault in spoiled] + broken)
        going = [tree for tree in trees if tree.digest in self._dropped - wanted.trees]
        for tree in trees:
            if tree.digest in self._dropped & wanted.trees and tree.name in tree_tombs:
                self._take_back(tree)
        report.done += sorted(self._dropped - {tree.digest for tree in going})
        if not going:
            return report
        own = {tree.name: self._private(tree) for tree in going}
        everything = {one for packs_of in own.values() for one in packs_of}
        young = [one for one, info in packs.items() if info.modified_us > self._young_us and one not in everything]
        marks = mark(store, [tree for tree in trees if tree not in going], wanted.files, packs=young)
        refuse_broken(marks.broken)
        reached = marks.by_pack().keys()
        for pack_id in everything & reached & store.tombs.all().keys():
            store.tombs.lift(pack_id)
        self._step(going, tree_tombs, own, {one: packs[one] for one in everything - reached if one in packs})
        store.tombs.refresh(store.index)
        return report

    def _take_back(self, tree: TreeAt) -> None:
        """Somebody names the same bytes again."""
        for pack_id in self._private(tree) & self._store.tombs.all().keys():
            self._store.tombs.lift(pack_id)
        self._store.tombs.lift_tree(tree.name)

    def _private(self, tree: TreeAt) -> set[bytes]:
        """Run-private packs that a tree reaches; what cannot be read of it any more is no reason to stop."""
        reached = mark(self._store, [tree]).by_pack()
        return {one for one in reached if (kind := self._store.index.kind_of(one)) is not None and kind[0] == PRIVATE}

    def _step(
        self, going: list[TreeAt], tombs: dict[str, int], own: dict[str, set[bytes]], free: dict[bytes, ObjectInfo]
    ) -> None:
        """Mark what is not marked; end the trees that were marked a grace ago, with the packs that only they reach."""
        store = self._store
        pack_tombs = store.tombs.all()
        for tree in going:
            if tree.name not in tombs:
                store.tombs.put_tree(tree.name, now_us=self._now_us)
                faults.point("release.tree_marked")
        for pack_id, info in free.items():
            if pack_id not in pack_tombs:
                store.tombs.put(pack_id, now_us=self._now_us)
                self._report.bytes_marked += info.size
                faults.point("release.pack_marked")
        ripe = {one for one in free if pack_tombs.get(one, self._now_us + 1) <= self._old_us}
        ending = [tree for tree in going if tombs.get(tree.name, self._now_us + 1) <= self._old_us]
        ending = [tree for tree in ending if own[tree.name] & free.keys() <= ripe]
        staying = {one for tree in going if tree not in ending for one in own[tree.name]}
        for tree in ending:
            self._end(tree)
        self._report.waiting += [tree.digest for tree in going if tree not in ending]
        freed = {one for tree in ending for one in own[tree.name]} & ripe - staying
        self._sweep({one: free[one] for one in freed})

    def _end(self, tree: TreeAt) -> None:
        self._store.backend.delete(f"{TREES}{tree.name[:2]}/{tree.name}")
        faults.point("release.tree_dropped")
        self._store.tombs.lift_tree(tree.name)
        self._report.done.append(tree.digest)

    def _sweep(self, free: dict[bytes, ObjectInfo]) -> None:
        for pack_id, info in free.items():
            self._store.backend.delete(pack_name(pack_id))
            faults.point("release.pack_swept")
            self._store.tombs.lift(pack_id)
            self._report.packs_freed += 1
            self._report.bytes_freed += info.size
        self._store.index.drop(free)
