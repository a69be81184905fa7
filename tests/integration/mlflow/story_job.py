"""A training script as people wrote it for MLflow, run as a job; what it read is said as JSON. No word of Trackbed in it.

argv: where to say, a file that says that it has begun, a file to wait for.
"""

import json
import math
import os
import sys
import time
from pathlib import Path

import mlflow
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

said = {}
Path(sys.argv[2]).touch()
while not Path(sys.argv[3]).exists():
    time.sleep(0.05)

experiment = mlflow.set_experiment("an experiment / of any name")
said["experiment"] = [experiment.experiment_id, experiment.name]
said["asked"] = [os.environ["MLFLOW_RUN_ID"], os.environ["MLFLOW_EXPERIMENT_ID"]]

with mlflow.start_run(run_name="mine", tags={"team": "nlp"}) as run:
    said["run"] = run.info.run_id
    mlflow.log_params({"depth": 4, "lr": 0.1, "name": "多行"})
    mlflow.log_param("depth", 4)
    try:
        mlflow.log_param("depth", 5)
    except MlflowException as refused:
        said["changed"] = refused.error_code
    for step in range(50):
        mlflow.log_metric("loss", 1.0 / (step + 1), step=step)
    mlflow.log_metrics({"odd": math.nan, "big": math.inf}, step=3)
    mlflow.log_metric("same", 2.0, step=1)
    mlflow.log_metric("same", 5.0, step=1)
    mlflow.set_tag("mlflow.note.content", "a note")
    mlflow.set_tags({"stage": "one", "gone": "x"})
    mlflow.delete_tag("gone")
    mlflow.log_text("hello", "notes/hello.txt")
    mlflow.log_dict({"a": [1, 2]}, "conf.json")
    mlflow.log_text("", "empty.txt")
    said["listed"] = [[one.path, one.is_dir] for one in MlflowClient().list_artifacts(run.info.run_id)]
    said["read back"] = mlflow.artifacts.load_text(f"runs:/{run.info.run_id}/notes/hello.txt")
    with mlflow.start_run(nested=True, run_name="fold-1") as child:
        said["child"] = child.info.run_id
        mlflow.log_metric("acc", 0.5, step=1)
        mlflow.log_param("fold", 1)
        mlflow.log_text("of the child", "child.txt")
    seen = mlflow.get_run(run.info.run_id)
    said["seen"] = {"loss": seen.data.metrics["loss"], "params": seen.data.params, "status": seen.info.status}
    said["tags"] = {key: value for key, value in seen.data.tags.items() if key in ("team", "stage", "gone")}
said["active"] = mlflow.active_run() is None

# Over, as far as MLflow knows; the script goes on.
client = MlflowClient()
client.log_metric(said["run"], "after", 1.0, step=0)
second = client.create_run(experiment.experiment_id, run_name="another")
said["second"] = second.info.run_id
client.log_batch(second.info.run_id, metrics=[mlflow.entities.Metric("m", 7.0, int(time.time() * 1000), 0)])
client.set_terminated(second.info.run_id, "FAILED")
Path(sys.argv[1]).write_text(json.dumps(said))
