"""Registered models: our models, with MLflow's descriptions, tags, aliases, and names of any form."""

from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy import delete as sql_delete

from trackbed.base.errors import BadInput, Conflict
from trackbed.db import ReadTx, Tx
from trackbed.domain.events import Event
from trackbed.domain.scope import Permission, Scope
from trackbed.registry import service
from trackbed.registry.sql import alias, model
from trackbed.server.flows import reviewed
from trackbed.server.mlflow import codec, conditions, experiments, filters, registry_rows, tags
from trackbed.server.mlflow.codec import Asked, Document
from trackbed.server.mlflow.registry_rows import find_model
from trackbed.server.mlflow.routing import reads, writes
from trackbed.server.mlflow.tables import registered
from trackbed.wire.mlflow import read_tag

MOST_RESULTS = 1000
MOST_NAME = 500
STAGES = {"none": "None", "staging": "Staging", "production": "Production", "archived": "Archived"}


def _shown(tx: ReadTx, scope: Scope, row: Any) -> Document:
    return {"registered_model": registry_rows.model_views(tx, scope, [row])[0]}


def _again(tx: ReadTx, scope: Scope, ident: str) -> Any:
    found = tx.one(registry_rows.selected_models(scope).where(model.c.id == ident))
    assert found is not None
    return found


def create(tx: Tx, scope: Scope, asked: Asked) -> Document:
    """Make a model without versions; one that was deleted is there again, and its numbers go on."""
    name, tagged = asked.need("name"), tags.given(asked.records("tags"))
    if len(name) > MOST_NAME or not name.isprintable() or "/" in name or ":" in name:
        raise codec.bad("name", name)
    where = experiments.home_space(tx, scope)
    if tx.one(registry_rows.selected_models(scope).where(registry_rows.shown_name == name)) is not None:
        raise Conflict("mlflow_exists", what="registered model", name=name)
    space_id = service.space_id_of(tx, scope, where, Permission.WRITE)
    hidden = select(registered.c.model_id).where(registered.c.space_id == space_id, registered.c.name == name)
    ident = tx.scalar(hidden) or service.ensure(tx, scope, _free(tx, space_id, name), space=where)
    registry_rows.put_model(
        tx, ident, space_id, name, tx.now_us, description=asked.text("description"), deleted_us=0
    )  # fmt: skip
    tags.put(tx, tags.MODEL, ident, tagged)
    return _shown(tx, scope, _again(tx, scope, ident))


def _free(tx: ReadTx, space_id: str, name: str) -> str:
    """Return a name of ours that is free: MLflow's, or what is left of it as one word, with a number."""
    word = experiments.word_of(name, otherwise="model")
    taken = {row.name for row in tx.rows(select(model.c.name).where(model.c.space_id == space_id))}
    number, candidate = 1, word
    while candidate in taken:
        number += 1
        candidate = f"{word[:90]}-{number}"
    return candidate


def get(tx: ReadTx, scope: Scope, asked: Asked) -> Document:
    return _shown(tx, scope, find_model(tx, scope, asked.need("name")))


def rename(tx: Tx, scope: Scope, asked: Asked) -> Document:
    """Give a model another name on this surface; references of our own keep the name that it was registered by."""
    row, name = _mine(tx, scope, asked, Permission.MAINTAIN), asked.need("new_name")
    if len(name) > MOST_NAME or not name.isprintable() or "/" in name or ":" in name:
        raise codec.bad("new_name", name)
    taken = (registered.c.space_id == row.space_id, registered.c.name == name, registered.c.model_id != row.id)
    there = tx.one(registry_rows.selected_models(scope).where(registry_rows.shown_name == name))
    if (there is not None and there.id != row.id) or tx.one(select(registered.c.model_id).where(*taken)):
        raise Conflict("mlflow_exists", what="registered model", name=name)
    registry_rows.note_model(tx, row, name=name)
    _tell(tx, "model.renamed", row, **{"from": row.shown_name, "to": name})
    return _shown(tx, scope, _again(tx, scope, row.id))


def update(tx: Tx, scope: Scope, asked: Asked) -> Document:
    row = _mine(tx, scope, asked)
    if asked.has("description"):
        registry_rows.note_model(tx, row, description=asked.text("description"))
        _tell(tx, "model.changed", row, fields=["description"])
    return _shown(tx, scope, _again(tx, scope, row.id))


def delete(tx: Tx, scope: Scope, asked: Asked) -> Document:
    """Hide a model and its versions from MLflow; the registry keeps them, since runs were made from them."""
    row = _mine(tx, scope, asked, Permission.MAINTAIN)
    for one in tx.rows(registry_rows.selected_versions(scope).where(model.c.id == row.id)):
        registry_rows.note_version(tx, one, deleted_us=tx.now_us)
    registry_rows.note_model(tx, row, deleted_us=tx.now_us)
    tx.execute(sql_delete(tags.tag).where(tags.tag.c.kind == tags.MODEL, tags.tag.c.owner == row.id))
    tx.execute(sql_delete(alias).where(alias.c.model_id == row.id))
    _tell(tx, "model.deleted", row)
    return {}


def get_latest(tx: ReadTx, scope: Scope, asked: Asked) -> Document:
    row = find_model(tx, scope, asked.need("name"))
    stages = [stage_of(stage) for stage in asked.texts("stages")]
    found = registry_rows.latest_versions(tx, scope, [row.id], stages)[row.id]
    return {"model_versions": registry_rows.version_views(tx, found)}


def stage_of(text: str) -> str:
    """Return a stage by its name in any case of letters.

    Raises:
        BadInput: `mlflow_stage_unknown`.
    """
    found = STAGES.get(text.lower())
    if found is None:
        raise BadInput("mlflow_stage_unknown", stage=text[:80], known=", ".join(STAGES.values()))
    return found


def set_tag(tx: Tx, scope: Scope, asked: Asked) -> Document:
    row = _mine(tx, scope, asked)
    tags.put(tx, tags.MODEL, row.id, dict([read_tag(asked)]))
    registry_rows.note_model(tx, row)
    _tell(tx, "model.changed", row, fields=[f"tags.{asked.text('key')[:100]}"])
    return {}


def delete_tag(tx: Tx, scope: Scope, asked: Asked) -> Document:
    row = _mine(tx, scope, asked)
    tags.take(tx, tags.MODEL, row.id, asked.need("key"), must=False)
    registry_rows.note_model(tx, row)
    _tell(tx, "model.changed", row, fields=[f"tags.{asked.text('key')[:100]}"])
    return {}


# --- aliases ---------------------------------------------------------------------------------------------------------


def set_alias(tx: Tx, scope: Scope, asked: Asked) -> Document:
    """Point an alias to a version; the registry's own aliases."""
    name, label = asked.need("name"), asked.need("alias")
    row = registry_rows.find_version(tx, scope, name, asked.need("version"))
    stands = registry_rows.aliases_of(tx, [row.model_id])[row.model_id].get(label)
    reviewed.set_alias(tx, scope, row.model, label, row.version, expected=stands, space=row.space)
    return {}


def delete_alias(tx: Tx, scope: Scope, asked: Asked) -> Document:
    row = find_model(tx, scope, asked.need("name"))
    service.drop_alias(tx, scope, row.name, asked.need("alias"), space=row.space)
    return {}


def get_by_alias(tx: ReadTx, scope: Scope, asked: Asked) -> Document:
    name, label = asked.need("name"), asked.need("alias")
    row = find_model(tx, scope, name)
    labels = registry_rows.aliases_of(tx, [row.id])[row.id]
    number = row.latest if label == "latest" and label not in labels else labels.get(label)
    if number is None:
        raise BadInput("mlflow_alias_unknown", name=name[:200], alias=label[:100])
    found = registry_rows.find_version(tx, scope, name, str(number))
    return {"model_version": registry_rows.version_view(tx, found)}


def _mine(tx: ReadTx, scope: Scope, asked: Asked, permission: Permission = Permission.WRITE) -> Any:
    row = find_model(tx, scope, asked.need("name"))
    scope.require(permission, row.space_id, what=f"model {row.shown_name}")
    return row


def _tell(tx: Tx, kind: str, row: Any, **data: Any) -> None:
    tx.emit(Event(kind, row.id, row.space_id, data={"model": row.shown_name, **data}))


# --- search ----------------------------------------------------------------------------------------------------------

_COLUMNS: dict[str, ColumnElement[Any]] = {
    "name": registry_rows.shown_name,
    "last_updated_timestamp": registry_rows.model_updated // 1000,
    "creation_timestamp": registry_rows.model_created // 1000,
}


def search(tx: ReadTx, scope: Scope, asked: Asked) -> Document:
    size = codec.page_size(asked, usual=100, most=MOST_RESULTS)
    start = codec.offset_of(asked.text("page_token"))
    stmt = registry_rows.selected_models(scope)
    stmt = stmt.where(conditions.all_of([_condition(term) for term in filters.parse(asked.text("filter"))]))
    order: list[ColumnElement[Any]] = []
    for entry in asked.texts("order_by"):
        field, ascending = filters.parse_order(entry)
        key = "last_updated_timestamp" if field.key == "timestamp" else field.key
        if field.entity != "attributes" or key not in _COLUMNS:
            raise filters.unknown(field, _COLUMNS)
        order += conditions.ordered(_COLUMNS[key], ascending=ascending)
    rows = tx.rows(stmt.order_by(*order, registry_rows.shown_name, model.c.id).offset(start).limit(size + 1))
    reply: Document = {"registered_models": registry_rows.model_views(tx, scope, rows[:size])}
    if len(rows) > size:
        reply["next_page_token"] = codec.page_token(start + size)
    return reply


def _condition(term: filters.Term) -> ColumnElement[bool]:
    if term.field.entity == "tags":
        return conditions.tagged(tags.MODEL, model.c.id, term)
    if term.field.entity == "attributes" and term.field.key == "name":
        return conditions.compared(registry_rows.shown_name, term)
    raise filters.unknown(term.field, ("name", "tags.KEY"))


MAINTAIN = Permission.MAINTAIN
routes: list[Any] = [
    writes("POST", "registered-models/create", create, by_jobs=True),
    reads("GET", "registered-models/get", get),
    reads("GET", "registered-models/search", search),
    writes("POST", "registered-models/rename", rename, permission=MAINTAIN),
    writes("PATCH", "registered-models/update", update),
    writes("DELETE", "registered-models/delete", delete, permission=MAINTAIN),
    reads("GET POST", "registered-models/get-latest-versions", get_latest),
    writes("POST", "registered-models/set-tag", set_tag),
    writes("DELETE", "registered-models/delete-tag", delete_tag),
    writes("POST", "registered-models/alias", set_alias, permission=MAINTAIN),
    writes("DELETE", "registered-models/alias", delete_alias, permission=MAINTAIN),
    reads("GET", "registered-models/alias", get_by_alias),
]
