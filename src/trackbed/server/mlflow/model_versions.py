"""Model versions: versions of our registry. What lies at the source is put into a tree when it is registered, for good."""

import asyncio
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from litestar import Request, Response
from sqlalchemy import ColumnElement

from trackbed.base.errors import BadInput, NotFound
from trackbed.base.ids import Digest
from trackbed.db import ReadTx, Tx
from trackbed.domain.events import Event
from trackbed.domain.scope import Permission, Scope
from trackbed.formats.tree import Entry, encode_listing
from trackbed.registry import service
from trackbed.registry.sql import version
from trackbed.server.app import App
from trackbed.server.flows.register import Made, provenance
from trackbed.server.mlflow import codec, conditions, filters, places, registry_rows, run_views, tags
from trackbed.server.mlflow.codec import Asked, Document, answer, ask
from trackbed.server.mlflow.places import File, Place
from trackbed.server.mlflow.registered_models import stage_of
from trackbed.server.mlflow.registry_rows import find_version, version_view
from trackbed.server.mlflow.routing import for_job, made, reads, writes
from trackbed.tracking import runs
from trackbed.tracking.metrics import last_values
from trackbed.wire.mlflow import read_tag

MOST_RESULTS = 200_000


@dataclass(frozen=True)
class _Source:
    """What a new version is made from."""

    run_id: str
    logged_id: str
    folder: places.Folder
    below: str


async def create(request: Request[Any, Any, Any], trackbed_app: App, who: Scope) -> Response[bytes]:
    """Register what lies at a source as the next version of a model."""
    app, asked = trackbed_app, await ask(request)
    tagged = tags.given(asked.records("tags"))
    source = await app.db.aread(lambda tx: _source(tx, who, asked))
    digest, size = await asyncio.to_thread(_keep_tree, app, source, asked.need("source"))

    def work(tx: Tx) -> Document:
        row = _register(tx, for_job(who), asked, source, digest, size)
        tags.put(tx, tags.VERSION, registry_rows.owner_of(row), tagged)
        return {"model_version": version_view(tx, row)}

    return answer(await app.db.awrite(work, actor=who.actor))


def _source(tx: ReadTx, scope: Scope, asked: Asked) -> _Source:
    registry_rows.find_model(tx, scope, asked.need("name"))
    uri, run_id, logged_id = asked.need("source"), asked.text("run_id"), asked.text("model_id")
    place = places.place_of_uri(uri)
    if place is None:
        copied = _copied(tx, scope, uri)
        if copied is None:
            raise BadInput("mlflow_source_foreign", source=uri[:200])
        place = Place(places.VERSION, registry_rows.owner_of(copied))
        run_id, logged_id = run_id or copied.run_id, logged_id or copied.logged_model_id
    if place.kind == places.LOGGED:
        logged = places.find_logged(tx, scope, place.owner)
        run_id, logged_id = run_id or logged.source_run_id, logged_id or logged.id
    if place.kind == places.RUN:
        run_id = run_id or place.owner
    if run_id:
        run_views.find(tx, scope, run_id)
    return _Source(run_id, logged_id, places.folder_of(tx, scope, place), place.path)


def _copied(tx: ReadTx, scope: Scope, uri: str) -> Any:
    """Return the version that `models:/name/3` names; None for another form."""
    found = urlsplit(uri)
    name, _, number = found.path.strip("/").partition("/")
    return find_version(tx, scope, name, number) if found.scheme == "models" and number else None


def _keep_tree(app: App, source: _Source, uri: str) -> tuple[Digest, int]:
    """Put the files at the source into a tree; the blobs are in the store already."""
    space_id = app.db.read(lambda tx: str(runs.get(tx, source.run_id).space_id)) if source.run_id else ""
    store = app.store_of(space_id) if space_id else app.store
    files = _below(places.files_of(app.store, source.folder), source.below)
    if not files:
        raise NotFound("mlflow_source_empty", source=uri[:200])
    entries = [Entry(one.path.encode(), "f", size=one.size_bytes, digest=one.digest) for one in files]
    return store.put_listing(encode_listing(entries)), sum(one.size_bytes for one in files)


def _below(files: list[File], folder: str) -> list[File]:
    exact = [File(one.path.rpartition("/")[2], one.size_bytes, one.digest) for one in files if one.path == folder]
    prefix = f"{folder}/" if folder else ""
    return exact or [
        File(one.path[len(prefix) :], one.size_bytes, one.digest) for one in files if one.path.startswith(prefix)
    ]


def _register(tx: Tx, scope: Scope, asked: Asked, source: _Source, digest: Digest, size: int) -> Any:
    known = registry_rows.find_model(tx, scope, asked.need("name"))
    facts: dict[str, Any] = {}
    run = run_views.find(tx, scope, source.run_id) if source.run_id else None
    if run is not None:
        facts = provenance(tx, run, Made(digest, size, run.attempt_id, run.attempt), last_values(tx, run.id))
    facts["mlflow"] = {"source": asked.need("source"), "model_id": source.logged_id}
    view = service.register(
        tx, scope, known.name, digest, space=known.space, size_bytes=size, run_id=source.run_id, provenance=facts,
        again=True,
    )  # fmt: skip
    if run is not None:
        data = {"model": view.model, "version": view.version, "digest": view.digest}
        tx.emit(Event("run.registered", run.id, run.space_id, run.id, run.attempt_id, data))
    values = {
        "source": asked.need("source"), "run_link": asked.text("run_link"), "logged_model_id": source.logged_id,
        "description": asked.text("description"),
    }  # fmt: skip
    bare = tx.one(registry_rows.selected_versions(scope).where(_is(known.id, view.version)))
    registry_rows.note_version(tx, bare, **values)
    registry_rows.note_model(tx, known)
    return tx.one(registry_rows.selected_versions(scope).where(_is(known.id, view.version)))


def _is(model_id: str, number: int) -> ColumnElement[bool]:
    return (version.c.model_id == model_id) & (version.c.version == number)


def _asked_version(tx: ReadTx, scope: Scope, asked: Asked) -> Any:
    return find_version(tx, scope, asked.need("name"), asked.need("version"))


def _mine(tx: ReadTx, scope: Scope, asked: Asked, permission: Permission = Permission.WRITE) -> Any:
    row = _asked_version(tx, scope, asked)
    scope.require(permission, row.space_id, what=f"model {row.shown_name}")
    return row


def get(tx: ReadTx, scope: Scope, asked: Asked) -> Document:
    return {"model_version": version_view(tx, _asked_version(tx, scope, asked))}


def get_download_uri(tx: ReadTx, scope: Scope, asked: Asked) -> Document:
    """Where the version's own tree is read, whatever has become of its source."""
    return {"artifact_uri": f"mlflow-artifacts:/registry/{registry_rows.owner_of(_asked_version(tx, scope, asked))}"}


def update(tx: Tx, scope: Scope, asked: Asked) -> Document:
    row = _mine(tx, scope, asked)
    if asked.has("description"):
        registry_rows.note_version(tx, row, description=asked.text("description"))
        _tell(tx, "model.version_changed", row, fields=["description"])
    return {"model_version": version_view(tx, _asked_version(tx, scope, asked))}


def transition(tx: Tx, scope: Scope, asked: Asked) -> Document:
    """Move a version to a stage; with `archive_existing_versions` those that stand there are archived."""
    row, stage = _mine(tx, scope, asked, Permission.MAINTAIN), stage_of(asked.need("stage"))
    archive = asked.flag("archive_existing_versions")
    if archive and stage not in ("Staging", "Production"):
        raise BadInput("mlflow_stage_archive", stage=stage)
    for other in tx.rows(registry_rows.selected_versions(scope).where(version.c.model_id == row.model_id)):
        if archive and other.stage == stage and other.version != row.version:
            registry_rows.note_version(tx, other, stage="Archived")
            _tell(tx, "model.version_changed", other, fields=["stage"])
    registry_rows.note_version(tx, row, stage=stage)
    _tell(tx, "model.version_changed", row, fields=["stage"])
    return {"model_version": version_view(tx, _asked_version(tx, scope, asked))}


def delete(tx: Tx, scope: Scope, asked: Asked) -> Document:
    """Hide a version from MLflow; its aliases go, the registry keeps it."""
    row = _mine(tx, scope, asked, Permission.MAINTAIN)
    for label, number in registry_rows.aliases_of(tx, [row.model_id])[row.model_id].items():
        if number == row.version:
            service.drop_alias(tx, scope, row.model, label, space=row.space)
    registry_rows.note_version(tx, row, deleted_us=tx.now_us)
    _tell(tx, "model.version_deleted", row)
    return {}


def set_tag(tx: Tx, scope: Scope, asked: Asked) -> Document:
    row = _mine(tx, scope, asked)
    tags.put(tx, tags.VERSION, registry_rows.owner_of(row), dict([read_tag(asked)]))
    registry_rows.note_version(tx, row)
    _tell(tx, "model.version_changed", row, fields=[f"tags.{asked.text('key')[:100]}"])
    return {}


def delete_tag(tx: Tx, scope: Scope, asked: Asked) -> Document:
    row = _mine(tx, scope, asked)
    tags.take(tx, tags.VERSION, registry_rows.owner_of(row), asked.need("key"), must=False)
    registry_rows.note_version(tx, row)
    _tell(tx, "model.version_changed", row, fields=[f"tags.{asked.text('key')[:100]}"])
    return {}


def _tell(tx: Tx, kind: str, row: Any, **data: Any) -> None:
    document = {"model": row.shown_name, "version": row.version, **data}
    tx.emit(Event(kind, row.model_id, row.space_id, row.run_id, data=document))


# --- search ----------------------------------------------------------------------------------------------------------

_TEXTS: dict[str, ColumnElement[Any]] = {
    "name": registry_rows.shown_name, "run_id": version.c.run_id, "source_path": registry_rows.version_source,
    "source": registry_rows.version_source, "model_id": registry_rows.logged_id, "user_id": version.c.created_by,
}  # fmt: skip
_NUMBERS: dict[str, ColumnElement[Any]] = {
    "version_number": version.c.version, "version": version.c.version,
    "creation_timestamp": version.c.created_us // 1000,
    "last_updated_timestamp": registry_rows.version_updated // 1000,
}  # fmt: skip


def search(tx: ReadTx, scope: Scope, asked: Asked) -> Document:
    size = codec.page_size(asked, usual=10_000, most=MOST_RESULTS)
    start = codec.offset_of(asked.text("page_token"))
    stmt = registry_rows.selected_versions(scope)
    stmt = stmt.where(conditions.all_of([_condition(term) for term in filters.parse(asked.text("filter"))]))
    order: list[ColumnElement[Any]] = []
    for entry in asked.texts("order_by"):
        field, ascending = filters.parse_order(entry)
        column = (_TEXTS | _NUMBERS).get(field.key) if field.entity == "attributes" else None
        if column is None:
            raise filters.unknown(field, _TEXTS | _NUMBERS)
        order += conditions.ordered(column, ascending=ascending)
    usual = (registry_rows.version_updated.desc(), registry_rows.shown_name, version.c.version.desc())
    rows = tx.rows(stmt.order_by(*order, *usual).offset(start).limit(size + 1))
    reply: Document = {"model_versions": registry_rows.version_views(tx, rows[:size])}
    if len(rows) > size:
        reply["next_page_token"] = codec.page_token(start + size)
    return reply


def _condition(term: filters.Term) -> ColumnElement[bool]:
    field = term.field
    if field.entity == "tags":
        return conditions.tagged(tags.VERSION, registry_rows.version_owner, term)
    if field.entity == "attributes" and field.key in _TEXTS:
        return conditions.compared(_TEXTS[field.key], term)
    if field.entity == "attributes" and field.key in _NUMBERS:
        return conditions.compared(_NUMBERS[field.key], term, numeric=True)
    raise filters.unknown(field, {**_TEXTS, **_NUMBERS, "tags.KEY": 0})


MAINTAIN = Permission.MAINTAIN
routes: list[Any] = [
    made("POST", "model-versions/create", Permission.WRITE, create, by_jobs=True),
    reads("GET", "model-versions/get", get),
    reads("GET", "model-versions/search", search),
    reads("GET", "model-versions/get-download-uri", get_download_uri),
    writes("PATCH", "model-versions/update", update),
    writes("POST", "model-versions/transition-stage", transition, permission=MAINTAIN),
    writes("DELETE", "model-versions/delete", delete, permission=MAINTAIN),
    writes("POST", "model-versions/set-tag", set_tag, by_jobs=True),
    writes("DELETE", "model-versions/delete-tag", delete_tag),
]
