"""What hangs on what: tree record → listing and files → pages and chunks → frames → the frames that they are deltas of.

Read by gc (what nobody reaches goes) and by verify (what somebody reaches must be there).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from trackbed.base.errors import Damaged, NotFound, TrackbedError, Unavailable
from trackbed.base.ids import Digest, FileDigest
from trackbed.formats.footer import FileRow, PackRows
from trackbed.formats.tree import Entry
from trackbed.storage.backends.port import Backend, ObjectInfo
from trackbed.storage.index import ChunkIndex, FrameAt
from trackbed.storage.keys import Keys
from trackbed.storage.store import RefValue
from trackbed.storage.tombs import Tombs

TREES = "trees/"
_BATCH = 2000


class Pointers(Protocol):
    def values(self) -> dict[str, RefValue]: ...


class Kept(Protocol):
    """What upkeep asks of a chunk store."""

    @property
    def backend(self) -> Backend: ...
    @property
    def index(self) -> ChunkIndex: ...
    @property
    def tombs(self) -> Tombs: ...
    @property
    def keys(self) -> Keys: ...

    def refresh(self) -> list[tuple[str, Exception]]:
        """Take in what others wrote; return packs whose rows cannot be read."""
        ...

    def read_rows(self, backend: Backend, info: ObjectInfo) -> PackRows: ...
    def tree_record(self, name: str) -> tuple[Digest, FileRow]:
        """Raises Damaged: the record is not what was written."""
        ...

    def read_listing(self, digest: Digest) -> list[Entry]: ...
    def file_of(self, digest: FileDigest) -> FileRow | None: ...
    def pages_of(self, row: FileRow) -> Iterator[tuple[bytes, bool]]:
        """Every chunk of a file, pages included: id and whether it is a page."""
        ...

    def check_frame(self, frame: FrameAt, chunks: tuple[tuple[bytes, int], ...]) -> None:
        """Decrypt, decompress and compare every chunk's id. Raises Damaged."""
        ...

    def copy_frames(self, packs: list[tuple[PackRows, set[bytes]]]) -> list[PackRows]:
        """Write these frames of packs of one kind and owner byte for byte into new ones, durably."""
        ...


@dataclass(frozen=True, slots=True)
class TreeAt:
    """A record of a tree, by the name of its object without the folders."""

    name: str
    modified_us: int
    digest: Digest
    listing: FileRow


@dataclass(frozen=True, slots=True)
class Broken:
    """Something that cannot be read: which, and why. `code` is of the catalogue."""

    what: str  # the object's name, or a tree's or file's digest
    code: str
    why: str


@dataclass
class Marks:
    """Copies of frames that something reaches, and what was met on the way."""

    frames: set[tuple[bytes, bytes]] = field(default_factory=set[tuple[bytes, bytes]])  # (frame id, pack id)
    files: set[FileDigest] = field(default_factory=set[FileDigest])
    broken: list[Broken] = field(default_factory=list[Broken])

    def of_pack(self, pack_id: bytes) -> set[bytes]:
        """Ids of the frames of a pack that are reached."""
        return {frame for frame, pack in self.frames if pack == pack_id}

    def by_pack(self) -> dict[bytes, set[bytes]]:
        found: dict[bytes, set[bytes]] = {}
        for frame, pack in self.frames:
            found.setdefault(pack, set()).add(frame)
        return found


def tree_records(store: Kept) -> tuple[list[TreeAt], list[Broken]]:
    """Every tree of a store, and the records that cannot be read."""
    found: list[TreeAt] = []
    broken: list[Broken] = []
    for info in store.backend.list(TREES):
        name = info.name.rpartition("/")[2]
        try:
            digest, listing = store.tree_record(name)
        except Unavailable:
            raise  # not the record's fault
        except TrackbedError as fault:
            if fault.code != "storage_object_missing":  # dropped since it was listed
                broken.append(Broken(info.name, fault.code, fault.text()))
            continue
        found.append(TreeAt(name, info.modified_us, digest, listing))
    return found, broken


def mark(
    store: Kept, trees: Iterable[TreeAt], files: Iterable[FileDigest] = (), *, packs: Iterable[bytes] = ()
) -> Marks:
    """Follow trees, files that stand alone, and whole packs that an upload may still be filling, down to the frames."""
    marks = Marks()
    walk = _Walk(store, marks)
    for pack_id in packs:
        walk.pack(pack_id)
    for tree in trees:
        walk.tree(tree)
    for digest in files:
        walk.file(digest, str(digest), may_be_absent=True)
    walk.flush()
    return marks


class _Walk:
    def __init__(self, store: Kept, marks: Marks) -> None:
        self._store = store
        self._marks = marks
        self._waiting: dict[bytes, str] = {}  # chunk id → for whom
        self._seen: set[bytes] = set()  # 16 bytes of chunk ids, pages and data alike

    def pack(self, pack_id: bytes) -> None:
        for frame in self._store.index.frames(pack_id):
            self._frame(frame)

    def tree(self, tree: TreeAt) -> None:
        self._row(tree.listing, tree.digest)
        self.flush()  # its pages are read next
        try:
            entries = self._store.read_listing(tree.digest)
        except Unavailable:
            raise
        except TrackbedError as fault:
            self._marks.broken.append(Broken(tree.digest, fault.code, fault.text()))
            return
        for entry in entries:
            if entry.kind == "f":
                self.file(FileDigest(entry.digest), tree.digest)

    def file(self, digest: FileDigest, of: str, *, may_be_absent: bool = False) -> None:
        if digest in self._marks.files:
            return
        self._marks.files.add(digest)
        row = self._store.file_of(digest)
        if row is None:
            if not may_be_absent:
                self._marks.broken.append(Broken(of, "storage_blob_missing", f"no file {digest}"))
            return
        self._row(row, of)

    def _row(self, row: FileRow, of: str) -> None:
        try:
            for chunk_id, _ in self._store.pages_of(row):
                if chunk_id[:16] not in self._seen:
                    self._seen.add(chunk_id[:16])
                    self._waiting[chunk_id] = of
                    if len(self._waiting) >= _BATCH:
                        self.flush()
        except (Damaged, NotFound) as fault:
            self._marks.broken.append(Broken(of, fault.code, fault.text()))

    def flush(self) -> None:
        waiting, self._waiting = self._waiting, {}
        found = self._store.index.chunks(list(waiting), any_owner=True)
        for chunk_id, of in waiting.items():
            if chunk_id in found:
                self._frame(found[chunk_id].frame)
            else:
                self._marks.broken.append(Broken(of, "storage_chunk_missing", f"no chunk {chunk_id.hex()[:16]}"))

    def _frame(self, frame: FrameAt) -> None:
        todo = [frame]
        while todo:
            one = todo.pop()
            if (one.frame_id, one.pack_id) in self._marks.frames:
                continue
            self._marks.frames.add((one.frame_id, one.pack_id))
            for base_id in {base.frame_id for base in one.bases}:
                base = self._store.index.frame(base_id)
                if base is None:
                    what = f"frame {one.frame_id.hex()}"
                    self._marks.broken.append(Broken(what, "storage_base_missing", f"no base {base_id.hex()}"))
                else:
                    todo.append(base)
