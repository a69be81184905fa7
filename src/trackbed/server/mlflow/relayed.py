"""What the relay of an attempt spooled of MLflow: done here in the order in which a rank said it, exactly once.

A request that another one would refuse was answered long ago: it is refused alone, in the receipt, and the rest is kept.
"""

from trackbed.base.errors import TrackbedError
from trackbed.db import Tx
from trackbed.domain.scope import Scope
from trackbed.formats import spool
from trackbed.server.flows import outside
from trackbed.server.mlflow import experiments, logged_metrics, points, recording, run_views, runs, tags
from trackbed.server.mlflow.codec import Asked, Document
from trackbed.server.mlflow.routing import Writing, for_job
from trackbed.tracking import runs as room
from trackbed.tracking.ingest import Ingested
from trackbed.tracking.ingest_parse import Batch, Item
from trackbed.wire.mlflow import CLIENT, RUN_NAME, Point, read_point
from trackbed.wire.series import Rejected


def child_of(tx: Tx, job: room.RunRow, batch: Batch) -> room.RunRow | None:
    """Return the child run of a job that a batch is about, made by its first frame; None where it is about another run."""
    ident = batch.items[0].header.run if batch.items else ""
    if ident in ("", job.id) or any(item.header.run != ident for item in batch.items):
        return None
    first = batch.items[0].content if batch.items[0].header.kind == spool.MLFLOW else None
    asked = Asked(first["body"]) if first and first["do"] == "runs/create" else None
    try:
        return outside.child(
            tx, job, ident, name=asked and asked.text("run_name"), started_us=asked.whole("start_time") * 1000 if asked else 0
        )  # fmt: skip
    except TrackbedError:
        return None


def take(tx: Tx, scope: Scope, row: room.RunRow, done: Ingested) -> None:
    """Do what the fresh frames of a batch ask for beyond points, params and files."""
    for item in done.fresh:
        if item.header.kind == spool.METRICS and item.header.client.startswith(CLIENT) and item.content is not None:
            points.note_latest(tx, row.id, _points(item.content))
        elif item.header.kind == spool.MLFLOW and item.content is not None:
            _do(tx, scope, row, item, done)


def _points(columns: spool.Metrics) -> list[Point]:
    named = zip(columns.key, columns.step, columns.ts, columns.value, strict=True)
    return [Point(columns.keys[key], step, ts // 1000, value) for key, step, ts, value in named]


def _do(tx: Tx, scope: Scope, row: room.RunRow, item: Item, done: Ingested) -> None:
    what = str(item.content["do"])
    body: Document = item.content["body"]
    work = _WORK.get(what)
    try:
        if work is None:
            code, params = "mlflow_do_unknown", {"do": what[:100]}
        else:
            work(tx, for_job(scope), Asked({**body, "run_id": row.id}))
            return
    except TrackbedError as error:
        code, params = error.code, error.params
    head = item.header
    done.receipt.rejected.append(
        Rejected(client=head.client, sequence=head.seq, item=what[:200], code=code, params=dict(params))
    )


def _begin(tx: Tx, scope: Scope, asked: Asked) -> Document:
    """The first run that a rank makes is the job's own: it takes the tags, and the name where the job has none."""
    row = run_views.writable(tx, scope, asked.need("run_id"))
    tagged = tags.given(asked.records("tags"))
    name = asked.text("run_name") or tagged.get(RUN_NAME, "")
    recording.put_tags(tx, row, {key: value for key, value in tagged.items() if key != RUN_NAME})
    if name and not row.name:
        recording.set_name(tx, row, name[: runs.MOST_NAME])
    return {}


def _model_metrics(tx: Tx, scope: Scope, asked: Asked) -> Document:
    """Points that say which logged model they are of; as points of the run they came in a frame of their own."""
    row = run_views.writable(tx, scope, asked.need("run_id"))
    entries = asked.records("metrics")
    logged_metrics.keep(tx, scope, row, logged_metrics.read(entries, [read_point(one) for one in entries]))
    return {}


_WORK: dict[str, Writing] = {
    "runs/create": _begin,
    "runs/update": runs.update,
    "runs/set-tags": recording.set_tags,
    "runs/delete-tag": recording.delete_tag,
    "runs/log-inputs": recording.log_inputs,
    "runs/outputs": recording.log_outputs,
    "runs/log-model": recording.log_model,
    "runs/model-metrics": _model_metrics,
    "experiments/set-experiment-tag": experiments.set_tag,
}
