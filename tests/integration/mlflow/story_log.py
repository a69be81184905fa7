"""With an unmodified MLflow client: experiments, runs, points, params, tags, files, searches. Prints what it read."""

import json
import math
import sys
import tempfile
from pathlib import Path

import mlflow
from mlflow.entities import Metric, Param, RunTag, ViewType
from mlflow.exceptions import MlflowException

client = mlflow.MlflowClient()
said: dict[str, object] = {"version": mlflow.__version__}

# experiments
experiment = mlflow.set_experiment("my experiment/with slash")
said["experiment"] = [experiment.name, experiment.lifecycle_stage]
assert mlflow.set_experiment("my experiment/with slash").experiment_id == experiment.experiment_id
client.set_experiment_tag(experiment.experiment_id, "team", "vision")
assert client.get_experiment(experiment.experiment_id).tags["team"] == "vision"
assert client.get_experiment_by_name("nothing like it") is None
other = client.create_experiment("second", tags={"a": "b"})
try:
    client.create_experiment("second")
    raise AssertionError("made twice")
except MlflowException as refused:
    said["twice"] = refused.error_code
client.rename_experiment(other, "second again")
client.delete_experiment(other)
said["deleted"] = client.get_experiment(other).lifecycle_stage
client.restore_experiment(other)
names = [one.name for one in client.search_experiments(order_by=["name ASC"])]
said["experiments"] = names
assert [one.name for one in client.search_experiments(filter_string="tags.team = 'vision'")] == [experiment.name]
assert [one.name for one in client.search_experiments(filter_string="name LIKE 'second%'")] == ["second again"]

# one run by the fluent API
with mlflow.start_run(run_name="first", tags={"kind": "cnn"}) as run:
    mlflow.log_param("lr", 0.001)
    mlflow.log_params({"layers": 12, "name": "a b/c", "中文": "值", "flag": True})
    for step in range(50):
        mlflow.log_metric("loss", 1.0 / (step + 1), step=step)
    mlflow.log_metrics({"acc": 0.9, "val/acc": 0.8}, step=3)
    mlflow.log_metric("nan", float("nan"))
    mlflow.log_metric("inf", float("inf"))
    mlflow.set_tag("mlflow.note.content", "a note")
    mlflow.set_tags({"x": "1", "y": "2"})
    mlflow.delete_tag("y")
    mlflow.log_dict({"a": [1, 2]}, "conf/a.json")
    mlflow.log_text("hello 你好", "notes/深/hello.txt")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sub").mkdir()
        (Path(folder) / "sub" / "b.bin").write_bytes(bytes(range(256)) * 5000)
        mlflow.log_artifacts(folder, "whole")
    try:
        mlflow.log_param("lr", 0.002)
        raise AssertionError("a param changed")
    except MlflowException as refused:
        said["param"] = refused.error_code
    mlflow.log_param("lr", 0.001)
    import mlflow.data.code_dataset_source

    dataset = mlflow.data.meta_dataset.MetaDataset(
        mlflow.data.code_dataset_source.CodeDatasetSource({"a": "b"}), name="corpus"
    )
    mlflow.log_input(dataset, context="training")

found = client.get_run(run.info.run_id)
said["status"] = found.info.status
said["params"] = found.data.params
said["tags"] = {key: value for key, value in found.data.tags.items() if not key.startswith("mlflow.")}
said["note"] = found.data.tags["mlflow.note.content"]
said["run_name"] = found.info.run_name
assert found.data.metrics["loss"] == 1.0 / 50, found.data.metrics
assert math.isnan(found.data.metrics["nan"])
assert found.data.metrics["inf"] == sys.float_info.max
assert found.data.metrics["val/acc"] == 0.8
assert found.inputs.dataset_inputs[0].dataset.name == "corpus"
assert found.info.end_time >= found.info.start_time
history = client.get_metric_history(run.info.run_id, "loss")
assert [(one.step, one.value) for one in history] == [(step, 1.0 / (step + 1)) for step in range(50)]
said["files"] = [one.path for one in client.list_artifacts(run.info.run_id)]
said["inner"] = [(one.path, one.is_dir, one.file_size) for one in client.list_artifacts(run.info.run_id, "whole/sub")]
assert client.list_artifacts(run.info.run_id, "whole/sub/b.bin") == []
local = client.download_artifacts(run.info.run_id, "whole")
assert (Path(local) / "sub" / "b.bin").read_bytes() == bytes(range(256)) * 5000
assert Path(client.download_artifacts(run.info.run_id, "notes/深/hello.txt")).read_text() == "hello 你好"
assert mlflow.artifacts.load_dict(f"{run.info.artifact_uri}/conf/a.json") == {"a": [1, 2]}

# a batch, duplicates, latest
second = client.create_run(experiment.experiment_id, run_name="second")
ident = second.info.run_id
client.log_batch(
    ident,
    metrics=[Metric("m", 4.0, 1000, 7), Metric("m", 5.0, 1000, 7), Metric("m", 3.0, 1000, 7), Metric("m", 9.0, 2000, 1)]
    + [Metric("many", float(at), 1000 + at, at) for at in range(900)],
    params=[Param(f"p{at}", str(at)) for at in range(90)],
    tags=[RunTag("kind", "mlp")],
)
client.log_batch(ident, metrics=[Metric("m", 5.0, 1000, 7)])
assert client.get_run(ident).data.metrics["m"] == 5.0
history = client.get_metric_history(ident, "m")
said["history"] = [(one.timestamp, one.step, one.value) for one in history]
assert len(client.get_metric_history(ident, "many")) == 900
client.log_metric(ident, "async", 1.5, synchronous=False)
mlflow.flush_async_logging()
client.set_terminated(ident, "FAILED")
said["failed"] = client.get_run(ident).info.status


# searches
def names_of(text: str, **more: object) -> list[str]:
    return [one.info.run_name for one in client.search_runs([experiment.experiment_id], text, **more)]


said["searches"] = [
    names_of(""),
    names_of("metrics.loss < 0.5"),
    names_of("params.lr = '0.001' and tags.kind = 'cnn'"),
    names_of("params.`中文` = '值'"),
    names_of("attributes.status = 'FAILED'"),
    names_of("attributes.status != 'RUNNING'", order_by=["metrics.m DESC", "attributes.start_time ASC"]),
    names_of("tags.kind ILIKE 'C%'"),
    names_of("tags.kind LIKE 'C%'"),
    names_of("attributes.run_name != 'first'"),
    names_of("dataset.name = 'corpus'"),
    names_of(f"attributes.run_id IN ('{ident}')"),
]
try:
    client.search_runs([experiment.experiment_id], "what is this")
    raise AssertionError("a wrong filter was taken")
except MlflowException as refused:
    said["filter"] = refused.error_code
pages = []
token = None
while True:
    page = client.search_runs([experiment.experiment_id], max_results=1, page_token=token)
    pages.append(len(page))
    token = page.token
    if not token:
        break
said["pages"] = pages

# the end, and after it
client.delete_run(ident)
assert names_of("") == ["first"]

assert names_of("", run_view_type=ViewType.DELETED_ONLY) == ["second"]
try:
    client.log_metric(ident, "late", 1.0)
    raise AssertionError("a deleted run was logged into")
except MlflowException as refused:
    said["late"] = refused.error_code
client.restore_run(ident)
with mlflow.start_run(run_id=run.info.run_id):
    mlflow.log_metric("after", 1.0)
    said["resumed"] = client.get_run(run.info.run_id).info.status
said["ended"] = client.get_run(run.info.run_id).info.status
assert client.get_run(run.info.run_id).data.metrics["after"] == 1.0
try:
    client.get_run("0" * 32)
    raise AssertionError("an unknown run was found")
except MlflowException as refused:
    said["unknown"] = refused.error_code
with mlflow.start_run() as parent, mlflow.start_run(nested=True) as child:
    pass
assert client.get_run(child.info.run_id).data.tags["mlflow.parentRunId"] == parent.info.run_id
said["run"], said["experiment_id"] = run.info.run_id, experiment.experiment_id
Path(sys.argv[1]).write_text(json.dumps(said, ensure_ascii=False))
