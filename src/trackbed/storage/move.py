"""Copying a whole store to another place, verified object by object; cut off anywhere, the next call goes on from there.

Order: packs, trees, pointers, key ring, header. The header comes last: until everything is there, nothing opens at the new
place. Objects travel sealed; no key is needed. Upkeep's own things (tombstones, locks, probes) stay behind.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from trackbed.base.errors import Damaged
from trackbed.formats.tree import file_digest
from trackbed.storage.backends.port import Backend, ObjectInfo
from trackbed.storage.store import Progress
from trackbed.storage.transfer import Tally

_ORDER = ("packs/", "trees/", "refs/", "quarantine/", "domains/", "keys/")
_LAST = "format"
_THREADS = 2  # objects of at most 64 MiB each in memory


@dataclass
class MoveReport:
    objects: int = 0
    bytes: int = 0
    copied: int = 0
    already: int = 0  # were there, with the same bytes
    kept_back: list[str] = field(default_factory=list[str])  # at the new place only; never deleted

    def plus(self, other: "MoveReport") -> "MoveReport":
        """Both together: of several domains."""
        return MoveReport(
            self.objects + other.objects, self.bytes + other.bytes, self.copied + other.copied,
            self.already + other.already, self.kept_back + other.kept_back,
        )  # fmt: skip


def move(source: Backend, target: Backend, *, on_progress: Progress | None = None) -> MoveReport:
    """Make everything of `source` be at `target` too, byte for byte, read back and compared. Nothing is removed.

    Raises:
        Damaged: `storage_move_differs`, what was read back is not what was sent.
    """
    report = MoveReport()
    names: set[str] = set()
    for part in _parts(source):
        tally = Tally(sum(info.size for info in part), on_progress)

        def carry(info: ObjectInfo, tally: Tally = tally) -> bool:
            moved = _carry(source, target, info)
            tally.add(info.size)
            return moved

        with ThreadPoolExecutor(_THREADS) as pool:
            for info, copied in zip(part, pool.map(carry, part), strict=True):
                names.add(info.name)
                report.objects += 1
                report.bytes += info.size
                report.copied += copied
                report.already += not copied
    report.kept_back = [info.name for prefix in _ORDER for info in target.list(prefix) if info.name not in names]
    return report


def _parts(source: Backend) -> Iterator[list[ObjectInfo]]:
    for prefix in _ORDER:
        yield list(source.list(prefix))
    header = source.stat(_LAST)
    yield [header] if header else []


def _carry(source: Backend, target: Backend, info: ObjectInfo) -> bool:
    data = source.get(info.name)
    there = target.stat(info.name)
    if there is not None and there.size == len(data) and target.get(info.name) == data:
        return False
    target.put(info.name, data)
    back = target.get(info.name)
    if back != data:
        raise Damaged(
            "storage_move_differs", name=info.name, where=target.url, sent=file_digest(data), found=file_digest(back)
        )
    return True
