"""Putting aside what is damaged. Nothing is ever deleted: a damaged object goes to `quarantine/` under its own name.

pack     its sound frames are copied byte for byte into a new pack first, then it is moved
record   a tree's record that cannot be read is moved; adding the same data again makes a new one
trees    those that lost something are named: add their data again, and only what is missing is sent
"""

from dataclasses import dataclass, field

from trackbed.base import faults
from trackbed.base.errors import TrackbedError, Unavailable
from trackbed.formats.footer import PackRows
from trackbed.storage.backends.port import ObjectInfo
from trackbed.storage.index import PACKS
from trackbed.storage.marks import TREES, Broken, Kept, mark, tree_records
from trackbed.storage.tombs import pack_name
from trackbed.storage.verify import frame_at

QUARANTINE = "quarantine/"


@dataclass
class RepairReport:
    quarantined: list[str] = field(default_factory=list[str])  # names before they were moved
    frames_saved: int = 0
    frames_lost: int = 0
    broken_trees: list[Broken] = field(default_factory=list[Broken])  # what still needs its data again


def repair(store: Kept, broken: list[Broken]) -> RepairReport:
    """Act on what `verify` found. Running it again does no harm."""
    report = RepairReport()
    names = {one.what.partition("#")[0] for one in broken}
    packs = {one for one in names if one.startswith(PACKS)}
    while packs:
        for name in sorted(packs):
            info = store.backend.stat(name)
            if info is not None:
                _save_frames(store, info, report)
                _move(store, name, report)
        store.index.rebuild(store.backend, store.read_rows)
        packs = {pack_name(pack_id) for pack_id in store.index.packs() if _lacks_a_base(store, pack_id)}
    for name in sorted(one for one in names if one.startswith(TREES)):
        _move(store, name, report)
    store.refresh()
    trees, _ = tree_records(store)
    by_tree: dict[str, Broken] = {}
    for one in mark(store, trees).broken:
        by_tree.setdefault(one.what, one)
    report.broken_trees = list(by_tree.values())
    return report


def _save_frames(store: Kept, info: ObjectInfo, report: RepairReport) -> None:
    try:
        rows: PackRows = store.read_rows(store.backend, info)
    except Unavailable:
        raise
    except TrackbedError:
        return  # nothing of it can be read
    sound: set[bytes] = set()
    for row in rows.frames:
        try:
            store.check_frame(frame_at(rows, row), row.chunks)
        except Unavailable:
            raise
        except TrackbedError:
            report.frames_lost += 1
            continue
        sound.add(row.frame_id)
    if sound:
        store.copy_frames([(rows, sound)])
        report.frames_saved += len(sound)
    faults.point("repair.saved")


def _lacks_a_base(store: Kept, pack_id: bytes) -> bool:
    bases = {base.frame_id for frame in store.index.frames(pack_id) for base in frame.bases}
    return bool(bases) and len(store.index.places(list(bases))) < len(bases)


def _move(store: Kept, name: str, report: RepairReport) -> None:
    try:
        data = store.backend.get(name)
    except TrackbedError as fault:
        if fault.code == "storage_object_missing":
            return
        raise
    store.backend.put(QUARANTINE + name, data)
    faults.point("repair.copied")
    store.backend.delete(name)
    report.quarantined.append(name)
