"""reviewed: what is protected passes only when somebody else has looked at it: code of runs, templates, aliases."""

import asyncio
from dataclasses import dataclass, field

from blake3 import blake3

from trackbed.base.errors import Fault, NotFound
from trackbed.base.ids import Digest, FileDigest
from trackbed.db import ReadTx, Tx
from trackbed.domain.scope import Scope
from trackbed.formats.tree import Entry, show
from trackbed.registry import service as registry
from trackbed.server.app import App
from trackbed.server.flows.trees import may_use
from trackbed.sources import reviews
from trackbed.sources.lines import changed_files, fill
from trackbed.wire.code import FileDiff
from trackbed.wire.data import ModelView
from trackbed.wire.reviews import ReviewItem, ReviewRequest, ReviewView
from trackbed.wire.runs import SubmitRequest


@dataclass(frozen=True)
class Judged:
    """What reviews say of the code of a run: what is missing, and which reviews stand behind it."""

    faults: list[Fault] = field(default_factory=list[Fault])
    reviews: list[str] = field(default_factory=list[str])


async def judge(app: App, scope: Scope, request: SubmitRequest) -> Judged:
    """Look at the protected files of a run's tree. A tree that is not there, or not theirs, is told elsewhere."""
    tree, where = request.tree, request.spec.space
    if tree is None or not tree.digest:
        return Judged()
    digest = Digest(tree.digest)

    def look(tx: ReadTx) -> bool:
        return bool(reviews.protections(tx, scope, where, "path")) and may_use(tx, scope, digest)

    if not await app.db.aread(look) or not await asyncio.to_thread(app.store.has_tree, digest):
        return Judged()
    entries = await asyncio.to_thread(app.store.read_listing, digest)
    items = [ReviewItem(kind="path", subject=show(one.path), digest=one.digest) for one in entries if one.kind == "f"]
    reply = await app.db.aread(lambda tx: reviews.check(tx, scope, items, space=where))
    return Judged(reviews.faults_of(reply, field="code"), [one.id for one in reply.reviews])


def template_item(name: str, text: str) -> ReviewItem:
    return ReviewItem(kind="template", subject=name, digest="b3:" + blake3(text.encode()).hexdigest())


def set_alias(
    tx: Tx, scope: Scope, name: str, label: str, number: int, *, expected: int | None, space: str
) -> ModelView:
    """As the registry's, where nobody protects the alias or the version was approved for it.

    Raises:
        Denied: `review_missing`.
    """
    version = registry.resolve(tx, scope, f"{name}@{number}", space)
    reviews.require(tx, scope, ReviewItem(kind="alias", subject=f"{name}@{label}", digest=version.digest), space=space)
    return registry.set_alias(tx, scope, name, label, number, expected=expected, space=space)


def request(app: App, scope: Scope, asked: ReviewRequest) -> ReviewView:
    """Ask for a review. Blocks.

    Raises:
        NotFound: `storage_tree_missing`: the files of the items were not sent.
    """
    if asked.tree:
        digest = Digest(asked.tree)
        if not app.store.has_tree(digest) or not app.db.read(lambda tx: may_use(tx, scope, digest)):
            raise NotFound("storage_tree_missing", digest=asked.tree)
    return app.db.write(lambda tx: reviews.request(tx, scope, asked), actor=scope.actor)


def show_with_files(app: App, scope: Scope, ref: str) -> ReviewView:
    """A review with its files, each against what was approved of it last. Blocks: reads the store."""
    found, before = app.db.read(lambda tx: _with_before(tx, scope, ref))
    if not found.tree:
        return found
    mine = _entries(app, found.tree)
    for one in found.items:
        now = mine.get(one.subject)
        if one.kind == "path" and now is not None and now.digest == one.digest:
            was = _entries(app, before[one.subject]).get(one.subject) if one.subject in before else None
            found.files += _diff(app, was, now)
    return found


def _with_before(tx: ReadTx, scope: Scope, ref: str) -> tuple[ReviewView, dict[str, str]]:
    found = reviews.show(tx, scope, ref)
    space_id = reviews.space_id_of(tx, scope, found.space)
    trees = {
        one.subject: reviews.last_approved(tx, space_id, one.subject, but=one.digest)
        for one in found.items
        if one.kind == "path"
    }
    return found, {subject: tree for subject, tree in trees.items() if tree}


def _entries(app: App, tree: str) -> dict[str, Entry]:
    return {show(entry.path): entry for entry in app.store.read_listing(Digest(tree))}


def _diff(app: App, was: Entry | None, now: Entry) -> list[FileDiff]:
    def read(entry: Entry) -> bytes:
        with app.store.open_range(FileDigest(entry.digest)) as reader:
            return reader.read()

    found = changed_files([was] if was else [], [now])
    for file, one, other in found:
        fill(file, one, other, read)
    return [file for file, _, _ in found]
