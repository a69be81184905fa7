"""Models and their versions as MLflow sees them: found by the names that MLflow gave, hidden where it deleted them."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Integer, Select, Text, and_, cast, func, select
from sqlalchemy import update as sql_update

from trackbed.access.tables import space
from trackbed.base.errors import NotFound
from trackbed.db import ReadTx, Tx, scope_clause, upsert
from trackbed.domain.scope import Scope
from trackbed.registry.sql import alias, model, version
from trackbed.server.mlflow import codec, experiments, tags
from trackbed.server.mlflow.codec import Document
from trackbed.server.mlflow.tables import registered, version_facts

shown_name: ColumnElement[str] = func.coalesce(registered.c.name, model.c.name)
model_created: ColumnElement[int] = func.coalesce(registered.c.created_us, model.c.created_us, type_=Integer)
model_updated: ColumnElement[int] = func.coalesce(registered.c.updated_us, model.c.created_us, type_=Integer)
version_updated: ColumnElement[int] = func.coalesce(version_facts.c.updated_us, version.c.created_us, type_=Integer)
version_owner: ColumnElement[str] = version.c.model_id + "/" + cast(version.c.version, Text)
version_source: ColumnElement[str] = func.coalesce(
    func.nullif(version_facts.c.source, ""), "mlflow-artifacts:/registry/" + version_owner
)
logged_id: ColumnElement[str] = func.coalesce(version_facts.c.logged_model_id, "")


def selected_models(scope: Scope) -> Select[Any]:
    """Return the select of models that the scope may read and MLflow has not deleted."""
    return (
        select(
            model,
            shown_name.label("shown_name"),
            model_created.label("shown_created_us"),
            model_updated.label("updated_us"),
            func.coalesce(registered.c.description, "").label("description"),
            space.c.name.label("space"),
        )
        .join(space, space.c.id == model.c.space_id)
        .outerjoin(registered, registered.c.model_id == model.c.id)
        .where(scope_clause(model, scope), func.coalesce(registered.c.deleted_us, 0) == 0)
    )


def selected_versions(scope: Scope) -> Select[Any]:
    """Return the select of versions of such models."""
    of_version = and_(version_facts.c.model_id == version.c.model_id, version_facts.c.version == version.c.version)
    return (
        select(
            version,
            model.c.name.label("model"),
            shown_name.label("shown_name"),
            version_source.label("source"),
            version_updated.label("updated_us"),
            func.coalesce(version_facts.c.run_link, "").label("run_link"),
            logged_id.label("logged_model_id"),
            func.coalesce(version_facts.c.description, "").label("description"),
            func.coalesce(version_facts.c.stage, "None").label("stage"),
            space.c.name.label("space"),
        )
        .join(model, model.c.id == version.c.model_id)
        .join(space, space.c.id == model.c.space_id)
        .outerjoin(registered, registered.c.model_id == model.c.id)
        .outerjoin(version_facts, of_version)
        .where(
            scope_clause(version, scope),
            func.coalesce(registered.c.deleted_us, 0) == 0,
            func.coalesce(version_facts.c.deleted_us, 0) == 0,
        )
    )


def find_model(tx: ReadTx, scope: Scope, name: str) -> Any:
    """Return the row of a registered model.

    Raises:
        NotFound: `mlflow_model_unknown`, also behind a wall.
    """
    rows = tx.rows(selected_models(scope).where(shown_name == name))
    if not rows:
        raise NotFound("mlflow_model_unknown", name=name[:200])
    home = experiments.home_space(tx, scope)
    return min(rows, key=lambda row: (row.space != home, row.space))


def find_version(tx: ReadTx, scope: Scope, name: str, number: str) -> Any:
    """Return the row of a model version.

    Raises:
        NotFound: `mlflow_version_unknown`, `mlflow_model_unknown`.
    """
    known = find_model(tx, scope, name)
    row = None
    if number.isdigit() and len(number) < 18:
        this = (version.c.model_id == known.id, version.c.version == int(number))
        row = tx.one(selected_versions(scope).where(*this))
    if row is None:
        raise NotFound("mlflow_version_unknown", name=name[:200], version=number[:40])
    return row


def put_model(tx: Tx, ident: str, space_id: str, name: str, created_us: int, **columns: Any) -> None:
    """Keep what MLflow says of a model; what stands besides `columns` stays."""
    values = {"model_id": ident, "space_id": space_id, "name": name, "created_us": created_us, **columns}
    values["updated_us"] = tx.now_us
    tx.execute(upsert(registered, values, key=["model_id"], update=["updated_us", *columns]))


def note_model(tx: Tx, row: Any, **columns: Any) -> None:
    """As `put_model`, of a model that is shown."""
    known = {"name": row.shown_name, "created_us": row.shown_created_us} | columns
    put_model(tx, row.id, row.space_id, known.pop("name"), known.pop("created_us"), **known)
    if "name" in columns:
        tx.execute(sql_update(registered).where(registered.c.model_id == row.id).values(name=columns["name"]))


def note_version(tx: Tx, row: Any, **columns: Any) -> None:
    """Keep what MLflow says of a version."""
    values = {"model_id": row.model_id, "version": row.version, **columns, "updated_us": tx.now_us}
    tx.execute(upsert(version_facts, values, key=["model_id", "version"], update=["updated_us", *columns]))


def owner_of(row: Any) -> str:
    return f"{row.model_id}/{row.version}"


def aliases_of(tx: ReadTx, model_ids: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return model → alias → version."""
    found: dict[str, dict[str, int]] = {model_id: {} for model_id in model_ids}
    for at in range(0, len(model_ids), 500):
        part = alias.c.model_id.in_(model_ids[at : at + 500])
        for row in tx.rows(select(alias).where(part).order_by(alias.c.alias)):
            found[row.model_id][row.alias] = row.version
    return found


def version_views(tx: ReadTx, rows: Sequence[Any]) -> list[Document]:
    tagged = tags.of_many(tx, tags.VERSION, [owner_of(row) for row in rows])
    labels = aliases_of(tx, list(dict.fromkeys(row.model_id for row in rows)))
    return [
        codec.some(
            name=row.shown_name,
            version=str(row.version),
            creation_timestamp=codec.milliseconds(row.created_us),
            last_updated_timestamp=codec.milliseconds(row.updated_us),
            user_id=row.created_by,
            current_stage=row.stage,
            description=row.description,
            source=row.source,
            run_id=row.run_id,
            status="READY",
            run_link=row.run_link,
            tags=codec.pairs(tagged[owner_of(row)]),
            aliases=[label for label, number in labels[row.model_id].items() if number == row.version],
            model_id=row.logged_model_id or None,
        )
        for row in rows
    ]


def version_view(tx: ReadTx, row: Any) -> Document:
    return version_views(tx, [row])[0]


def model_views(tx: ReadTx, scope: Scope, rows: Sequence[Any]) -> list[Document]:
    ids = [row.id for row in rows]
    tagged, labels, newest = tags.of_many(tx, tags.MODEL, ids), aliases_of(tx, ids), latest_versions(tx, scope, ids)
    return [
        {
            "name": row.shown_name,
            "creation_timestamp": codec.milliseconds(row.shown_created_us),
            "last_updated_timestamp": codec.milliseconds(row.updated_us),
            "description": row.description,
            "latest_versions": version_views(tx, newest[row.id]),
            "tags": codec.pairs(tagged[row.id]),
            "aliases": [{"alias": label, "version": str(number)} for label, number in labels[row.id].items()],
        }
        for row in rows
    ]


def latest_versions(
    tx: ReadTx, scope: Scope, model_ids: Sequence[str], stages: Sequence[str] = ()
) -> dict[str, list[Any]]:
    """Return the newest version of each stage of each model."""
    found: dict[str, dict[str, Any]] = {model_id: {} for model_id in model_ids}
    for at in range(0, len(model_ids), 500):
        part = version.c.model_id.in_(model_ids[at : at + 500])
        for row in tx.rows(selected_versions(scope).where(part).order_by(version.c.version)):
            found[row.model_id][row.stage] = row
    wanted = set(stages)
    return {
        model_id: [row for stage, row in sorted(of_stage.items()) if not wanted or stage in wanted]
        for model_id, of_stage in found.items()
    }
