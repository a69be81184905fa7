"""Tombstones of packs: said dead at one time, removed at a later one. What lies between is where a writer may object.

mark    a pack that nothing reaches gets `tombs/packs/<pack id>`; writers treat it as absent from then on
commit  right before its record is put, a writer asks that no pack it relies on has one, or is gone
sweep   after a grace longer than any commit takes, everything is marked again: reached → tombstone off, else both go
"""

from collections.abc import Iterable

import msgspec

from trackbed.base.errors import Conflict
from trackbed.storage.backends.port import Backend
from trackbed.storage.index import PACKS, ChunkIndex

TOMBS = "tombs/packs/"
TREE_TOMBS = "tombs/trees/"


class _Tomb(msgspec.Struct):
    at_us: int


class Tombs:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def all(self) -> dict[bytes, int]:
        """Pack id → when its tombstone was put, by the clock of the place."""
        return {bytes.fromhex(info.name[len(TOMBS) :]): info.modified_us for info in self._backend.list(TOMBS)}

    def refresh(self, index: ChunkIndex) -> set[bytes]:
        """Tell the index which packs have one."""
        found = set(self.all())
        index.fade(found)
        return found

    def put(self, pack_id: bytes, *, now_us: int) -> None:
        self._backend.put(TOMBS + pack_id.hex(), msgspec.json.encode(_Tomb(now_us)))

    def tree_fades(self, name: str) -> bool:
        """Whether a tree's record has a tombstone: who asks for the tree is told that it is not here, and adds it again."""
        return self._backend.stat(TREE_TOMBS + name) is not None

    def trees(self) -> dict[str, int]:
        """Name of a tree's record → when its tombstone was put."""
        return {info.name[len(TREE_TOMBS) :]: info.modified_us for info in self._backend.list(TREE_TOMBS)}

    def put_tree(self, name: str, *, now_us: int) -> None:
        self._backend.put(TREE_TOMBS + name, msgspec.json.encode(_Tomb(now_us)))

    def lift_tree(self, name: str) -> None:
        self._backend.delete(TREE_TOMBS + name)

    def lift(self, pack_id: bytes) -> None:
        self._backend.delete(TOMBS + pack_id.hex())

    def refuse(self, pack_ids: Iterable[bytes]) -> None:
        """Raise Conflict (`storage_pack_collected`) if one of these packs has a tombstone or is gone.

        The writer then forgets them and writes again what it took from them.
        """
        asked = set(pack_ids)
        if not asked:
            return
        dead = asked & self.all().keys()
        if len(asked) <= 16:
            dead |= {pack_id for pack_id in asked - dead if self._backend.stat(pack_name(pack_id)) is None}
        else:
            dead |= asked - {bytes.fromhex(info.name.rpartition("/")[2]) for info in self._backend.list(PACKS)}
        if dead:
            raise Conflict("storage_pack_collected", count=len(dead), packs=sorted(one.hex() for one in dead)[:20])


def pack_name(pack_id: bytes) -> str:
    """Name of a pack's object."""
    digits = pack_id.hex()
    return f"{PACKS}{digits[:2]}/{digits}"
