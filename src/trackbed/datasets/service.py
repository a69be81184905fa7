"""Verbs of datasets. The tree of a version is in the store before the transaction that names it begins."""

from typing import Any

from sqlalchemy import Row, Select, func, select, update

from trackbed.base.entropy import new_id
from trackbed.base.errors import NotFound
from trackbed.base.ids import Digest
from trackbed.datasets.rules import Ref, checked_name, parse_ref
from trackbed.datasets.sql import dataset, space, version
from trackbed.db import ReadTx, Tx, scope_clause, upsert
from trackbed.domain.events import Event
from trackbed.domain.scope import Permission, Scope
from trackbed.wire.data import DatasetVersionView, DatasetView

DEFAULT_SPACE = "default"


def commit(
    tx: Tx,
    scope: Scope,
    name: str,
    digest: Digest,
    *,
    space: str = DEFAULT_SPACE,
    kind: str = "folder",
    files: int = 0,
    size_bytes: int = 0,
    message: str = "",
) -> DatasetVersionView:
    """Make the next version of a dataset; the dataset too, with its first one.

    The number is given here, under the lock of the dataset's row: no gaps, no number twice. The tree of the newest
    version again gives that version, marked `unchanged`.

    Raises:
        BadInput: `dataset_name_bad`.
        NotFound, Denied: the space, or the right to write in it, is missing.
    """
    name = checked_name(name)
    space_id = space_id_of(tx, scope, space, Permission.WRITE)
    first = {"id": new_id("dat"), "space_id": space_id, "name": name, "latest": 0, "created_us": tx.now_us}
    tx.execute(upsert(dataset, first, key=["space_id", "name"]))
    row = tx.one(select(dataset).where(dataset.c.space_id == space_id, dataset.c.name == name).with_for_update())
    assert row is not None
    newest = tx.one(_versions(scope).where(version.c.dataset_id == row.id, version.c.version == row.latest))
    if newest is not None and (newest.digest, newest.kind) == (digest, kind):
        return _view(newest, unchanged=True)
    number = row.latest + 1
    values = {
        "dataset_id": row.id, "version": number, "space_id": space_id, "digest": digest, "kind": kind, "files": files,
        "size_bytes": size_bytes, "message": message, "created_us": tx.now_us, "created_by": tx.actor.name or tx.actor.id,
    }  # fmt: skip
    tx.execute(version.insert().values(**values))
    tx.execute(update(dataset).where(dataset.c.id == row.id).values(latest=number))
    data = {"dataset": name, "version": number, "digest": digest, "size_bytes": size_bytes}
    tx.emit(Event("dataset.committed", row.id, space_id=space_id, data=data))
    made = tx.one(_versions(scope).where(version.c.dataset_id == row.id, version.c.version == number))
    assert made is not None
    return _view(made)


def resolve(tx: ReadTx, scope: Scope, ref: str, space: str = DEFAULT_SPACE) -> DatasetVersionView:
    """Return the version that a reference means now. `space` is where a name without one is looked up.

    Raises:
        BadInput: `dataset_ref_bad`.
        NotFound: `dataset_unknown` or `dataset_version_unknown`, with what there is.
    """
    asked = parse_ref(ref)
    where = asked.space or space or DEFAULT_SPACE
    known = _named(tx, scope, asked, where, ref)
    mine = _versions(scope).where(version.c.dataset_id == known.id)
    if asked.which.startswith("b3:"):
        wanted = mine.where(version.c.digest.startswith(asked.which, autoescape=True))
        row = tx.one(wanted.order_by(version.c.version.desc()).limit(1))
    else:
        row = tx.one(mine.where(version.c.version == (asked.number or known.latest)))
    if row is None:
        raise NotFound("dataset_version_unknown", ref=ref, name=asked.name, latest=known.latest)
    return _view(row)


def list_datasets(tx: ReadTx, scope: Scope, space: str = "") -> list[DatasetView]:
    """Return the datasets of one space, or of all that the scope may read, each with its newest version."""
    stmt = _versions(scope).where(version.c.version == dataset.c.latest)
    if space:
        stmt = stmt.where(dataset.c.space_id == space_id_of(tx, scope, space))
    rows = tx.rows(stmt.order_by(dataset.c.name, dataset.c.space_id))
    return [DatasetView(name=row.name, space=row.space, latest=row.latest, versions=[_view(row)]) for row in rows]


def show(tx: ReadTx, scope: Scope, name: str, space: str = DEFAULT_SPACE) -> DatasetView:
    """Return a dataset with all its versions, the newest first.

    Raises:
        NotFound: `dataset_unknown`.
    """
    where = space or DEFAULT_SPACE
    known = _named(tx, scope, Ref(checked_name(name)), where, name)
    rows = tx.rows(_versions(scope).where(version.c.dataset_id == known.id).order_by(version.c.version.desc()))
    return DatasetView(name=known.name, space=where, latest=known.latest, versions=[_view(row) for row in rows])


def is_named(tx: ReadTx, scope: Scope, digest: str) -> bool:
    """Tell whether a version that the scope may read has this tree."""
    stmt = select(version.c.digest).where(version.c.digest == digest, scope_clause(version, scope)).limit(1)
    return tx.one(stmt) is not None


def space_id_of(tx: ReadTx, scope: Scope, name: str, permission: Permission = Permission.READ) -> str:
    """Return the id of a space by its name, if the scope has the permission there."""
    found = tx.scalar(select(space.c.id).where(space.c.name == (name or DEFAULT_SPACE)))
    what = f"space {name or DEFAULT_SPACE}"
    if found is None:
        raise NotFound("not_found", what=what)
    scope.require(permission, found, what=what)
    return found


def _named(tx: ReadTx, scope: Scope, asked: Ref, where: str, ref: str) -> Row[Any]:
    space_id = space_id_of(tx, scope, where)
    mine = select(dataset).where(dataset.c.space_id == space_id, scope_clause(dataset, scope))
    row = tx.one(mine.where(dataset.c.name == asked.name))
    if row is None:
        near = mine.with_only_columns(dataset.c.name)
        alike = near.where(func.lower(dataset.c.name).contains(asked.name.lower(), autoescape=True))
        names = tx.rows(alike.limit(5)) or tx.rows(near.order_by(dataset.c.created_us.desc()).limit(5))
        raise NotFound("dataset_unknown", ref=ref, space=where, known=", ".join(one.name for one in names) or "-")
    return row


def _versions(scope: Scope) -> Select[Any]:
    return (
        select(version, dataset.c.name, dataset.c.latest, space.c.name.label("space"))
        .join(dataset, dataset.c.id == version.c.dataset_id)
        .join(space, space.c.id == dataset.c.space_id)
        .where(scope_clause(version, scope))
    )


def _view(row: Row[Any], *, unchanged: bool = False) -> DatasetVersionView:
    return DatasetVersionView(
        dataset=row.name, version=row.version, digest=row.digest, kind=row.kind, files=row.files,
        size_bytes=row.size_bytes, message=row.message, created_us=row.created_us, created_by=row.created_by,
        space=row.space, unchanged=unchanged,
    )  # fmt: skip
