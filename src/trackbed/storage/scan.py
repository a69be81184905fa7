"""A folder as entries of a listing. Runs on a laptop too: no store is needed to know a digest."""

# ruff: noqa: PTH100, PTH115, PTH116, PTH118, PTH119 - paths are bytes, as the file system gives them

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from trackbed.base.errors import BadInput, Fault
from trackbed.base.ids import FileDigest
from trackbed.formats.tree import Entry, encode_listing, link_leaves, show, tree_digest
from trackbed.storage.files import hash_file
from trackbed.storage.seen import Seen, State
from trackbed.storage.store import Progress, TreeInfo

_KINDS = {stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket", stat.S_IFBLK: "block device", stat.S_IFCHR: "device"}


class Found(NamedTuple):
    """One thing on disk, by its `lstat`; not read yet."""

    path: bytes  # relative to the root
    place: bytes  # to open it
    mode: int
    size: int
    mtime_ns: int = 0
    ctime_ns: int = 0
    inode: int = 0

    @classmethod
    def of(cls, path: bytes, place: bytes, info: os.stat_result) -> "Found":
        return cls(path, place, info.st_mode, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)

    @property
    def state(self) -> State:
        """What changes when somebody writes to it."""
        return self.size, self.mtime_ns, self.ctime_ns, self.inode

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)

    @property
    def executable(self) -> bool:
        return bool(self.mode & stat.S_IXUSR)


@dataclass(frozen=True)
class Scan:
    """A folder read once: its listing, and where the bytes of each file lie."""

    info: TreeInfo
    listing: bytes
    files: Mapping[FileDigest, Path]


def find(root: Path, *, keep: Callable[[str], bool] | None = None) -> list[Found]:
    """Everything below a folder, or a single file under its own name, unsorted. Empty folders are found, full ones are not.

    `keep` is asked with each relative path, folders with a `/` at the end; a folder that it refuses is not entered, one
    that it leaves without files is not found.

    Raises:
        BadInput: `storage_path_missing`, or `storage_file_unreadable` for folders; all of them at once.
    """
    top = os.fsencode(root)
    try:
        info = os.stat(top)
    except OSError as fault:
        raise BadInput("storage_path_missing", path=str(root)) from fault
    if stat.S_ISREG(info.st_mode):
        return [Found.of(os.path.basename(os.path.abspath(top)), os.path.realpath(top), info)]
    found: list[Found] = []
    faults: list[Fault] = []
    todo = [b""]
    while todo:
        inside = todo.pop()
        folder = os.path.join(top, inside) if inside else top
        try:
            with os.scandir(folder) as scan:
                entries = list(scan)
        except OSError as fault:
            why = {"path": show(inside or top), "why": fault.strerror or str(fault)}
            faults.append(Fault("storage_file_unreadable", params=why))
            continue
        if not entries and inside:
            found.append(Found(inside, folder, stat.S_IFDIR, 0))
        for entry in entries:
            path = os.path.join(inside, entry.name) if inside else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if keep is not None and not keep(show(path) + ("/" if is_folder else "")):
                continue
            if is_folder:
                todo.append(path)
            else:
                info = entry.stat(follow_symlinks=False)
                found.append(Found.of(path, entry.path, info))
    refuse(faults)
    return found


def entries_of(found: Iterable[Found], read: Callable[[Found], tuple[FileDigest, int]]) -> list[Entry]:
    """Turn what was found into entries, sorted by path; `read` gives digest and size of a file.

    Links that leave and special files are looked for first, before anything is read.

    Raises:
        BadInput: `storage_special_file`, `storage_link_outside`, `storage_file_unreadable`: every fault at once, the
            first one as the error, the rest as its faults.
    """
    ordered = sorted(found, key=lambda one: one.path)
    links = _links(ordered)
    faults = list(unfit(ordered).values())
    refuse(faults)
    entries: list[Entry] = []
    for one in ordered:
        if one.is_file:
            try:
                digest, size = read(one)
            except BadInput as fault:
                faults.append(Fault(fault.code, params=fault.params))
                continue
            entries.append(Entry(one.path, "f", one.executable, size, digest))
        elif one.path in links:
            entries.append(Entry(one.path, "l", target=links[one.path]))
        else:
            entries.append(Entry(one.path, "d"))
    refuse(faults)
    return entries


def unfit(found: Iterable[Found]) -> dict[bytes, Fault]:
    """Which of these cannot be in a tree whatever their content, and why: links that leave, special files."""
    every = list(found)
    links = _links(every)
    return {one.path: fault for one in every if (fault := _fault_of(one, links))}


def _links(found: Iterable[Found]) -> dict[bytes, bytes]:
    return {one.path: os.readlink(one.place) for one in found if stat.S_ISLNK(one.mode)}


def scan(
    root: Path,
    *,
    keep: Callable[[str], bool] | None = None,
    on_progress: Progress | None = None,
    seen: Seen | None = None,
) -> Scan:
    """Read a folder, or one file, and return its listing and digest. Nothing is stored.

    With `seen`, files that have not changed since they were last read are not read.
    """
    return read_found(find(root, keep=keep), on_progress=on_progress, seen=seen)


def read_found(found: list[Found], *, on_progress: Progress | None = None, seen: Seen | None = None) -> Scan:
    """Read the files of a list of findings and return their listing."""
    files: dict[FileDigest, Path] = {}
    total = sum(one.size for one in found if one.is_file)
    done = 0

    def count(size: int) -> None:
        nonlocal done
        done += size
        if on_progress:
            on_progress(done, max(total, done))

    def read(one: Found) -> tuple[FileDigest, int]:
        known = seen.digest_of(one.path, one.state) if seen else None
        if known is not None:
            count(one.size)
            digest, size = known, one.size
        else:
            began = seen.now_ns() if seen else 0
            digest, size = hash_file(one.place, on_bytes=count)
            if seen:
                seen.remember(one.path, one.state, digest, began)
        if digest not in files:
            files[digest] = Path(os.fsdecode(one.place))
        return digest, size

    entries = entries_of(found, read)
    if seen:
        seen.keep()
    listing = encode_listing(entries)
    return Scan(tree_info(listing, entries), listing, files)


def tree_info(listing: bytes, entries: Iterable[Entry]) -> TreeInfo:
    """Digest, number of files and their bytes."""
    sizes = [entry.size for entry in entries if entry.kind == "f"]
    return TreeInfo(tree_digest(listing), len(sizes), sum(sizes))


def refuse(faults: list[Fault]) -> None:
    """Raise BadInput for all of them: the first gives the code, the others follow as faults."""
    if faults:
        first, *rest = faults
        raise BadInput(first.code, faults=rest, **first.params)


def _fault_of(one: Found, links: dict[bytes, bytes]) -> Fault | None:
    if one.path in links:
        if link_leaves(one.path, links):
            return Fault("storage_link_outside", params={"path": show(one.path), "target": show(links[one.path])})
        return None
    if one.is_file or stat.S_ISDIR(one.mode):
        return None
    what = _KINDS.get(stat.S_IFMT(one.mode), "special file")
    return Fault("storage_special_file", params={"path": show(one.path), "what": what})
