"""Trees to and from the store by proxy: the server is asked what it lacks, and only that is sent.

Blobs first, the listing last: a tree that can be read is whole.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from blake3 import blake3

from trackbed.base.errors import Conflict, Damaged
from trackbed.base.ids import Digest, FileDigest
from trackbed.client.connection import Connection, part
from trackbed.formats.tree import Entry, decode_listing, show, tree_digest
from trackbed.storage.checkout import checkout
from trackbed.storage.scan import Scan
from trackbed.wire.data import CommitTree, HasReply, HasRequest, TreeView

Progress = Callable[[int, int], None]  # bytes done, bytes to do

SMALL_BYTES = 1 << 20  # at most this many bytes travel in a batch with others
BATCH_BYTES = 4 << 20
_ASK = 5000  # digests in one question
_CHUNK = 1 << 20


def push(connection: Connection, scan: Scan, *, on_progress: Progress | None = None) -> Digest:
    """Bring a scanned folder into the store and return its digest.

    Raises:
        Conflict: `file_changed`: a file is not what it was when it was scanned.
    """
    lacking = missing(connection, scan.files)
    sizes = {digest: scan.files[digest].stat().st_size for digest in lacking}
    total, done = sum(sizes.values()), 0
    if on_progress:
        on_progress(0, total)
    for digests, body in _batches(lacking, scan.files, sizes):
        connection.send(
            "POST", "/api/v1/blobs", content=body, content_type="application/octet-stream", repeat=True, timeout_s=300
        )
        done += sum(sizes[digest] for digest in digests)
        if on_progress:
            on_progress(done, total)
    for digest in (one for one in lacking if sizes[one] > SMALL_BYTES):
        _put(connection, digest, scan.files[digest])
        done += sizes[digest]
        if on_progress:
            on_progress(done, total)
    connection.put(f"/api/v1/trees/{part(scan.info.digest)}", TreeView, CommitTree(listing=scan.listing))
    return scan.info.digest


def missing(connection: Connection, digests: Iterable[FileDigest]) -> list[FileDigest]:
    """Return which blobs the store lacks."""
    found: list[FileDigest] = []
    asked = list(digests)
    for start in range(0, len(asked), _ASK):
        body = HasRequest(file_digests=list(asked[start : start + _ASK]))
        answer = connection.post("/api/v1/blobs/has", HasReply, body)
        found += [FileDigest(digest) for digest in answer.missing]
    return found


def pull(connection: Connection, digest: str, target: Path, *, check: Callable[[list[Entry]], None] | None = None,
         on_progress: Progress | None = None) -> list[Entry]:  # fmt: skip
    """Write a tree into `target`, which must not exist or be empty: exact bytes, modes, links; all or nothing.

    Raises:
        Damaged: `tree_damaged`, `file_damaged`: what came is not what was asked for.
        Conflict: `storage_target_taken`.
    """
    listing = connection.send("GET", f"/api/v1/trees/{part(digest)}/listing").content
    if tree_digest(listing) != digest:
        raise Damaged("tree_damaged", digest=digest)
    entries = decode_listing(listing)
    if check is not None:
        check(entries)

    def write(entry: Entry, fd: int) -> None:
        fetch(connection, digest, entry, fd)

    checkout(entries, target, write, on_progress=on_progress)
    return entries


def fetch(connection: Connection, digest: str, entry: Entry, fd: int) -> None:
    """Write one file of a tree into an open, empty file, verified."""
    hasher = blake3()
    if entry.size:
        with connection.stream(f"/api/v1/trees/{part(digest)}/content", query=_asked(entry.path)) as answer:
            for chunk in answer.iter_bytes(_CHUNK):
                hasher.update(chunk)
                _write_all(fd, chunk)
    if hasher.hexdigest() != entry.digest:
        raise Damaged("file_damaged", path=show(entry.path), digest=entry.digest)


def _asked(path: bytes) -> dict[str, str]:
    """How a path is asked for: as text, or in hex where it is none."""
    try:
        return {"path": path.decode("utf-8")}
    except UnicodeDecodeError:
        return {"path_hex": path.hex()}


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _batches(
    lacking: list[FileDigest], files: Mapping[FileDigest, Path], sizes: dict[FileDigest, int]
) -> Iterator[tuple[list[FileDigest], bytes]]:
    digests: list[FileDigest] = []
    body = bytearray()
    for digest in lacking:
        if sizes[digest] > SMALL_BYTES:
            continue
        data = files[digest].read_bytes()
        if blake3(data).hexdigest() != digest:
            raise Conflict("file_changed", path=str(files[digest]))
        body += bytes.fromhex(digest) + len(data).to_bytes(8, "little") + data
        digests.append(digest)
        if len(body) >= BATCH_BYTES:
            yield digests, bytes(body)
            digests, body = [], bytearray()
    if digests:
        yield digests, bytes(body)


def _put(connection: Connection, digest: FileDigest, path: Path) -> None:
    def body() -> Iterator[bytes]:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk

    try:
        connection.send(
            "PUT", f"/api/v1/blobs/{digest}", content=body, content_type="application/octet-stream", timeout_s=3600
        )
    except Damaged as error:
        raise Conflict("file_changed", path=str(path)) from error
