"""What the database still names in the store: every digest that stands in any text of any row, so no room can be forgotten.

Four tables only remember: who once sent a file, what once happened, what was once answered, which checkpoints were let go.
They keep nothing alive; and an attempt that has ended does not hold the checkpoint it started from.
"""

import dataclasses
import re

from sqlalchemy import String, select
from sqlalchemy.types import TypeEngine

from trackbed.base.errors import Conflict
from trackbed.base.ids import Digest, FileDigest
from trackbed.db import ReadTx, metadata
from trackbed.domain.scope import SYSTEM
from trackbed.server.app import App
from trackbed.server.flows import environments
from trackbed.storage.chunks import ChunkStore
from trackbed.storage.gc import Alive, collect
from trackbed.storage.store import RefValue
from trackbed.tracking import runs_attempts
from trackbed.wire.store import CollectReply, CollectRequest

_TREE = re.compile(r"b3:([0-9a-f]{64})")
_FILE = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_REMEMBER = frozenset({"content_holder", "event", "idempotency_key", "checkpoint_dropped"})
_WHILE_LIVE = {"attempt": "resume_digest"}


def alive(app: App) -> Alive:
    """Every tree and file digest of the database. What only looks like one (a hash of a token, say) does no harm."""
    trees: set[Digest] = set()
    files: set[FileDigest] = set()

    def work(tx: ReadTx) -> None:
        for table in metadata.tables.values():
            if table.name in _REMEMBER:
                continue
            columns = [
                column for column in table.c if _is_text(column.type) and _WHILE_LIVE.get(table.name) != column.name
            ]
            for rows in tx.pages(select(*columns)) if columns else ():
                for row in rows:
                    for value in row:
                        if isinstance(value, str) and len(value) >= 64:
                            trees.update(Digest("b3:" + one) for one in _TREE.findall(value))
                            files.update(FileDigest(one) for one in _FILE.findall(value))
        trees.update(Digest(row.resume_digest) for row in runs_attempts.live(tx) if row.resume_digest)

    app.db.read(work)
    return Alive(frozenset(trees), frozenset(files))


def collect_store(app: App, asked: CollectRequest) -> CollectReply:
    """Collect what nothing names, domain by domain; the numbers are those of all.

    Raises:
        Conflict: `storage_not_collected`, format 0 keeps everything.
        Damaged: `storage_gc_refused`.
    """
    stores = app.chunk_stores()
    if not stores:
        raise Conflict("storage_not_collected")
    if not asked.dry_run:
        app.db.write(environments.forget_unused, actor=SYSTEM.actor)
    total: CollectReply | None = None
    for store in stores.values():
        found = collect(
            store,
            lambda store=store: named(app, store),
            grace_s=asked.grace_s,
            dry_run=asked.dry_run,
            compact=asked.compact,
        )
        report = CollectReply(**dataclasses.asdict(found))
        total = total.plus(report) if total else report
    assert total is not None
    return total


def named(app: App, store: ChunkStore) -> Alive:
    """What the database or a pointer of the store names."""
    pointers: dict[str, RefValue] = store.refs.values() if hasattr(store.refs, "values") else {}  # pyright: ignore[reportAttributeAccessIssue]
    pointed = {Digest(one.value) for one in pointers.values() if one.value.startswith("b3:")}
    found = alive(app)
    return Alive(found.trees | pointed, found.files)


def _is_text(kind: "TypeEngine[object]") -> bool:
    return isinstance(kind, String)
