"""Verbs of the registry. The tree of a version is in the store before the transaction that names it begins."""

from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import Row, Select, delete, func, select, update

from trackbed.base.entropy import new_id
from trackbed.base.errors import Conflict, NotFound
from trackbed.base.ids import Digest
from trackbed.db import ReadTx, Tx, scope_clause, upsert
from trackbed.domain.events import Event
from trackbed.domain.scope import Permission, Scope
from trackbed.registry.rules import Ref, checked_alias, checked_name, parse_ref
from trackbed.registry.sql import alias, model, space, version
from trackbed.wire.data import ModelVersionView, ModelView

DEFAULT_SPACE = "default"


def register(
    tx: Tx,
    scope: Scope,
    name: str,
    digest: Digest,
    *,
    space: str = DEFAULT_SPACE,
    size_bytes: int = 0,
    run_id: str = "",
    provenance: Mapping[str, Any] | None = None,
    again: bool = False,
) -> ModelVersionView:
    """Make the next version of a model; the model too, with its first one.

    The number is given under the lock of the model's row: no gaps, no number twice. The same tree from the same run
    again gives the version that it is already, unless it is wanted `again`.

    Raises:
        BadInput: `model_name_bad`.
        NotFound, Denied: the space, or the right to write in it, is missing.
    """
    name = checked_name(name)
    space_id = space_id_of(tx, scope, space, Permission.WRITE)
    first = {"id": new_id("mod"), "space_id": space_id, "name": name, "latest": 0, "created_us": tx.now_us}
    tx.execute(upsert(model, first, key=["space_id", "name"]))
    row = tx.one(select(model).where(model.c.space_id == space_id, model.c.name == name).with_for_update())
    assert row is not None
    mine = select(version.c.version).where(version.c.model_id == row.id)
    same = tx.scalar(mine.where(version.c.digest == digest, version.c.run_id == run_id).limit(1))
    if same is not None and not again:
        return _version(tx, scope, row.id, same)
    number = row.latest + 1
    values = {
        "model_id": row.id, "version": number, "space_id": space_id, "digest": digest, "size_bytes": size_bytes,
        "run_id": run_id, "provenance": msgspec.json.encode(provenance or {}).decode(), "created_us": tx.now_us,
        "created_by": tx.actor.name or tx.actor.id,
    }  # fmt: skip
    tx.execute(version.insert().values(**values))
    tx.execute(update(model).where(model.c.id == row.id).values(latest=number))
    data = {"model": name, "version": number, "digest": digest}
    tx.emit(Event("model.registered", row.id, space_id=space_id, run_id=run_id, data=data))
    return _version(tx, scope, row.id, number)


def set_alias(
    tx: Tx, scope: Scope, name: str, label: str, number: int, *, expected: int | None, space: str = DEFAULT_SPACE
) -> ModelView:
    """Point an alias to a version, if it stands where the caller last saw it (None: it is not there yet).

    Raises:
        Conflict: `model_alias_moved`, with where it stands.
        NotFound: `model_unknown`, `model_version_unknown`.
    """
    label = checked_alias(label)
    space_id_of(tx, scope, space, Permission.MAINTAIN)
    known = _named(tx, scope, Ref(checked_name(name)), space, name)
    tx.one(select(model.c.id).where(model.c.id == known.id).with_for_update())
    if not 1 <= number <= known.latest:
        raise NotFound("model_version_unknown", ref=f"{name}@{number}", name=name, latest=known.latest, aliases="-")
    now = tx.scalar(select(alias.c.version).where(alias.c.model_id == known.id, alias.c.alias == label))
    if now != expected:
        raise Conflict("model_alias_moved", alias=label, name=name, actual=now or "-", expected=expected or "-")
    by = tx.actor.name or tx.actor.id
    values = {"model_id": known.id, "alias": label, "version": number, "changed_us": tx.now_us, "changed_by": by}
    update = ["version", "changed_us", "changed_by"]
    tx.execute(upsert(alias, values, key=["model_id", "alias"], update=update))
    data = {"model": name, "alias": label, "version": number, "before": now or "-"}
    tx.emit(Event("model.alias_moved", known.id, space_id=known.space_id, data=data))
    return show(tx, scope, name, space)


def ensure(tx: Tx, scope: Scope, name: str, *, space: str = DEFAULT_SPACE) -> str:
    """Return the id of a model, made without a version if there is none; its first version comes with `register`.

    Raises:
        BadInput: `model_name_bad`.
        NotFound, Denied: the space, or the right to write in it, is missing.
    """
    name = checked_name(name)
    space_id = space_id_of(tx, scope, space, Permission.WRITE)
    this = select(model.c.id).where(model.c.space_id == space_id, model.c.name == name)
    known = tx.scalar(this)
    if known is not None:
        return known
    first = {"id": new_id("mod"), "space_id": space_id, "name": name, "latest": 0, "created_us": tx.now_us}
    tx.execute(upsert(model, first, key=["space_id", "name"]))
    made: str = tx.scalar(this)
    tx.emit(Event("model.created", made, space_id=space_id, data={"model": name}))
    return made


def drop_alias(tx: Tx, scope: Scope, name: str, label: str, *, space: str = DEFAULT_SPACE) -> bool:
    """Take an alias away; return whether it was there.

    Raises:
        NotFound: `model_unknown`.
    """
    space_id_of(tx, scope, space, Permission.MAINTAIN)
    known = _named(tx, scope, Ref(checked_name(name)), space, name)
    this = (alias.c.model_id == known.id, alias.c.alias == label)
    number = tx.scalar(select(alias.c.version).where(*this))
    if number is None:
        return False
    tx.execute(delete(alias).where(*this))
    data = {"model": name, "alias": label, "version": number}
    tx.emit(Event("model.alias_dropped", known.id, space_id=known.space_id, data=data))
    return True


def resolve(tx: ReadTx, scope: Scope, ref: str, space: str = DEFAULT_SPACE) -> ModelVersionView:
    """Return the version that a reference means now. `space` is where a name without one is looked up.

    Raises:
        BadInput: `model_ref_bad`.
        NotFound: `model_unknown` or `model_version_unknown`, with what there is.
    """
    asked = parse_ref(ref)
    known = _named(tx, scope, asked, asked.space or space or DEFAULT_SPACE, ref)
    mine = _versions(scope).where(version.c.model_id == known.id)
    if asked.which.startswith("b3:"):
        wanted = mine.where(version.c.digest.startswith(asked.which, autoescape=True))
        row = tx.one(wanted.order_by(version.c.version.desc()).limit(1))
    else:
        number = known.latest if asked.which == "latest" else asked.number or _aliases(tx, known.id).get(asked.which, 0)
        row = tx.one(mine.where(version.c.version == number))
    if row is None:
        labels = ", ".join(sorted(_aliases(tx, known.id))) or "-"
        raise NotFound("model_version_unknown", ref=ref, name=asked.name, latest=known.latest, aliases=labels)
    return _view(row, _aliases(tx, known.id))


def list_models(tx: ReadTx, scope: Scope, space: str = "") -> list[ModelView]:
    """Return the models of one space, or of all that the scope may read, each with its newest version."""
    stmt = _versions(scope).where(version.c.version == model.c.latest)
    if space:
        stmt = stmt.where(model.c.space_id == space_id_of(tx, scope, space))
    rows = tx.rows(stmt.order_by(model.c.name, model.c.space_id))
    labels: dict[str, dict[str, int]] = {}
    for one in tx.rows(select(alias).join(model, model.c.id == alias.c.model_id).where(scope_clause(model, scope))):
        labels.setdefault(one.model_id, {})[one.alias] = one.version
    return [
        ModelView(
            name=row.name, space=row.space, latest=row.latest, aliases=labels.get(row.model_id, {}),
            versions=[_view(row, labels.get(row.model_id, {}))],
        )
        for row in rows
    ]  # fmt: skip


def show(tx: ReadTx, scope: Scope, name: str, space: str = DEFAULT_SPACE) -> ModelView:
    """Return a model with its aliases and all its versions, the newest first.

    Raises:
        NotFound: `model_unknown`.
    """
    where = space or DEFAULT_SPACE
    known = _named(tx, scope, Ref(checked_name(name)), where, name)
    labels = _aliases(tx, known.id)
    rows = tx.rows(_versions(scope).where(version.c.model_id == known.id).order_by(version.c.version.desc()))
    versions = [_view(row, labels) for row in rows]
    return ModelView(name=known.name, space=where, latest=known.latest, aliases=labels, versions=versions)


def made_by(tx: ReadTx, scope: Scope, run_id: str) -> list[ModelVersionView]:
    """Return the versions that a run registered, the oldest first."""
    rows = tx.rows(_versions(scope).where(version.c.run_id == run_id).order_by(version.c.created_us, version.c.version))
    return [_view(row, _aliases(tx, row.model_id)) for row in rows]


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
    mine = select(model).where(model.c.space_id == space_id, scope_clause(model, scope))
    row = tx.one(mine.where(model.c.name == asked.name))
    if row is None:
        near = mine.with_only_columns(model.c.name)
        alike = near.where(func.lower(model.c.name).contains(asked.name.lower(), autoescape=True))
        names = tx.rows(alike.limit(5)) or tx.rows(near.order_by(model.c.created_us.desc()).limit(5))
        raise NotFound("model_unknown", ref=ref, space=where, known=", ".join(one.name for one in names) or "-")
    return row


def _aliases(tx: ReadTx, model_id: str) -> dict[str, int]:
    return {row.alias: row.version for row in tx.rows(select(alias).where(alias.c.model_id == model_id))}


def _version(tx: ReadTx, scope: Scope, model_id: str, number: int) -> ModelVersionView:
    row = tx.one(_versions(scope).where(version.c.model_id == model_id, version.c.version == number))
    assert row is not None
    return _view(row, _aliases(tx, model_id))


def _versions(scope: Scope) -> Select[Any]:
    return (
        select(version, model.c.name, model.c.latest, space.c.name.label("space"))
        .join(model, model.c.id == version.c.model_id)
        .join(space, space.c.id == model.c.space_id)
        .where(scope_clause(version, scope))
    )


def _view(row: Row[Any], labels: Mapping[str, int]) -> ModelVersionView:
    provenance: dict[str, Any] = msgspec.json.decode(row.provenance, type=dict[str, Any])
    return ModelVersionView(
        model=row.name, version=row.version, digest=row.digest, size_bytes=row.size_bytes, space=row.space,
        run_id=row.run_id, run_ref=str(provenance.get("run_ref", "")), created_us=row.created_us,
        created_by=row.created_by, provenance=provenance,
        aliases=sorted(label for label, number in labels.items() if number == row.version),
    )  # fmt: skip
