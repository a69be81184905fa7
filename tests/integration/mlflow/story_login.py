"""Logs one value; how the client signs in stands in its environment."""

import sys
from pathlib import Path

import mlflow

with mlflow.start_run() as run:
    mlflow.log_metric("a", 1.0)
assert mlflow.MlflowClient().get_run(run.info.run_id).data.metrics == {"a": 1.0}
Path(sys.argv[1]).write_text("{}")
