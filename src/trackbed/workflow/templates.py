"""Verbs on templates. A version is written once; numbers have no gaps; a writer may say which version it saw last."""

from typing import Any

import msgspec
from blake3 import blake3
from sqlalchemy import Row, Select, func, select, update

from trackbed.base.entropy import new_id
from trackbed.base.errors import BadInput, Conflict, NotFound
from trackbed.db import ReadTx, Tx, scope_clause, upsert
from trackbed.domain.events import Event
from trackbed.domain.scope import Permission, Scope
from trackbed.wire.templates import TemplateVersionView, TemplateView
from trackbed.workflow.sql import space, template, version
from trackbed.workflow.template import Template, full_schema
from trackbed.workflow.values import TEMPLATE_REF

DEFAULT_SPACE = "default"


def add(
    tx: Tx, scope: Scope, read: Template, text: str, *, space: str = DEFAULT_SPACE, expected: int | None = None
) -> TemplateVersionView:
    """Make the next version of a template that was read without faults; the template too, with its first one.

    The number is given under the lock of the template's row: no gaps, no number twice. The newest text again is the version
    that it is already.

    Raises:
        Conflict: `template_moved`, with the version that stands: somebody else added one since.
        NotFound, Denied: the space, or the right to maintain it, is missing.
    """
    space_id = _space_id(tx, scope, space, Permission.MAINTAIN)
    first = {"id": new_id("tpl"), "space_id": space_id, "name": read.name, "latest": 0, "created_us": tx.now_us}
    tx.execute(upsert(template, first, key=["space_id", "name"]))
    mine = select(template).where(template.c.space_id == space_id, template.c.name == read.name)
    row = tx.one(mine.with_for_update())
    assert row is not None
    digest = "b3:" + blake3(text.encode()).hexdigest()
    stands = tx.one(select(version).where(version.c.template_id == row.id, version.c.version == row.latest))
    if stands is not None and stands.digest == digest:
        return msgspec.structs.replace(_view(stands, read.name, space), unchanged=True)
    if expected is not None and expected != row.latest:
        raise Conflict("template_moved", name=read.name, expected=expected, latest=row.latest)
    number = row.latest + 1
    values = {
        "template_id": row.id, "version": number, "space_id": space_id, "digest": digest, "text": text,
        "document": msgspec.json.encode(read).decode(), "created_us": tx.now_us,
        "created_by": tx.actor.name or tx.actor.id,
    }  # fmt: skip
    tx.execute(version.insert().values(**values))
    tx.execute(update(template).where(template.c.id == row.id).values(latest=number))
    data = {"template": read.name, "version": number, "digest": digest}
    tx.emit(Event("template.added", row.id, space_id=space_id, data=data))
    made = tx.one(select(version).where(version.c.template_id == row.id, version.c.version == number))
    assert made is not None
    return _view(made, read.name, space)


def resolve(tx: ReadTx, scope: Scope, ref: str, where: str = DEFAULT_SPACE) -> TemplateVersionView:
    """Return the version that `[space/]name[@n]` means now; without a number the newest.

    Raises:
        BadInput: `template_ref_bad`.
        NotFound: `template_unknown` with what there is, `template_version_unknown`.
    """
    asked = TEMPLATE_REF.fullmatch(ref)
    if asked is None:
        raise BadInput("template_ref_bad", ref=ref[:200])
    room = asked["space"] or where or DEFAULT_SPACE
    known = _named(tx, scope, asked["name"], room, ref)
    number = known.latest if asked["which"] in (None, "latest") else int(asked["which"])
    row = tx.one(select(version).where(version.c.template_id == known.id, version.c.version == number))
    if row is None:
        raise NotFound("template_version_unknown", ref=ref, name=known.name, latest=known.latest)
    return _view(row, known.name, room)


def list_templates(tx: ReadTx, scope: Scope, where: str = "") -> list[TemplateView]:
    """Return the templates of one space, or of all that the scope may read, each with its newest version."""
    stmt = _all(scope).where(version.c.version == template.c.latest)
    if where:
        stmt = stmt.where(template.c.space_id == _space_id(tx, scope, where))
    rows = tx.rows(stmt.order_by(template.c.name, template.c.space_id))
    return [
        TemplateView(name=row.name, space=row.space, latest=row.version, versions=[_view(row, row.name, row.space)])
        for row in rows
    ]


def show(tx: ReadTx, scope: Scope, name: str, where: str = DEFAULT_SPACE) -> TemplateView:
    """Return a template with all its versions, the newest first.

    Raises:
        NotFound: `template_unknown`.
    """
    room = where or DEFAULT_SPACE
    known = _named(tx, scope, name, room, name)
    rows = tx.rows(select(version).where(version.c.template_id == known.id).order_by(version.c.version.desc()))
    versions = [_view(row, known.name, room) for row in rows]
    return TemplateView(name=known.name, space=room, latest=known.latest, versions=versions)


def document_of(tx: ReadTx, scope: Scope, view: TemplateVersionView) -> Template:
    """Return what a version says, as it was read when it was added."""
    known = _named(tx, scope, view.name, view.space, view.name)
    row = tx.one(select(version.c.document).where(version.c.template_id == known.id, version.c.version == view.version))
    assert row is not None
    return msgspec.json.decode(row.document, type=Template)


def _all(scope: Scope) -> Select[Any]:
    joined = version.join(template, template.c.id == version.c.template_id).join(
        space, space.c.id == template.c.space_id
    )
    stmt = select(version, template.c.name, space.c.name.label("space")).select_from(joined)
    return stmt.where(scope_clause(template, scope))


def _named(tx: ReadTx, scope: Scope, name: str, where: str, ref: str) -> Row[Any]:
    mine = select(template).where(template.c.space_id == _space_id(tx, scope, where), scope_clause(template, scope))
    row = tx.one(mine.where(template.c.name == name, template.c.latest > 0))
    if row is None:
        near = mine.with_only_columns(template.c.name)
        alike = near.where(func.lower(template.c.name).contains(name.lower(), autoescape=True))
        names = tx.rows(alike.limit(5)) or tx.rows(near.order_by(template.c.created_us.desc()).limit(5))
        known = ", ".join(one.name for one in names) or "-"
        raise NotFound("template_unknown", ref=ref[:200], space=where, known=known)
    return row


def _space_id(tx: ReadTx, scope: Scope, name: str, permission: Permission = Permission.READ) -> str:
    found = tx.scalar(select(space.c.id).where(space.c.name == (name or DEFAULT_SPACE)))
    what = f"space {name or DEFAULT_SPACE}"
    if found is None:
        raise NotFound("not_found", what=what)
    scope.require(permission, found, what=what)
    return found


def _view(row: Row[Any], name: str, where: str) -> TemplateVersionView:
    document = msgspec.json.decode(row.document, type=Template)
    return TemplateVersionView(
        name=name, version=row.version, space=where or DEFAULT_SPACE, description=document.description,
        digest=row.digest, text=row.text, spec=document.spec, schema=full_schema(document),
        required=document.required, locked=document.locked, created_us=row.created_us, created_by=row.created_by,
    )  # fmt: skip
