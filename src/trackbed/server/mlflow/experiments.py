"""Experiments: our projects. A project's own name stands where MLflow never gave it another."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Integer, Select, func, select

from trackbed.access import ensure_project, rename_project
from trackbed.access.rules import DEFAULT_PROJECT, DEFAULT_SPACE
from trackbed.access.tables import project, project_name, space
from trackbed.base.errors import BadInput, Conflict, NotFound
from trackbed.db import ReadTx, Tx, scope_clause, upsert
from trackbed.domain.events import Event
from trackbed.domain.scope import Permission, Scope
from trackbed.server.mlflow import codec, conditions, filters, tags
from trackbed.server.mlflow.codec import Asked, Document
from trackbed.server.mlflow.routing import reads, writes
from trackbed.server.mlflow.tables import experiment
from trackbed.wire.mlflow import read_tag

DEFAULT_ID, DEFAULT_NAME = "0", "Default"  # what clients mean who chose no experiment
MOST_NAME = 500
MOST_RESULTS = 50_000
shown_name: ColumnElement[str] = func.coalesce(experiment.c.name, project.c.name)
updated_us: ColumnElement[int] = func.coalesce(experiment.c.updated_us, project.c.created_us, type_=Integer)
_NO_WORD = re.compile(r"[^\w.\-]+")


@dataclass(frozen=True)
class Experiment:
    """A project as MLflow sees it."""

    id: str
    name: str
    project: str
    space_id: str
    space: str
    created_us: int
    updated_us: int
    deleted: bool


def home_space(tx: ReadTx, scope: Scope) -> str:
    """Return the name of the space where this person's new things go: `default`, else the first that they may write in."""
    spaces = scope.spaces(Permission.WRITE)
    rows = tx.rows(select(space) if spaces is None else select(space).where(space.c.id.in_(sorted(spaces))))
    names = sorted(row.name for row in rows)
    return DEFAULT_SPACE if DEFAULT_SPACE in names or not names else names[0]


def word_of(name: str, *, otherwise: str) -> str:
    """Return the one word that stands for a name of MLflow's in references."""
    return _NO_WORD.sub("-", name).strip("-._")[:100] or otherwise


def find(tx: ReadTx, scope: Scope, ident: str, *, permission: Permission = Permission.READ) -> Experiment:
    """Return the experiment of an id.

    Raises:
        NotFound: `mlflow_experiment_unknown`, also behind a wall.
    """
    if ident == DEFAULT_ID:
        return _default(tx, scope, permission)
    row = tx.one(_select(scope).where(project.c.id == ident))
    if row is None:
        raise NotFound("mlflow_experiment_unknown", ref=ident[:200])
    scope.require(permission, row.space_id, what=f"experiment {ident}")
    return _experiment(row)


def _default(tx: ReadTx, scope: Scope, permission: Permission) -> Experiment:
    """The default project; made by its first use, so an experiment without one is shown as an empty one."""
    found = _named(tx, scope, DEFAULT_PROJECT)
    if found is None:
        return Experiment(DEFAULT_ID, DEFAULT_NAME, DEFAULT_PROJECT, "", DEFAULT_SPACE, 0, 0, deleted=False)
    scope.require(permission, found.space_id, what="experiment 0")
    return found


def find_or_make(tx: Tx, scope: Scope, ident: str) -> Experiment:
    """As `find`, to write into; the default one is made where there is none."""
    found = find(tx, scope, ident, permission=Permission.WRITE)
    if found.id != DEFAULT_ID:
        return found
    made = ensure_project(tx, scope, home_space(tx, scope), DEFAULT_PROJECT)
    return find(tx, scope, made.id, permission=Permission.WRITE)


def active(found: Experiment) -> Experiment:
    """Return the experiment if it is not deleted.

    Raises:
        BadInput: `mlflow_experiment_deleted`.
    """
    if found.deleted:
        raise BadInput("mlflow_experiment_deleted", ref=found.id)
    return found


def _named(tx: ReadTx, scope: Scope, name: str) -> Experiment | None:
    """Return the experiment of a name; that of MLflow goes before a project's own, the default space before others."""
    rows = tx.rows(_select(scope).where(shown_name == name))
    if not rows:
        old = select(project_name.c.project_id).where(project_name.c.name == name)
        rows = tx.rows(_select(scope).where(project.c.id.in_(old)))
    rows.sort(key=lambda row: (row.space != DEFAULT_SPACE, row.space))
    return _experiment(rows[0]) if rows else None


def _select(scope: Scope) -> Select[Any]:
    return (
        select(
            project, space.c.name.label("space"), shown_name.label("shown"), updated_us.label("updated_us"),
            func.coalesce(experiment.c.deleted_us, 0).label("deleted_us"),
        )
        .join(space, space.c.id == project.c.space_id)
        .outerjoin(experiment, experiment.c.project_id == project.c.id)
        .where(scope_clause(project, scope))
    )  # fmt: skip


def _experiment(row: Any) -> Experiment:
    return Experiment(
        row.id, row.shown, row.name, row.space_id, row.space, row.created_us, row.updated_us, deleted=row.deleted_us > 0
    )


def view(found: Experiment, tagged: dict[str, str]) -> Document:
    return {
        "experiment_id": found.id,
        "name": found.name,
        "artifact_location": f"mlflow-artifacts:/{found.id}",
        "lifecycle_stage": "deleted" if found.deleted else "active",
        "last_update_time": codec.milliseconds(found.updated_us),
        "creation_time": codec.milliseconds(found.created_us),
        "tags": codec.pairs(tagged),
    }


def _shown(tx: ReadTx, found: Experiment) -> Document:
    return {"experiment": view(found, tags.of(tx, tags.EXPERIMENT, found.id))}


def _note(tx: Tx, found: Experiment, **columns: Any) -> None:
    """Keep what MLflow says of a project; makes its row at the first word."""
    values = {
        "project_id": found.id, "space_id": found.space_id, "name": found.name,
        "deleted_us": tx.now_us if found.deleted else 0, **columns, "updated_us": tx.now_us,
    }  # fmt: skip
    tx.execute(upsert(experiment, values, key=["project_id"], update=["updated_us", *columns]))


# --- routes ----------------------------------------------------------------------------------------------------------


def create(tx: Tx, scope: Scope, asked: Asked) -> Document:
    """Make an experiment. Where its artifacts lie is our matter: `artifact_location` is not followed."""
    name, tagged = asked.need("name"), tags.given(asked.records("tags"))
    known = _named(tx, scope, name)
    if known is not None or name == DEFAULT_NAME:
        raise Conflict("mlflow_exists", what="experiment", name=name[:200])
    if len(name) > MOST_NAME or not name.isprintable():
        raise codec.bad("name", name)
    where = home_space(tx, scope)
    made = ensure_project(tx, scope, where, _free_word(tx, scope, where, name))
    found = find(tx, scope, made.id)
    _note(tx, found, name=name)
    tags.put(tx, tags.EXPERIMENT, found.id, tagged)
    return {"experiment_id": found.id}


def _free_word(tx: ReadTx, scope: Scope, where: str, name: str) -> str:
    """Return a project name that is free: the name itself, or what is left of it as one word, with a number."""
    word = word_of(name, otherwise="experiment")
    at = select(space.c.id).where(space.c.name == where).scalar_subquery()
    taken = {row.name for row in tx.rows(select(project_name.c.name).where(project_name.c.space_id == at))}
    number = 1
    candidate = word
    while candidate in taken:
        number += 1
        candidate = f"{word[:90]}-{number}"
    return candidate


def get(tx: ReadTx, scope: Scope, asked: Asked) -> Document:
    return _shown(tx, find(tx, scope, asked.need("experiment_id")))


def get_by_name(tx: ReadTx, scope: Scope, asked: Asked) -> Document:
    name = asked.need("experiment_name")
    if name == DEFAULT_NAME:
        return _shown(tx, _default(tx, scope, Permission.READ))
    found = _named(tx, scope, name)
    if found is None:
        raise NotFound("mlflow_experiment_unknown", ref=name[:200])
    return _shown(tx, found)


def rename(tx: Tx, scope: Scope, asked: Asked) -> Document:
    """Give an experiment another name; the project is renamed along with it, its old name keeps leading to it."""
    found = active(find(tx, scope, asked.need("experiment_id"), permission=Permission.MAINTAIN))
    name = asked.need("new_name")
    holder = _named(tx, scope, name)
    if name == DEFAULT_NAME or (holder is not None and holder.id != found.id):
        raise Conflict("mlflow_exists", what="experiment", name=name[:200])
    if len(name) > MOST_NAME or not name.isprintable():
        raise codec.bad("new_name", name)
    if found.id == DEFAULT_ID:
        raise NotFound("mlflow_experiment_unknown", ref=found.id)
    word = _free_word(tx, scope, found.space, name)
    if word_of(name, otherwise="") != found.project:
        rename_project(tx, scope, found.project, to=word, space=found.space)
    _note(tx, found, name=name)
    return {}


def delete(tx: Tx, scope: Scope, asked: Asked) -> Document:
    """Hide an experiment; nothing of it is lost."""
    found = find(tx, scope, asked.need("experiment_id"), permission=Permission.MAINTAIN)
    if found.id == DEFAULT_ID:
        raise NotFound("mlflow_experiment_unknown", ref=found.id)
    active(found)
    _note(tx, found, deleted_us=tx.now_us)
    tx.emit(Event("experiment.deleted", found.id, found.space_id, data={"name": found.name}))
    return {}


def restore(tx: Tx, scope: Scope, asked: Asked) -> Document:
    found = find(tx, scope, asked.need("experiment_id"), permission=Permission.MAINTAIN)
    if not found.deleted:
        raise BadInput("mlflow_experiment_active", ref=found.id)
    _note(tx, found, deleted_us=0)
    tx.emit(Event("experiment.restored", found.id, found.space_id, data={"name": found.name}))
    return {}


def set_tag(tx: Tx, scope: Scope, asked: Asked) -> Document:
    found = active(find_or_make(tx, scope, asked.need("experiment_id")))
    key, value = read_tag(asked)
    tags.put(tx, tags.EXPERIMENT, found.id, {key: value})
    _tagged(tx, found, key)
    return {}


def delete_tag(tx: Tx, scope: Scope, asked: Asked) -> Document:
    found = active(find_or_make(tx, scope, asked.need("experiment_id")))
    key = asked.need("key")
    tags.take(tx, tags.EXPERIMENT, found.id, key)
    _tagged(tx, found, key)
    return {}


def _tagged(tx: Tx, found: Experiment, key: str) -> None:
    _note(tx, found)
    tx.emit(Event("experiment.tagged", found.id, found.space_id, data={"name": found.name, "key": key}))


# --- search ----------------------------------------------------------------------------------------------------------

_TEXTS: dict[str, ColumnElement[Any]] = {"name": shown_name, "experiment_id": project.c.id}
_TIMES: dict[str, ColumnElement[Any]] = {
    "creation_time": project.c.created_us // 1000,
    "last_update_time": updated_us // 1000,
}


def search(tx: ReadTx, scope: Scope, asked: Asked) -> Document:
    size = codec.page_size(asked, usual=1000, most=MOST_RESULTS)
    start = codec.offset_of(asked.text("page_token"))
    stmt = _select(scope).where(conditions.all_of([_condition(term) for term in filters.parse(asked.text("filter"))]))
    stmt = in_view(stmt, asked.text("view_type"), func.coalesce(experiment.c.deleted_us, 0))
    stmt = stmt.order_by(*_order(asked.texts("order_by")), project.c.created_us.desc(), project.c.id)
    rows = tx.rows(stmt.offset(start).limit(size + 1))
    found = [_experiment(row) for row in rows[:size]]
    tagged = tags.of_many(tx, tags.EXPERIMENT, [one.id for one in found])
    reply: Document = {"experiments": [view(one, tagged[one.id]) for one in found]}
    if len(rows) > size:
        reply["next_page_token"] = codec.page_token(start + size)
    return reply


def in_view(stmt: Select[Any], view_type: str, deleted_us: ColumnElement[Any]) -> Select[Any]:
    """Keep what is alive, deleted, or all, by MLflow's word or number for it."""
    if view_type in ("", "1", "ACTIVE_ONLY"):
        return stmt.where(deleted_us == 0)
    if view_type in ("2", "DELETED_ONLY"):
        return stmt.where(deleted_us > 0)
    if view_type in ("3", "ALL"):
        return stmt
    raise codec.bad("view_type", view_type)


def _condition(term: filters.Term) -> ColumnElement[bool]:
    field = term.field
    if field.entity == "tags":
        return conditions.tagged(tags.EXPERIMENT, project.c.id, term)
    if field.entity == "attributes" and field.key in _TEXTS:
        return conditions.compared(_TEXTS[field.key], term)
    if field.entity == "attributes" and field.key in _TIMES:
        return conditions.compared(_TIMES[field.key], term, numeric=True)
    raise filters.unknown(field, {**_TEXTS, **_TIMES, "tags.KEY": None})


def _order(entries: Sequence[str]) -> list[ColumnElement[Any]]:
    found: list[ColumnElement[Any]] = []
    for entry in entries:
        field, ascending = filters.parse_order(entry)
        column = (_TEXTS | _TIMES).get(field.key) if field.entity == "attributes" else None
        if column is None:
            raise filters.unknown(field, _TEXTS | _TIMES)
        found += conditions.ordered(column, ascending=ascending)
    return found


routes: list[Any] = [
    writes("POST", "experiments/create", create),
    reads("GET", "experiments/get", get),
    reads("GET", "experiments/get-by-name", get_by_name),
    reads("GET POST", "experiments/search", search),
    writes("POST", "experiments/update", rename, permission=Permission.MAINTAIN),
    writes("POST", "experiments/delete", delete, permission=Permission.MAINTAIN),
    writes("POST", "experiments/restore", restore, permission=Permission.MAINTAIN),
    writes("POST", "experiments/set-experiment-tag", set_tag),
    writes("POST", "experiments/delete-experiment-tag", delete_tag),
]
