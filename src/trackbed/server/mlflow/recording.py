"""What a client logs: points, params, tags, inputs and outputs of a run.

Points and params become frames of the run like any other, one client and one sequence per run and route, and are durable
before the answer. A request is taken whole or refused whole, as MLflow does.
"""

import asyncio
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from litestar import Request, Response
from sqlalchemy import select
from sqlalchemy import update as sql_update

from trackbed.base.errors import BadInput
from trackbed.db import ReadTx, Tx, upsert
from trackbed.domain.events import Event
from trackbed.domain.scope import Permission, Scope
from trackbed.formats import spool
from trackbed.formats.spool import Header, Metrics
from trackbed.server.app import App
from trackbed.server.flows import outside
from trackbed.server.flows.points import keep_points
from trackbed.server.mlflow import codec, logged_metrics, points, run_views, tags
from trackbed.server.mlflow.codec import Asked, Document, answer, ask
from trackbed.server.mlflow.routing import made, writes
from trackbed.server.mlflow.tables import link
from trackbed.server.news import tell
from trackbed.tracking import facts
from trackbed.tracking import runs as room
from trackbed.tracking.facts_spelled import native, native_tag, spelled
from trackbed.tracking.ingest import Ingested, Prepared, ingest, prepare
from trackbed.tracking.ingest_summary import Known
from trackbed.tracking.ingest_tables import watermark
from trackbed.tracking.runs_tables import run
from trackbed.wire.mlflow import RUN_NAME, RUN_NOTE, Point, read_params, read_point, read_tag
from trackbed.wire.series import FramesReceipt

HISTORY_TAG = "mlflow.log-model.history"


@dataclass
class Said:
    """What one request logs into a run."""

    points: list[Point] = field(default_factory=list[Point])
    params: dict[str, str] = field(default_factory=dict[str, str])
    tags: dict[str, str] = field(default_factory=dict[str, str])
    of_models: list[logged_metrics.ModelPoint] = field(default_factory=list[logged_metrics.ModelPoint])


# --- routes ----------------------------------------------------------------------------------------------------------


def _said_metric(asked: Asked) -> Said:
    one = read_point(asked)
    return Said(points=[one], of_models=logged_metrics.read([asked], [one]))


def _said_param(asked: Asked) -> Said:
    return Said(params=read_params([asked]))


def _said_batch(asked: Asked) -> Said:
    entries = asked.records("metrics")
    found = [read_point(entry) for entry in entries]
    return Said(
        points=found,
        params=read_params(asked.records("params")),
        tags=tags.given(asked.records("tags")),
        of_models=logged_metrics.read(entries, found),
    )


def _records(path: str, read: Any) -> Any:
    """Return the handler of a route that logs. What `read` makes of the request is prepared off the writer lane."""
    route = path.rpartition("/")[2].replace("-", "")

    async def handler(request: Request[Any, Any, Any], trackbed_app: App, who: Scope) -> Response[bytes]:
        asked = await ask(request)
        run_id = asked.need("run_id", "run_uuid")
        said = await asyncio.to_thread(read, asked)
        await keep(trackbed_app, who, run_id, said, client=f"cli_mlflow{route}")
        return answer({})

    return made("POST", path, Permission.WRITE, handler)


async def keep(app: App, who: Scope, run_id: str, said: Said, *, client: str) -> None:
    """Log into a run: all of it durable, or none of it.

    Raises:
        NotFound, Denied: the run, or the right to log into it, is missing.
        BadInput: `mlflow_param_changed`, with both values.
    """
    row = await app.db.aread(lambda tx: run_views.writable(tx, who, run_id))
    prepared = await asyncio.to_thread(_prepare, said, client, row.attempt)

    def work(tx: Tx, sealed: Known | None) -> Ingested:
        return _keep(tx, who, run_id, said, prepared, sealed)

    done = await keep_points(app, work, actor=who.actor)
    tell(app, row, done)


def _prepare(said: Said, client: str, attempt: int) -> Prepared:
    """Return the frames of a request, numbered from 1; `_keep` gives them their place in the sequence."""
    frames: list[bytes] = []
    if said.points:
        keys = list(dict.fromkeys(one.key for one in said.points))
        at = {key: place for place, key in enumerate(keys)}
        columns = Metrics(
            keys,
            array("I", [at[one.key] for one in said.points]),
            array("q", [one.step for one in said.points]),
            array("q", [one.ts_ms * 1000 for one in said.points]),
            array("d", [one.value for one in said.points]),
        )
        head = Header(kind=spool.METRICS, attempt=attempt, client=client, seq=1, n=len(said.points))
        frames.append(spool.encode(head, spool.encode_metrics(columns)))
    if said.params:
        document = {key: native(value) for key, value in said.params.items()}
        head = Header(kind=spool.PARAMS, attempt=attempt, client=client, seq=len(frames) + 1, n=len(document))
        frames.append(spool.encode(head, spool.encode_document(document)))
    return prepare(b"".join(frames))


def _keep(tx: Tx, who: Scope, run_id: str, said: Said, prepared: Prepared, sealed: Known | None) -> Ingested:
    row = run_views.writable(tx, who, run_id)
    outside.heard(tx, row)
    _check_params(tx, row, said.params)
    numbered = _numbered(tx, row.id, prepared)
    done = ingest(tx, row, numbered, sealed=sealed) if numbered.batch.items else Ingested(FramesReceipt())
    points.note_latest(tx, row.id, said.points)
    logged_metrics.keep(tx, who, row, said.of_models)
    put_tags(tx, row, said.tags)
    return done


def _check_params(tx: ReadTx, row: room.RunRow, params: Mapping[str, str]) -> None:
    known = facts.params_of(tx, row.id, list(params)) if params else {}
    for name, value in params.items():
        if name in known and spelled(known[name]) != value:
            raise BadInput("mlflow_param_changed", name=name, stands=spelled(known[name])[:200], given=value[:200])


def _numbered(tx: ReadTx, run_id: str, prepared: Prepared) -> Prepared:
    """Put the frames behind those that this client has kept; a request has no number of its own to be told by."""
    items = prepared.batch.items
    if not items:
        return prepared
    this = (watermark.c.run_id == run_id, watermark.c.client == items[0].header.client)
    kept = tx.scalar(select(watermark.c.seq).where(*this)) or 0
    numbered: list[Any] = []
    for place, item in enumerate(items, kept + 1):
        head = msgspec.structs.replace(item.header, seq=place, ts=tx.now_us)
        raw = spool.encode(head, spool.decode(item.raw).frames[0].body) if item.raw else b""
        numbered.append(replace(item, header=head, raw=raw))
    return replace(prepared, batch=replace(prepared.batch, items=numbered))


# --- tags ------------------------------------------------------------------------------------------------------------


def set_tag(tx: Tx, scope: Scope, asked: Asked) -> Document:
    row = run_views.writable(tx, scope, asked.need("run_id", "run_uuid"))
    put_tags(tx, row, dict([read_tag(asked)]))
    return {}


def set_tags(tx: Tx, scope: Scope, asked: Asked) -> Document:
    """Set several tags, as a batch does."""
    put_tags(tx, run_views.writable(tx, scope, asked.need("run_id")), tags.given(asked.records("tags")))
    return {}


def delete_tag(tx: Tx, scope: Scope, asked: Asked) -> Document:
    row, key = run_views.writable(tx, scope, asked.need("run_id")), asked.need("key")
    before = tags.of(tx, tags.RUN, row.id).get(key)
    labels: list[str] = room.from_json(row.tags, [])
    if key == RUN_NOTE and row.description:
        tx.execute(sql_update(run).where(run.c.id == row.id).values(description="", version=run.c.version + 1))
    else:
        tags.take(tx, tags.RUN, row.id, key, must=key not in labels)
    facts.change_tags(tx, row.id, [([], [key if before is None else native_tag(key, before)])])
    _tagged(tx, row, [key])
    return {}


def put_tags(tx: Tx, row: room.RunRow, entries: Mapping[str, str]) -> None:
    """Set tags of a run. Its name and its note are its own; the others stand as labels on our pages too."""
    if not entries:
        return
    others = {key: value for key, value in entries.items() if key not in (RUN_NAME, RUN_NOTE)}
    if RUN_NAME in entries:
        set_name(tx, row, entries[RUN_NAME])
    if RUN_NOTE in entries:
        values = {"description": entries[RUN_NOTE], "version": run.c.version + 1}
        tx.execute(sql_update(run).where(run.c.id == row.id).values(**values))
    before = tags.of(tx, tags.RUN, row.id)
    tags.put(tx, tags.RUN, row.id, others)
    gone = [native_tag(key, before[key]) for key in others if key in before]
    new = [label for key, value in others.items() if (label := native_tag(key, value))]
    facts.change_tags(tx, row.id, [([], gone), (new, [])])
    _tagged(tx, row, sorted(entries))


def set_name(tx: Tx, row: room.RunRow, name: str) -> None:
    if name != row.name:
        tx.execute(sql_update(run).where(run.c.id == row.id).values(name=name, version=run.c.version + 1))
        tx.emit(Event("run.changed", row.id, row.space_id, row.id, data={"fields": ["name"]}))


def _tagged(tx: Tx, row: room.RunRow, keys: list[str]) -> None:
    tx.emit(Event("run.tagged", row.id, row.space_id, row.id, data={"keys": [key[:100] for key in keys[:20]]}))


# --- inputs and outputs ----------------------------------------------------------------------------------------------


def log_inputs(tx: Tx, scope: Scope, asked: Asked) -> Document:
    """Note which datasets and models a run read."""
    row = run_views.writable(tx, scope, asked.need("run_id"))
    rows: list[dict[str, Any]] = []
    for one in asked.records("datasets"):
        dataset, tagged = one.record("dataset"), tags.given(one.records("tags"))
        name, digest = dataset.need("name"), dataset.need("digest")
        document = {
            "tags": codec.pairs(tagged),
            "dataset": codec.some(
                name=name, digest=digest, source_type=dataset.text("source_type"), source=dataset.text("source"),
                schema=dataset.text("schema") or None, profile=dataset.text("profile") or None,
            ),
        }  # fmt: skip
        context = tagged.get("mlflow.data.context", "")
        rows.append(_link("dataset", f"{name}:{digest}", document, name=name, digest=digest, context=context))
    rows += [
        _link("model_in", one.need("model_id"), {"model_id": one.need("model_id")}) for one in asked.records("models")
    ]
    _note_links(tx, row, rows)
    return {}


def log_outputs(tx: Tx, scope: Scope, asked: Asked) -> Document:
    """Note which models a run made."""
    row = run_views.writable(tx, scope, asked.need("run_id"))
    rows: list[dict[str, Any]] = []
    for one in asked.records("models"):
        model_id, step = one.need("model_id"), one.whole("step")
        rows.append(_link("model_out", f"{model_id}@{step}", {"model_id": model_id, "step": step}))
    _note_links(tx, row, rows)
    return {}


def log_model(tx: Tx, scope: Scope, asked: Asked) -> Document:
    """Note a model as clients of MLflow 2 do: by a tag that lists them."""
    row = run_views.writable(tx, scope, asked.need("run_id"))
    try:
        model = msgspec.json.decode(asked.need("model_json"), type=dict[str, Any])
        before = msgspec.json.decode(tags.of(tx, tags.RUN, row.id).get(HISTORY_TAG, "[]"), type=list[Any])
    except msgspec.MsgspecError:
        raise codec.bad("model_json", asked.text("model_json")) from None
    put_tags(tx, row, {HISTORY_TAG: msgspec.json.encode([*before, model]).decode()})
    return {}


def _link(kind: str, ref: str, document: Document, **columns: str) -> dict[str, Any]:
    row = {"kind": kind, "ref": ref, "name": "", "digest": "", "context": ""}
    return {**row, **columns, "document": msgspec.json.encode(document).decode()}


def _note_links(tx: Tx, row: room.RunRow, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    update = ["name", "digest", "context", "document"]
    stmt = upsert(link, key=["run_id", "kind", "ref"], update=update)
    tx.execute(stmt, [{**one, "run_id": row.id, "created_us": tx.now_us} for one in rows])
    refs = [one["ref"][:200] for one in rows[:20]]
    tx.emit(Event("run.linked", row.id, row.space_id, row.id, data={"kind": rows[0]["kind"], "refs": refs}))


routes: list[Any] = [
    _records("runs/log-metric", _said_metric),
    _records("runs/log-parameter", _said_param),
    _records("runs/log-batch", _said_batch),
    writes("POST", "runs/set-tag", set_tag),
    writes("POST", "runs/delete-tag", delete_tag),
    writes("POST", "runs/log-inputs", log_inputs),
    writes("POST", "runs/outputs", log_outputs),
    writes("POST", "runs/log-model", log_model),
]
