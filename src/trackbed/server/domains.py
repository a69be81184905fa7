"""One store domain a space: unit of encryption and of deduplication. Which space has which is a row; secrets lie in the store.

The default space has the store itself as its domain, and so have the spaces of an installation from before there were
several. Every other space gets one at its first use. Whoever may read a thing of another space (routes decide that) reads it
through the server from whichever domain holds it; what is written goes to the domain of its space.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

from sqlalchemy import Column, Integer, Table, Text, select

from trackbed.access.tables import space
from trackbed.base.errors import NotFound
from trackbed.base.ids import Digest, FileDigest
from trackbed.db import Database, ReadTx, Tx, metadata, upsert
from trackbed.domain.events import Event
from trackbed.domain.scope import SYSTEM
from trackbed.formats.tree import Entry, decode_listing
from trackbed.storage.chunks import ChunkStore
from trackbed.storage.domains import mark_domain, new_domain_id
from trackbed.storage.store import Progress, Reader, Refs, Store, TreeInfo

_T = TypeVar("_T")
_REMEMBERED = 4096  # digests whose domain is known
_ABSENT = ("storage_tree_missing", "storage_blob_missing")

row_of = Table(
    "store_domain",
    metadata,
    Column("space_id", Text, primary_key=True),
    Column("domain", Text, nullable=False),  # empty: the store itself
    Column("created_us", Integer, nullable=False),
)


class Domains:
    """The domains of an installation. Threads may share it; opened ones stay open."""

    def __init__(self, db: Database, first: ChunkStore, open_domain: Callable[[str], ChunkStore]) -> None:
        self._db, self._first, self._open = db, first, open_domain
        self._opened: dict[str, ChunkStore] = {"": first}
        self._of: dict[str, str] = {}
        self._lock = threading.RLock()
        self._known: OrderedDict[str, str] = OrderedDict()

    def prepare(self) -> None:
        """At the first start that knows of domains, the spaces that are there keep the one that there is."""

        def work(tx: Tx) -> None:
            if tx.one(select(row_of).limit(1)) is None:
                for found in tx.rows(select(space.c.id)):
                    values = {"space_id": found.id, "domain": "", "created_us": tx.now_us}
                    tx.execute(upsert(row_of, values, key=["space_id"]))

        self._db.write(work, actor=SYSTEM.actor)

    def own(self, space_id: str) -> ChunkStore:
        """The domain of a space; made at its first use. Blocks."""
        with self._lock:
            if space_id not in self._of:
                self._of[space_id] = self._assign(space_id)
            return self._store(self._of[space_id])

    def id_of(self, space_id: str) -> str:
        """The id of a space's domain; empty for the store itself."""
        self.own(space_id)
        return self._of[space_id]

    def every(self) -> dict[str, ChunkStore]:
        """All domains by id, the first one first."""
        known = self._db.read(lambda tx: [str(row.domain) for row in tx.rows(select(row_of.c.domain).distinct())])
        with self._lock:
            return {domain: self._store(domain) for domain in sorted({"", *known})}

    def anywhere(self, digest: str, first: ChunkStore, ask: Callable[[ChunkStore], _T]) -> _T:
        """Ask the domains in turn for what a digest names, `first` and the one that had it before the others.

        Raises:
            NotFound: no domain has it.
        """
        missed: NotFound | None = None
        for domain, store in self._in_turn(digest, first):
            try:
                found = ask(store)
            except NotFound as fault:
                if fault.code not in _ABSENT:
                    raise
                missed = missed or fault
                continue
            self._remember(digest, domain)
            return found
        assert missed is not None
        raise missed

    def _in_turn(self, digest: str, first: ChunkStore) -> Iterator[tuple[str, ChunkStore]]:
        every = self.every() if len(self._opened) > 1 or self._several() else {"": self._first}
        hint = self._known.get(digest)
        order = sorted(every, key=lambda one: (one != hint, every[one] is not first))
        return ((domain, every[domain]) for domain in order)

    def _several(self) -> bool:
        return self._db.read(lambda tx: tx.one(select(row_of).where(row_of.c.domain != "").limit(1))) is not None

    def _remember(self, digest: str, domain: str) -> None:
        with self._lock:
            self._known[digest] = domain
            self._known.move_to_end(digest)
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)

    def _store(self, domain: str) -> ChunkStore:
        if domain not in self._opened:
            self._opened[domain] = self._open(domain)
        return self._opened[domain]

    def _assign(self, space_id: str) -> str:
        def look(tx: ReadTx) -> str | None:
            return tx.scalar(select(row_of.c.domain).where(row_of.c.space_id == space_id))

        found = self._db.read(look)
        if found is not None:
            return found
        fresh = new_domain_id()
        mark_domain(self._first.backend, fresh)  # the mark first: a domain that nobody knows of would be left behind
        self._store(fresh)

        def work(tx: Tx) -> str:
            values = {"space_id": space_id, "domain": fresh, "created_us": tx.now_us}
            made = tx.execute(upsert(row_of, values, key=["space_id"]).returning(row_of.c.domain)).first()
            if made is not None:
                tx.emit(Event("store.domain_made", space_id, space_id, data={"domain": fresh}))
            return str(tx.scalar(select(row_of.c.domain).where(row_of.c.space_id == space_id)))

        return self._db.write(work, actor=SYSTEM.actor)


class SpaceStore:
    """Adapter of `Store` for one space: writes go to its domain, reads go on to the others."""

    def __init__(self, domains: Domains, own: ChunkStore) -> None:
        self._domains, self.own = domains, own

    @property
    def refs(self) -> Refs:
        return self.own.refs

    def missing(self, digests: Iterable[FileDigest]) -> list[FileDigest]:
        return self.own.missing(digests)

    def put_blob(self, source: BinaryIO | bytes | Path, *, expect: FileDigest | None = None) -> tuple[FileDigest, int]:
        return self.own.put_blob(source, expect=expect)

    def put_blobs(self, items: Iterable[tuple[FileDigest, bytes]]) -> int:
        return self.own.put_blobs(items)

    def put_tree(self, root: Path, *, on_progress: Progress | None = None, owner: str = "") -> TreeInfo:
        return self.own.put_tree(root, on_progress=on_progress, owner=owner)

    def put_listing(self, listing: bytes) -> Digest:
        """As the port; files that only another domain holds are sealed anew for this one."""
        try:
            return self.own.put_listing(listing)
        except NotFound:
            files = {FileDigest(entry.digest): entry.size for entry in decode_listing(listing) if entry.kind == "f"}
            for digest in self.own.missing(files):
                with self.open_range(digest) as reader:
                    self.own.put_blob(reader, expect=digest)  # type: ignore[arg-type]
            return self.own.put_listing(listing)

    def open_range(self, digest: FileDigest, start: int = 0, length: int | None = None) -> Reader:
        return self._domains.anywhere(digest, self.own, lambda store: store.open_range(digest, start, length))

    def listing(self, digest: Digest) -> bytes:
        return self._domains.anywhere(digest, self.own, lambda store: store.listing(digest))

    def read_listing(self, digest: Digest) -> list[Entry]:
        return decode_listing(self.listing(digest))

    def has_tree(self, digest: Digest) -> bool:
        return self.own.has_tree(digest) or any(store.has_tree(digest) for store in self._domains.every().values())

    def get_tree(
        self, digest: Digest, target: Path, *, read_only: bool = False, on_progress: Progress | None = None
    ) -> None:
        self._domains.anywhere(
            digest, self.own, lambda store: store.get_tree(digest, target, read_only=read_only, on_progress=on_progress)
        )


def space_store(domains: Domains, space_id: str) -> Store:
    return SpaceStore(domains, domains.own(space_id))
