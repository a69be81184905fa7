"""Logged models: what MLflow 3 keeps of a model before anybody registers it, with files of its own."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, func, insert, select
from sqlalchemy import update as sql_update

from trackbed.base.entropy import new_id
from trackbed.base.errors import BadInput, NotFound
from trackbed.db import ReadTx, Tx, scope_clause
from trackbed.domain.events import Event
from trackbed.domain.scope import Permission, Scope
from trackbed.server.mlflow import codec, conditions, experiments, filters, logged_metrics, places, run_views, tags
from trackbed.server.mlflow.codec import Asked, Document
from trackbed.server.mlflow.places import find_logged
from trackbed.server.mlflow.registry_rows import selected_versions
from trackbed.server.mlflow.routing import reads, writes
from trackbed.server.mlflow.run_search import known_ids
from trackbed.server.mlflow.tables import logged_metric, logged_model, version_facts

PENDING, READY, FAILED = "LOGGED_MODEL_PENDING", "LOGGED_MODEL_READY", "LOGGED_MODEL_UPLOAD_FAILED"
_STATUSES = {"1": PENDING, "2": READY, "3": FAILED}
USUAL, MOST = 50, 1000


def create(tx: Tx, scope: Scope, asked: Asked) -> Document:
    """Begin a model; its files follow, then its status."""
    found = experiments.active(experiments.find_or_make(tx, scope, asked.need("experiment_id")))
    tagged, params = tags.given(asked.records("tags")), _params(asked)
    source = asked.text("source_run_id") or scope.actor.run_id
    if source:
        run_views.writable(tx, scope, source)
    ident = "m-" + new_id("x")[2:] + new_id("x")[2:]
    name = asked.text("name") or f"model-{ident[2:8]}"
    if "/" in name or ":" in name or not name.isprintable():
        raise codec.bad("name", name)
    tx.execute(
        insert(logged_model).values(
            id=ident, space_id=found.space_id, project_id=found.id, name=name, model_type=asked.text("model_type"),
            status=PENDING, source_run_id=source, created_us=tx.now_us, updated_us=tx.now_us,
        )
    )  # fmt: skip
    tags.put(tx, tags.LOGGED, ident, tagged)
    tags.put(tx, tags.LOGGED_PARAM, ident, params)
    _tell(tx, "logged_model.created", find_logged(tx, scope, ident))
    return _shown(tx, scope, ident)


def _params(asked: Asked) -> dict[str, str]:
    return {one.need("key"): one.text("value") for one in asked.records("params")}


def _shown(tx: ReadTx, scope: Scope, ident: str) -> Document:
    return {"model": views(tx, scope, [find_logged(tx, scope, ident)])[0]}


def views(tx: ReadTx, scope: Scope, rows: Sequence[Any]) -> list[Document]:
    ids = [row.id for row in rows]
    tagged, measured = tags.of_many(tx, tags.LOGGED, ids), logged_metrics.of_models(tx, ids)
    registrations, params = _registrations(tx, scope, ids), tags.of_many(tx, tags.LOGGED_PARAM, ids)
    return [
        {
            "info": codec.some(
                model_id=row.id,
                experiment_id=row.project_id,
                name=row.name,
                creation_timestamp_ms=codec.milliseconds(row.created_us),
                last_updated_timestamp_ms=codec.milliseconds(row.updated_us),
                artifact_uri=artifact_root(row),
                status=row.status,
                model_type=row.model_type or None,
                source_run_id=row.source_run_id or None,
                tags=codec.pairs(tagged[row.id]),
                registrations=registrations[row.id],
            ),
            "data": {
                "params": codec.pairs(params[row.id]),
                "metrics": measured[row.id],
            },
        }
        for row in rows
    ]


def artifact_root(row: Any) -> str:
    return f"mlflow-artifacts:/{row.project_id}/models/{row.id}/artifacts"


def _registrations(tx: ReadTx, scope: Scope, ids: list[str]) -> dict[str, list[Document]]:
    found: dict[str, list[Document]] = {ident: [] for ident in ids}
    for at in range(0, len(ids), 500):
        part = version_facts.c.logged_model_id.in_(ids[at : at + 500])
        for row in tx.rows(selected_versions(scope).where(part)):
            found[row.logged_model_id].append({"name": row.shown_name, "version": str(row.version)})
    return found


def _alive(tx: ReadTx, scope: Scope, asked: Asked, permission: Permission = Permission.READ) -> Any:
    row = find_logged(tx, scope, asked.need("model_id"), permission)
    if row.deleted_us and not asked.flag("allow_deleted"):
        raise NotFound("mlflow_logged_model_unknown", ref=row.id)
    return row


def get(tx: ReadTx, scope: Scope, asked: Asked) -> Document:
    return _shown(tx, scope, _alive(tx, scope, asked).id)


def finalize(tx: Tx, scope: Scope, asked: Asked) -> Document:
    """Say that a model's files are all there, or that they are not."""
    row, said = _alive(tx, scope, asked, Permission.WRITE), asked.need("status")
    status = _STATUSES.get(said, said)
    if status not in (READY, FAILED):
        raise codec.bad("status", said)
    _set(tx, row, status=status)
    _tell(tx, "logged_model.finalized", row, status=status)
    return _shown(tx, scope, row.id)


def delete(tx: Tx, scope: Scope, asked: Asked) -> Document:
    """Hide a logged model; versions that were registered from it keep their trees."""
    row = _alive(tx, scope, asked, Permission.WRITE)
    _set(tx, row, deleted_us=tx.now_us)
    _tell(tx, "logged_model.deleted", row)
    return {}


def log_params(tx: Tx, scope: Scope, asked: Asked) -> Document:
    row, params = _alive(tx, scope, asked, Permission.WRITE), _params(asked)
    before = tags.of(tx, tags.LOGGED_PARAM, row.id)
    for name, value in params.items():
        if before.get(name, value) != value:
            raise BadInput("mlflow_param_changed", name=name, stands=before[name][:200], given=value[:200])
    tags.put(tx, tags.LOGGED_PARAM, row.id, params)
    _set(tx, row)
    _tell(tx, "logged_model.changed", row, fields=["params"])
    return {}


def set_tags(tx: Tx, scope: Scope, asked: Asked) -> Document:
    row = _alive(tx, scope, asked, Permission.WRITE)
    entries = tags.given(asked.records("tags"))
    tags.put(tx, tags.LOGGED, row.id, entries)
    _set(tx, row)
    _tell(tx, "logged_model.changed", row, fields=[f"tags.{key[:100]}" for key in list(entries)[:20]])
    return _shown(tx, scope, row.id)


def delete_tag(tx: Tx, scope: Scope, asked: Asked) -> Document:
    row = _alive(tx, scope, asked, Permission.WRITE)
    tags.take(tx, tags.LOGGED, row.id, asked.need("tag_key"))
    _set(tx, row)
    _tell(tx, "logged_model.changed", row, fields=[f"tags.{asked.need('tag_key')[:100]}"])
    return {}


def directories(tx: ReadTx, scope: Scope, asked: Asked) -> Document:
    """What lies in a folder of a logged model, by whole paths."""
    row = _alive(tx, scope, asked)
    inner = asked.text("artifact_directory_path").strip("/")
    place = places.place_of(f"p/models/{row.id}/artifacts/{inner}")
    files = places.folder_of(tx, scope, place).files
    return {"root_uri": artifact_root(row), "files": places.children(files, place.path, whole_paths=True)}


def _set(tx: Tx, row: Any, **columns: Any) -> None:
    tx.execute(sql_update(logged_model).where(logged_model.c.id == row.id).values(updated_us=tx.now_us, **columns))


def _tell(tx: Tx, kind: str, row: Any, **data: Any) -> None:
    tx.emit(Event(kind, row.id, row.space_id, row.source_run_id, data={"name": row.name, **data}))


# --- search ----------------------------------------------------------------------------------------------------------

_TEXTS: dict[str, ColumnElement[Any]] = {
    "name": logged_model.c.name, "model_id": logged_model.c.id, "model_type": logged_model.c.model_type,
    "status": func.replace(logged_model.c.status, "LOGGED_MODEL_", ""), "source_run_id": logged_model.c.source_run_id,
    "experiment_id": logged_model.c.project_id,
}  # fmt: skip
_NUMBERS: dict[str, ColumnElement[Any]] = {
    "creation_timestamp": logged_model.c.created_us // 1000, "creation_time": logged_model.c.created_us // 1000,
    "last_updated_timestamp": logged_model.c.updated_us // 1000,
}  # fmt: skip
_KNOWN = {**_TEXTS, **_NUMBERS, "metrics.KEY": 0, "params.KEY": 0, "tags.KEY": 0}


def search(tx: ReadTx, scope: Scope, asked: Asked) -> Document:
    size = codec.page_size(asked, usual=USUAL, most=MOST)
    start = codec.offset_of(asked.text("page_token"))
    projects = known_ids(tx, scope, asked.texts("experiment_ids"))
    alive = (logged_model.c.deleted_us == 0, logged_model.c.project_id.in_(projects))
    stmt = select(logged_model).where(scope_clause(logged_model, scope), *alive)
    data = [(one.need("dataset_name"), one.text("dataset_digest")) for one in asked.records("datasets")]
    terms = filters.parse(asked.text("filter"))
    stmt = stmt.where(conditions.all_of([_condition(term, data) for term in terms]))
    order = [column for one in asked.records("order_by") for column in _order(one)]
    rows = tx.rows(
        stmt.order_by(*order, logged_model.c.created_us.desc(), logged_model.c.id).offset(start).limit(size + 1)
    )
    reply: Document = {"models": views(tx, scope, rows[:size])}
    if len(rows) > size:
        reply["next_page_token"] = codec.page_token(start + size)
    return reply


def _condition(term: filters.Term, data: list[tuple[str, str]]) -> ColumnElement[bool]:
    field = term.field
    if field.entity == "tags":
        return conditions.tagged(tags.LOGGED, logged_model.c.id, term)
    if field.entity == "params":
        return conditions.tagged(tags.LOGGED_PARAM, logged_model.c.id, term)
    if field.entity == "metrics":
        of_key = [logged_metric.c.model_id == logged_model.c.id, logged_metric.c.key == field.key]
        if data:
            of_key.append(conditions.any_of([_of_data(name, digest) for name, digest in data]))
        stmt = select(logged_metric.c.value).where(*of_key, logged_metric.c.is_nan == 0).correlate(logged_model)
        return conditions.holds(stmt, logged_metric.c.value, term, numeric=True)
    if field.entity == "attributes" and field.key in _TEXTS:
        return conditions.compared(_TEXTS[field.key], term)
    if field.entity == "attributes" and field.key in _NUMBERS:
        return conditions.compared(_NUMBERS[field.key], term, numeric=True)
    raise filters.unknown(field, _KNOWN)


def _of_data(name: str, digest: str) -> ColumnElement[bool]:
    named = logged_metric.c.dataset_name == name
    return and_(named, logged_metric.c.dataset_digest == digest) if digest else named


def _order(asked: Asked) -> list[ColumnElement[Any]]:
    field, _ = filters.parse_order(asked.need("field_name"))
    ascending = not asked.has("ascending") or asked.flag("ascending")
    if field.entity == "metrics":
        of_key = [logged_metric.c.model_id == logged_model.c.id, logged_metric.c.key == field.key]
        if asked.text("dataset_name"):
            of_key.append(_of_data(asked.text("dataset_name"), asked.text("dataset_digest")))
        newest = (logged_metric.c.step.desc(), logged_metric.c.ts_ms.desc())
        stmt = select(logged_metric.c.value).where(*of_key).correlate(logged_model).order_by(*newest).limit(1)
        return conditions.ordered(stmt.scalar_subquery(), ascending=ascending)
    column = (_TEXTS | _NUMBERS).get(field.key) if field.entity == "attributes" else None
    if column is None:
        raise filters.unknown(field, _KNOWN)
    return conditions.ordered(column, ascending=ascending)


_MODEL = "logged-models/{model_id:str}"
routes: list[Any] = [
    writes("POST", "logged-models", create, by_jobs=True),
    reads("POST", "logged-models/search", search),
    reads("GET", _MODEL, get),
    writes("PATCH", _MODEL, finalize, by_jobs=True),
    writes("DELETE", _MODEL, delete, by_jobs=True),
    writes("POST", f"{_MODEL}/params", log_params, by_jobs=True),
    writes("PATCH", f"{_MODEL}/tags", set_tags, by_jobs=True),
    writes("DELETE", f"{_MODEL}/tags/{{tag_key:str}}", delete_tag, by_jobs=True),
    reads("GET", f"{_MODEL}/artifacts/directories", directories),
]
