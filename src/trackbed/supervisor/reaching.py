"""Trees of other spaces: a node holds the key of its own domain only, so the server opens what a run pinned elsewhere.

own domain has it → read directly     else → listing and files over HTTP, each verified by its digest
"""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
from blake3 import blake3

from trackbed.base.errors import Damaged, NotFound, Unavailable
from trackbed.base.ids import Digest
from trackbed.formats.tree import Entry, decode_listing, tree_digest
from trackbed.storage.checkout import checkout
from trackbed.storage.files import write_all
from trackbed.storage.store import Progress, Store
from trackbed.supervisor.lease import Server

_TRIES, _PAUSE_S = 4, 1.0


class Reaching:
    """What a `NodeCache` asks of a store: listings and trees."""

    def __init__(self, own: Store, server: Callable[[], Server]) -> None:
        self._own, self._server = own, server

    def read_listing(self, digest: Digest) -> list[Entry]:
        """The entries of a tree. NotFound: neither the own domain nor the server has it for this attempt."""
        try:
            return self._own.read_listing(digest)
        except NotFound:
            return decode_listing(self._listing(digest))

    def get_tree(
        self, digest: Digest, target: Path, *, read_only: bool = False, on_progress: Progress | None = None
    ) -> None:
        """As `Store.get_tree`."""
        if self._own.has_tree(digest):
            self._own.get_tree(digest, target, read_only=read_only, on_progress=on_progress)
            return
        with _closing(self._server()) as server:

            def write(entry: Entry, fd: int) -> None:
                self._file(server, digest, entry, fd)

            checkout(self.read_listing(digest), target, write, read_only=read_only, on_progress=on_progress)

    def _listing(self, digest: Digest) -> bytes:
        with _closing(self._server()) as server, _told(digest), server.stream(f"/trees/{digest}/listing", {}) as answer:
            data = answer.read()
            _checked(answer, digest)
        if tree_digest(data) != digest:
            raise Damaged("storage_record_damaged", what="listing", name=digest)
        return data

    def _file(self, server: Server, digest: Digest, entry: Entry, fd: int) -> None:
        """Write a file, from where a broken connection left it."""
        hasher, done = blake3(), 0
        for attempt in range(_TRIES):
            headers = {"Range": f"bytes={done}-"} if done else {}
            query = {"path_hex": entry.path.hex()}
            try:
                with server.stream(f"/trees/{digest}/content", query, headers=headers) as answer:
                    if answer.status_code not in (200, 206):
                        answer.read()
                    _checked(answer, digest)
                    for piece in answer.iter_bytes():
                        write_all(fd, piece)
                        hasher.update(piece)
                        done += len(piece)
                break
            except httpx.HTTPError as fault:
                if attempt == _TRIES - 1:
                    raise Unavailable("storage_elsewhere_away", digest=digest, why=str(fault)) from fault
                time.sleep(_PAUSE_S * 2**attempt)
        if hasher.hexdigest() != entry.digest:
            raise Damaged("storage_digest_mismatch", actual=hasher.hexdigest(), expected=entry.digest)


def _checked(answer: httpx.Response, digest: Digest) -> None:
    if answer.status_code in (401, 403, 404):
        raise NotFound("storage_tree_missing", digest=digest)
    answer.raise_for_status()


@contextmanager
def _told(digest: Digest) -> Generator[None]:
    try:
        yield
    except httpx.HTTPError as fault:
        raise Unavailable("storage_elsewhere_away", digest=digest, why=str(fault)) from fault


@contextmanager
def _closing(server: Server) -> Generator[Server]:
    try:
        yield server
    finally:
        server.close()
