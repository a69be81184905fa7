"""Content in and out by proxy: blobs by their digest, trees by theirs. Names in a tree are labels, never places here."""

import asyncio
import re
from collections import OrderedDict
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, quote

from blake3 import blake3
from litestar import Request, Response, get, post, put
from litestar.response import Stream

from trackbed.base.errors import BadInput, NotFound
from trackbed.base.ids import Digest, FileDigest
from trackbed.db import ReadTx
from trackbed.domain.scope import Permission, Scope
from trackbed.formats.tree import Entry, decode_listing, is_digest, is_file_digest, show, tree_digest
from trackbed.server.app import App
from trackbed.server.bodies import BLOCK, Body, blocks
from trackbed.server.flows import trees
from trackbed.storage.store import Store
from trackbed.wire.data import CommitTree, HasReply, HasRequest, ListingEntry, TreeView

WRITE_TOO = {"permission": Permission.WRITE, "attempt": True}
READ_TOO = {"permission": Permission.READ, "attempt": True}
MOST_BATCH = 16 << 20  # bytes of a batch of blobs
MOST_LISTING = 512 << 20  # bytes of a listing as it is sent: some four million files
MOST_ASKED = 100_000  # digests in one question
MOST_ENTRIES = 10_000  # entries of a page
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
_CACHED_ENTRIES = 500_000


class RangeRefused(BadInput):
    """`storage_range_bad`, with the status that HTTP has for it."""

    http_status = 416


# blobs


@post("/api/v1/blobs/has", opt=WRITE_TOO, status_code=200)
async def has(data: HasRequest, trackbed_app: App, who: Scope, space: str = "") -> HasReply:
    """Which of these the asker has to send for a space. What only others have sent is to be sent again: that proves having it."""
    if len(data.file_digests) > MOST_ASKED:
        raise BadInput("blobs_too_many", most=MOST_ASKED)
    asked = [_file_digest(digest) for digest in data.file_digests]
    store = await asyncio.to_thread(trackbed_app.store_for, who, space)
    absent = set(await asyncio.to_thread(store.missing, asked))
    absent |= set(await trackbed_app.db.aread(lambda tx: trees.unheld(tx, who, asked)))
    return HasReply(missing=[digest for digest in dict.fromkeys(asked) if digest in absent])


@post("/api/v1/blobs", opt=WRITE_TOO, status_code=200, request_max_body_size=MOST_BATCH)
async def put_many(request: Request[Any, Any, Any], trackbed_app: App, who: Scope, space: str = "") -> dict[str, int]:
    """Keep a batch: repeated (32 bytes BLAKE3, u64 little-endian size, bytes). All or nothing."""
    items = _unpack(await request.body())
    store = await asyncio.to_thread(trackbed_app.store_for, who, space)
    stored = await asyncio.to_thread(store.put_blobs, items)
    await _hold(trackbed_app, who, [digest for digest, _ in items])
    return {"stored": stored}


@put("/api/v1/blobs/{file_digest:str}", opt=WRITE_TOO, status_code=204, request_max_body_size=None)
async def put_one(
    request: Request[Any, Any, Any], trackbed_app: App, who: Scope, file_digest: str, space: str = ""
) -> None:
    """Keep one blob of any size, as it streams in."""
    digest = _file_digest(file_digest)
    body = Body(request.stream(), asyncio.get_running_loop())
    store = await asyncio.to_thread(trackbed_app.store_for, who, space)
    await asyncio.to_thread(_receive, store, digest, body)
    await _hold(trackbed_app, who, [digest])


def _receive(store: Store, digest: FileDigest, body: Body) -> None:
    if store.missing([digest]):
        store.put_blob(body, expect=digest)  # type: ignore[arg-type]
        return
    hasher = blake3()  # it is here; whether the sender has it too is still to be seen
    while piece := body.read(BLOCK):
        hasher.update(piece)
    if hasher.hexdigest() != digest:
        raise BadInput("storage_digest_mismatch", expected=digest, actual=hasher.hexdigest())


async def _hold(app: App, who: Scope, digests: list[FileDigest]) -> None:
    if not who.admin:
        await app.db.awrite(lambda tx: trees.hold(tx, who, digests), actor=who.actor, lane="bulk")


def _unpack(body: bytes) -> list[tuple[FileDigest, bytes]]:
    items: list[tuple[FileDigest, bytes]] = []
    at = 0
    while at < len(body):
        size = int.from_bytes(body[at + 32 : at + 40], "little")
        end = at + 40 + size
        if at + 40 > len(body) or end > len(body):
            raise BadInput("blobs_batch_torn", at=at, size=len(body))
        items.append((FileDigest(body[at : at + 32].hex()), body[at + 40 : end]))
        at = end
    return items


# trees


@put("/api/v1/trees/{digest:str}", opt=WRITE_TOO, request_max_body_size=MOST_LISTING)
async def commit(data: CommitTree, trackbed_app: App, who: Scope, digest: str, space: str = "") -> TreeView:
    """Keep a tree whose blobs were sent before."""
    asked = _tree_digest(digest)
    if (actual := await asyncio.to_thread(tree_digest, data.listing)) != asked:
        raise BadInput("storage_digest_mismatch", expected=asked, actual=actual)
    entries = await asyncio.to_thread(decode_listing, data.listing)
    files = [FileDigest(entry.digest) for entry in entries if entry.kind == "f"]
    lacking = await trackbed_app.db.aread(lambda tx: trees.files_unheld(tx, who, files))
    if lacking:
        raise NotFound("storage_blobs_missing", count=len(lacking), digest=lacking[0])
    store = await asyncio.to_thread(trackbed_app.store_for, who, space)
    await asyncio.to_thread(store.put_listing, data.listing)
    if not who.admin:
        await trackbed_app.db.awrite(lambda tx: trees.hold(tx, who, [asked]), actor=who.actor)
    return _view(asked, entries, 0, 0)


@get("/api/v1/trees/{digest:str}", opt=READ_TOO)
async def tree(trackbed_app: App, who: Scope, digest: str, cursor: str = "", limit: int = 1000) -> TreeView:
    """A page of a tree, sorted by path bytes."""
    asked = await _readable(trackbed_app, who, digest)
    if not cursor.isdigit() and cursor:
        raise BadInput("tree_cursor_bad", cursor=cursor[:100])
    listing = await asyncio.to_thread(_listings.get, trackbed_app.store, asked)
    return _view(asked, list(listing.values()), int(cursor or 0), max(0, min(limit, MOST_ENTRIES)))


@get("/api/v1/trees/{digest:str}/listing", opt=READ_TOO)
async def listing(trackbed_app: App, who: Scope, digest: str) -> Response[bytes]:
    """The canonical listing itself."""
    asked = await _readable(trackbed_app, who, digest)
    data = await asyncio.to_thread(trackbed_app.store.listing, asked)
    return Response(data, media_type="application/octet-stream", headers=_closed(asked))


@get("/api/v1/trees/{digest:str}/content", opt=READ_TOO)
async def content(request: Request[Any, Any, Any], trackbed_app: App, who: Scope, digest: str) -> Stream:
    """The bytes of one file of a tree, or a stretch of them (`Range`). `path` is looked up in the listing, nowhere else."""
    asked = await _readable(trackbed_app, who, digest)
    path = _path_of(request.scope["query_string"])
    found = (await asyncio.to_thread(_listings.get, trackbed_app.store, asked)).get(path)
    if found is None or found.kind != "f":
        raise NotFound("tree_path_unknown", path=show(path), digest=asked)
    stretch = _stretch(request.headers.get("range", ""), request.headers.get("if-range", ""), found)
    start, length = stretch or (0, found.size)
    reader = await asyncio.to_thread(trackbed_app.store.open_range, FileDigest(found.digest), start, length)
    name = quote(found.path.rpartition(b"/")[2], safe="")
    headers = {
        **_closed(found.digest),
        "Accept-Ranges": "bytes",
        "Content-Length": str(length),
        "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
    }
    if stretch:
        headers["Content-Range"] = f"bytes {start}-{start + length - 1}/{found.size}"
    return Stream(
        blocks(reader), status_code=206 if stretch else 200, media_type="application/octet-stream", headers=headers
    )


def _closed(digest: str) -> dict[str, str]:
    """Headers under which a browser runs nothing of what it gets."""
    return {
        "ETag": f'"{digest}"',
        "Cache-Control": "private, no-cache",
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Content-Type-Options": "nosniff",
    }


def _stretch(asked: str, only_if: str, entry: Entry) -> tuple[int, int] | None:
    """Start and length of a `Range`; None for the whole. Several ranges at once are answered with the whole.

    Raises:
        RangeRefused: the range lies behind the end.
    """
    found = _RANGE.fullmatch(asked.strip())
    if found is None or not any(found.groups()) or (only_if and only_if != f'"{entry.digest}"'):
        return None
    first, last = found.groups()
    start = int(first) if first else max(0, entry.size - int(last))
    end = min(int(last), entry.size - 1) if first and last else entry.size - 1
    if start >= entry.size or end < start:
        raise RangeRefused("storage_range_bad", start=start, end=end, size=entry.size)
    return start, end - start + 1


def _path_of(query: bytes) -> bytes:
    """The `path` of a query as bytes: names that are not UTF-8 come percent-encoded, or whole as `path_hex`."""
    found = parse_qs(query.decode("latin-1"), keep_blank_values=True, encoding="utf-8", errors="surrogateescape")
    try:
        if "path_hex" in found:
            return bytes.fromhex(found["path_hex"][0])
        return found["path"][0].encode("utf-8", "surrogateescape")
    except (KeyError, ValueError) as fault:
        raise BadInput("tree_path_asked_badly") from fault


async def _readable(app: App, who: Scope, digest: str) -> Digest:
    asked = _tree_digest(digest)

    def read(tx: ReadTx) -> bool:
        return trees.tree_is_readable(tx, who, asked)

    if not await app.db.aread(read):
        raise NotFound("not_found", what=f"tree {asked}")
    return asked


def _tree_digest(text: str) -> Digest:
    if not is_digest(text):
        raise BadInput("storage_digest_bad", digest=text[:100])
    return Digest(text)


def _file_digest(text: str) -> FileDigest:
    if not is_file_digest(text):
        raise BadInput("storage_digest_bad", digest=text[:100])
    return FileDigest(text)


def _view(digest: Digest, entries: list[Entry], start: int, limit: int) -> TreeView:
    sizes = [entry.size for entry in entries if entry.kind == "f"]
    page = entries[start : start + limit]
    more = limit and start + limit < len(entries)
    return TreeView(
        digest=digest, files=len(sizes), size_bytes=sum(sizes), entries=[_line(entry) for entry in page],
        next=str(start + limit) if more else "",
    )  # fmt: skip


def _line(entry: Entry) -> ListingEntry:
    line = ListingEntry(
        type={"f": "file", "d": "dir", "l": "link"}[entry.kind],  # type: ignore[arg-type]
        executable=entry.executable,
        size_bytes=entry.size,
        file_digest=entry.digest,
        target=entry.target.decode("utf-8", "backslashreplace"),
    )
    try:
        line.path = entry.path.decode("utf-8")
    except UnicodeDecodeError:
        line.path_hex = entry.path.hex()
    return line


class _Listings:
    """Decoded listings that were asked for last: fetching a tree asks once for each of its files."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Digest, dict[bytes, Entry]] = OrderedDict()
        self._entries = 0
        self._lock = Lock()

    def get(self, store: Store, digest: Digest) -> dict[bytes, Entry]:
        with self._lock:
            if digest in self._kept:
                self._kept.move_to_end(digest)
                return self._kept[digest]
        found = {entry.path: entry for entry in store.read_listing(digest)}
        with self._lock:
            if digest not in self._kept:
                self._kept[digest] = found
                self._entries += len(found)
            while self._entries > _CACHED_ENTRIES and len(self._kept) > 1:
                self._entries -= len(self._kept.popitem(last=False)[1])
        return found


_listings = _Listings()

routes: list[Any] = [has, put_many, put_one, commit, tree, listing, content]
