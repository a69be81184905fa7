"""runs/search: MLflow's filters and orders over the runs table."""

from typing import Any

from sqlalchemy import ColumnElement, Integer, Select, and_, case, func, or_, select

from trackbed.base.errors import BadInput, NotFound
from trackbed.db import ReadTx
from trackbed.domain.scope import Scope
from trackbed.server.mlflow import codec, conditions, experiments, filters, run_views, tags
from trackbed.server.mlflow.codec import Asked, Document
from trackbed.server.mlflow.filters import Field, Term
from trackbed.server.mlflow.routing import reads
from trackbed.server.mlflow.tables import link
from trackbed.tracking.facts_spelled import native
from trackbed.tracking.facts_values import pack
from trackbed.tracking.ingest_tables import metric, param
from trackbed.tracking.runs_tables import run
from trackbed.wire.mlflow import RUN_NAME, RUN_NOTE, RUN_USER

USUAL, MOST = 1000, 50_000
_STARTED = case((run.c.started_us > 0, run.c.started_us), else_=run.c.created_us) // 1000
_ENDED = func.nullif(run.c.ended_us, 0, type_=Integer) // 1000
_URI = "mlflow-artifacts:/" + run.c.project_id + "/" + run.c.id + "/artifacts"
_TEXTS: dict[str, ColumnElement[Any]] = {
    "run_id": run.c.id, "run_name": run_views.shown_name, "status": run_views.shown_status, "user_id": run.c.owner,
    "artifact_uri": _URI, "experiment_id": run.c.project_id,
}  # fmt: skip
_NUMBERS: dict[str, ColumnElement[Any]] = {"start_time": _STARTED, "end_time": _ENDED}
_ALIASES = {
    "Run name": "run_name", "run name": "run_name", "run_uuid": "run_id", "Created": "start_time",
    "created": "start_time", "name": "run_name", "id": "run_id",
}  # fmt: skip
_KNOWN = {**_TEXTS, **_NUMBERS, "metrics.KEY": 0, "params.KEY": 0, "tags.KEY": 0, "dataset.name": 0}


def search(tx: ReadTx, scope: Scope, asked: Asked) -> Document:
    size = codec.page_size(asked, usual=USUAL, most=MOST)
    start = codec.offset_of(asked.text("page_token"))
    stmt = run_views.selected(scope).where(run.c.project_id.in_(known_ids(tx, scope, asked.texts("experiment_ids"))))
    stmt = stmt.where(conditions.all_of([_condition(term) for term in filters.parse(asked.text("filter"))]))
    stmt = experiments.in_view(stmt, asked.text("run_view_type"), run_views.deleted_us)
    order = [column for entry in asked.texts("order_by") for column in _order(entry)]
    stmt = stmt.order_by(*order, _STARTED.desc(), run.c.id)
    rows = tx.rows(stmt.offset(start).limit(size + 1))
    reply: Document = {"runs": run_views.views(tx, rows[:size])}
    if len(rows) > size:
        reply["next_page_token"] = codec.page_token(start + size)
    return reply


def known_ids(tx: ReadTx, scope: Scope, idents: list[str]) -> list[str]:
    """Return the projects of these experiments; one that is not there, or behind a wall, has no runs."""
    known: list[str] = []
    for ident in idents:
        try:
            known.append(experiments.find(tx, scope, ident).id)
        except NotFound:
            continue
    return known


def _condition(term: Term) -> ColumnElement[bool]:
    field = term.field
    if field.entity == "metrics":
        if term.operator == "!=":  # NaN, kept as NULL, differs from every number
            differs = conditions.compared(metric.c.last, term, numeric=True)
            return _metric(field).where(or_(differs, metric.c.last.is_(None))).exists()
        return conditions.holds(_metric(field), metric.c.last, term, numeric=True)
    if field.entity == "params":
        return _params(term)
    if field.entity == "tags":
        return _tag(term)
    if field.entity == "datasets":
        return _dataset(term)
    key = _ALIASES.get(field.key, field.key)
    if key in _TEXTS:
        return conditions.compared(_TEXTS[key], term)
    if key in _NUMBERS:
        return conditions.compared(_NUMBERS[key], term, numeric=True)
    raise filters.unknown(field, _KNOWN)


def _metric(field: Field) -> Select[Any]:
    of_run = (metric.c.run_id == run.c.id, metric.c.key == field.key, metric.c.rank == 0)
    return select(metric.c.last).where(*of_run).correlate(run)


def _params(term: Term) -> ColumnElement[bool]:
    """Compare texts: a param that spells a number is kept as one, so both ways to keep it are looked for."""
    of_name = select(param.c.value).where(param.c.run_id == run.c.id, param.c.name == term.field.key).correlate(run)
    if term.operator in ("=", "!=", "IN"):
        if not all(isinstance(value, str) for value in term.values):
            raise BadInput("mlflow_filter_value", field=f"params.{term.field.key}"[:200], value=str(term.values[0]))
        kept = [text for value in term.values for text in (pack(value), pack(native(str(value))))]
        among = param.c.value.in_(kept)
        return of_name.where(~among if (term.operator == "!=") != term.negated else among).exists()
    return conditions.holds(of_name, func.trim(param.c.value, '"'), term)


def _tag(term: Term) -> ColumnElement[bool]:
    own = {RUN_NAME: run_views.shown_name, RUN_NOTE: run.c.description}.get(term.field.key)
    if own is not None:
        return conditions.compared(own, term)
    found = conditions.tagged(tags.RUN, run.c.id, term)
    if term.field.key == RUN_USER and term.operator != "NULL":
        mine = select(tags.tag.c.key).where(
            tags.tag.c.kind == tags.RUN, tags.tag.c.owner == run.c.id, tags.tag.c.key == RUN_USER
        )
        return or_(found, and_(~mine.exists(), conditions.compared(run.c.owner, term)))
    return found


def _dataset(term: Term) -> ColumnElement[bool]:
    columns = {"name": link.c.name, "digest": link.c.digest, "context": link.c.context}
    column = columns.get(term.field.key)
    if column is None:
        raise filters.unknown(term.field, columns)
    of_run = select(link.c.ref).where(link.c.run_id == run.c.id, link.c.kind == "dataset").correlate(run)
    return conditions.holds(of_run, column, term)


def _order(entry: str) -> list[ColumnElement[Any]]:
    field, ascending = filters.parse_order(entry)
    key = _ALIASES.get(field.key, field.key)
    if field.entity == "metrics":
        column: ColumnElement[Any] | None = _metric(field).scalar_subquery()
    elif field.entity == "params":
        of_run = (param.c.run_id == run.c.id, param.c.name == field.key)
        number = select(param.c.number).where(*of_run).correlate(run).scalar_subquery()
        text = select(func.trim(param.c.value, '"')).where(*of_run).correlate(run).scalar_subquery()
        return [*conditions.ordered(number, ascending=ascending), *conditions.ordered(text, ascending=ascending)]
    elif field.entity == "tags":
        own = {RUN_NAME: run_views.shown_name, RUN_NOTE: run.c.description}.get(field.key)
        column = conditions.tag_order(tags.RUN, run.c.id, field.key) if own is None else own
    else:
        column = (_TEXTS | _NUMBERS).get(key) if field.entity == "attributes" else None
    if column is None:
        raise filters.unknown(field, _KNOWN)
    return conditions.ordered(column, ascending=ascending)


routes: list[Any] = [reads("POST", "runs/search", search)]
