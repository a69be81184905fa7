"""The port: what every store can do. One adapter now, `local.LocalStore`.

    blob     one file's bytes, named by their BLAKE3
    tree     a canonical listing (formats.tree), named by `b3:` + its BLAKE3; all its blobs are there
    pointer  a name that moves by compare-and-set, conditioned on an epoch (refs)

Blobs first, then the listing, then the pointer: an interrupted upload is garbage, never a broken tree. What was accepted is
durable when the call returns; what is read back was verified. All methods may be called from any thread and process.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from trackbed.base.ids import Digest, FileDigest
from trackbed.formats.tree import Entry

Progress = Callable[[int, int], None]  # bytes done, bytes in all


@dataclass(frozen=True)
class TreeInfo:
    digest: Digest
    files: int
    size_bytes: int


@dataclass(frozen=True)
class RefValue:
    value: str
    epoch: int


class Reader(Protocol):
    """A verified stretch of a blob. Iterating gives pieces of at most 1 MiB."""

    size: int  # of the whole blob
    length: int  # of this stretch

    def read(self, size: int = -1, /) -> bytes: ...
    def close(self) -> None: ...
    def __iter__(self) -> Iterator[bytes]: ...
    def __enter__(self) -> "Reader": ...
    def __exit__(self, *_: object) -> None: ...


class Refs(Protocol):
    def get(self, name: str) -> RefValue | None:
        """Where a pointer stands; None if it was never set."""
        ...

    def compare_and_set(self, name: str, expected: str | None, new: str, *, epoch: int = 0) -> None:
        """Move a pointer from `expected` (None: not there yet) to `new`, durably.

        Raises:
            Conflict: `epoch_superseded`, a greater epoch has moved it; `ref_moved`, it is not at `expected`.
        """
        ...


class Store(Protocol):
    @property
    def refs(self) -> Refs: ...

    def missing(self, digests: Iterable[FileDigest]) -> list[FileDigest]:
        """Which of these blobs are not here, each once, in the order asked."""
        ...

    def put_blob(self, source: BinaryIO | bytes | Path, *, expect: FileDigest | None = None) -> tuple[FileDigest, int]:
        """Keep the bytes, return their digest and size. With `expect`, one that is here is not read again.

        Raises:
            BadInput: `storage_digest_mismatch`.
            Conflict: `storage_file_changed` while it was read.
            StorageFull: nothing was kept.
        """
        ...

    def put_blobs(self, items: Iterable[tuple[FileDigest, bytes]]) -> int:
        """Keep many small blobs, synced as a group; return how many were new. All digests are checked before any is kept."""
        ...

    def open_range(self, digest: FileDigest, start: int = 0, length: int | None = None) -> Reader:
        """Read from a blob, verified as a whole first (large ones once per process and file state).

        Raises:
            NotFound: `storage_blob_missing`.
            Damaged: `storage_blob_damaged`; the blob was moved to quarantine.
            BadInput: `storage_range_bad`, the start lies behind the end.
        """
        ...

    def put_tree(self, root: Path, *, on_progress: Progress | None = None, owner: str = "") -> TreeInfo:
        """Keep a folder, or one file as a tree of one entry. With `owner` (a run) it shares no storage with others' data.

        Raises:
            BadInput: `storage_special_file`, `storage_link_outside`, `storage_file_unreadable`; every fault at once.
            Conflict: `storage_file_changed`.
        """
        ...

    def put_listing(self, listing: bytes) -> Digest:
        """Keep a tree whose blobs are here already. `NotFound` (`storage_blobs_missing`) if one is not."""
        ...

    def listing(self, digest: Digest) -> bytes:
        """The canonical listing of a tree, verified. `NotFound`: `storage_tree_missing`."""
        ...

    def read_listing(self, digest: Digest) -> list[Entry]:
        """The entries of a tree, verified, sorted by path bytes."""
        ...

    def has_tree(self, digest: Digest) -> bool: ...

    def get_tree(
        self, digest: Digest, target: Path, *, read_only: bool = False, on_progress: Progress | None = None
    ) -> None:
        """Write a tree to `target`, which must not exist or be empty: exact bytes, modes and links, or nothing.

        Raises:
            Conflict: `storage_target_taken`.
            Damaged: a blob does not match; `target` was not made.
        """
        ...
