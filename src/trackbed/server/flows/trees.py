"""Which trees and blobs a scope may read, and which it may build on.

A bare digest opens nothing: a tree is read through a thing of a readable space that refers to it. And nothing can be claimed
by its digest alone: who commits a tree has sent its bytes, or somebody of the same space has. One store serves all spaces, so
this is kept in rows; an admin, who may read all, needs none.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from sqlalchemy import Column, Integer, Select, Table, Text, select

from trackbed.base.ids import Digest, FileDigest
from trackbed.datasets.service import is_named as is_dataset
from trackbed.db import ReadTx, Tx, metadata, scope_clause, upsert
from trackbed.domain.scope import ActorKind, Permission, Scope
from trackbed.registry.service import is_named as is_model
from trackbed.sources.packs_sql import pack
from trackbed.sources.reviews import is_named as is_review
from trackbed.tracking.runs_tables import attempt, checkpoint, run

_AT_ONCE = 500  # values in one statement

holder = Table(
    "content_holder",
    metadata,
    Column("holder", Text, primary_key=True),  # a space id
    Column("digest", Text, primary_key=True),  # of a file, or b3:… of a tree
    Column("created_us", Integer, nullable=False),
)


def tree_is_readable(tx: ReadTx, scope: Scope, digest: Digest) -> bool:
    """Tell whether something that the scope may read refers to a tree."""
    return (
        is_dataset(tx, scope, digest)
        or is_model(tx, scope, digest)
        or is_review(tx, scope, digest)
        or any(tx.one(stmt.limit(1)) is not None for stmt in _references(scope, digest))
        or _is_input(tx, scope, digest)
    )


def may_use(tx: ReadTx, scope: Scope, digest: Digest) -> bool:
    """Tell whether a scope may name a tree in what it makes: it may read it, or it has sent it."""
    return not unheld(tx, scope, [digest]) or tree_is_readable(tx, scope, digest)


def unheld(tx: ReadTx, scope: Scope, digests: Iterable[str]) -> set[str]:
    """Return which of these the scope has not sent, nor anybody of its spaces."""
    asked = set(digests)
    spaces = _spaces(scope)
    if spaces is None:
        return set()
    for some in _pieces(sorted(asked)):
        stmt = select(holder.c.digest).where(holder.c.holder.in_(spaces), holder.c.digest.in_(some))
        asked -= {row.digest for row in tx.rows(stmt)}
    return asked


def hold(tx: Tx, scope: Scope, digests: Iterable[str]) -> None:
    """Note that the scope has sent these."""
    wanted = sorted(set(digests))
    rows = [
        {"holder": space, "digest": digest, "created_us": tx.now_us}
        for space in _spaces(scope) or ()
        for digest in wanted
    ]
    if rows:
        tx.execute(upsert(holder, key=["holder", "digest"]), rows)


def _spaces(scope: Scope) -> list[str] | None:
    """The spaces that share what a scope sends; None for one that may read all anyway."""
    if scope.actor.kind is ActorKind.ATTEMPT:
        return [scope.actor.space_id]
    spaces = scope.spaces(Permission.WRITE)
    return None if spaces is None else sorted(spaces)


def _references(scope: Scope, digest: Digest) -> Iterator[Select[Any]]:
    yield select(run.c.id).where(run.c.tree_digest == digest, scope_clause(run, scope))
    yield select(checkpoint.c.digest).where(checkpoint.c.digest == digest, scope_clause(checkpoint, scope))
    left = (attempt.c.outputs_digest == digest) | attempt.c.products.contains(digest, autoescape=True)
    yield select(attempt.c.id).where(left, scope_clause(attempt, scope))


def _is_input(tx: ReadTx, scope: Scope, digest: Digest) -> bool:
    """An attempt reads what its run pinned, in whatever space that lies."""
    if scope.actor.kind is not ActorKind.ATTEMPT:
        return False
    pinned = run.c.spec.contains(digest, autoescape=True)
    mine = select(run.c.id).where(run.c.id == scope.actor.run_id)
    if tx.one(mine.where(pinned)) is not None:
        return True
    packed = (pack.c.environment == run.c.environment_digest) & (pack.c.tree_digest == digest)
    return tx.one(mine.join(pack, packed)) is not None


def _pieces(items: list[str]) -> Iterator[list[str]]:
    left = iter(items)
    while piece := list(islice(left, _AT_ONCE)):
        yield piece


def files_unheld(tx: ReadTx, scope: Scope, digests: Iterable[FileDigest]) -> list[FileDigest]:
    """As `unheld` of files, each once and in the order asked."""
    asked = list(dict.fromkeys(digests))
    lacking = unheld(tx, scope, asked)
    return [digest for digest in asked if digest in lacking]
