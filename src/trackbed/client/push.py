"""Trees to the store by proxy: the server is asked what it lacks, and only that is sent.

Blobs first, the listing last: a tree that can be read is whole.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from blake3 import blake3

from trackbed.base.errors import Conflict, Damaged
from trackbed.base.ids import Digest, FileDigest
from trackbed.client.connection import Connection, part
from trackbed.storage.scan import Scan
from trackbed.wire.data import CommitTree, HasReply, HasRequest, TreeView

Progress = Callable[[int, int], None]  # bytes done, bytes to do

SMALL_BYTES = 1 << 20  # at most this many bytes travel in a batch with others
BATCH_BYTES = 4 << 20
_ASK = 5000  # digests in one question
_CHUNK = 1 << 20


def push(connection: Connection, scan: Scan, *, space: str = "", on_progress: Progress | None = None) -> Digest:
    """Bring a scanned folder into the store of a space and return its digest.

    Raises:
        Conflict: `file_changed`: a file is not what it was when it was scanned.
    """
    where = {"space": space} if space else {}
    lacking = missing(connection, scan.files, space=space)
    sizes = {digest: scan.files[digest].stat().st_size for digest in lacking}
    total, done = sum(sizes.values()), 0
    if on_progress:
        on_progress(0, total)
    for digests, body in _batches(lacking, scan.files, sizes):
        connection.send(
            "POST", "/api/v1/blobs", content=body, content_type="application/octet-stream", query=where, repeat=True,
            timeout_s=300,
        )  # fmt: skip
        done += sum(sizes[digest] for digest in digests)
        if on_progress:
            on_progress(done, total)
    for digest in (one for one in lacking if sizes[one] > SMALL_BYTES):
        _put(connection, digest, scan.files[digest], where)
        done += sizes[digest]
        if on_progress:
            on_progress(done, total)
    tree = f"/api/v1/trees/{part(scan.info.digest)}"
    connection.put(tree, TreeView, CommitTree(listing=scan.listing), query=where)
    return scan.info.digest


def missing(connection: Connection, digests: Iterable[FileDigest], *, space: str = "") -> list[FileDigest]:
    """Return which blobs the store lacks."""
    found: list[FileDigest] = []
    asked = list(digests)
    for start in range(0, len(asked), _ASK):
        body = HasRequest(file_digests=list(asked[start : start + _ASK]))
        answer = connection.post("/api/v1/blobs/has", HasReply, body, query={"space": space} if space else {})
        found += [FileDigest(digest) for digest in answer.missing]
    return found


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


def _put(connection: Connection, digest: FileDigest, path: Path, where: dict[str, str]) -> None:
    def body() -> Iterator[bytes]:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk

    try:
        connection.send(
            "PUT", f"/api/v1/blobs/{digest}", content=body, content_type="application/octet-stream", query=where,
            timeout_s=3600,
        )  # fmt: skip
    except Damaged as error:
        raise Conflict("file_changed", path=str(path)) from error
