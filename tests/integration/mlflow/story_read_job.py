"""Read what jobs logged, from outside, with a person's token. argv: where to say, run ids."""

import json
import sys
from pathlib import Path

import mlflow
from mlflow.tracking import MlflowClient

client = MlflowClient()
said = {}
for run_id in sys.argv[2:]:
    run = client.get_run(run_id)
    said[run_id] = {
        "name": run.info.run_name, "status": run.info.status, "experiment": run.info.experiment_id,
        "metrics": {key: str(value) for key, value in run.data.metrics.items()},
        "params": run.data.params, "tags": dict(run.data.tags),
        "history": {
            key: [[point.step, str(point.value)] for point in client.get_metric_history(run_id, key)]
            for key in run.data.metrics if not key.startswith("system/")
        },
        "files": sorted(one.path for one in client.list_artifacts(run_id)),
    }  # fmt: skip
    said[run_id]["text"] = {
        path: mlflow.artifacts.load_text(f"runs:/{run_id}/{path}")
        for path in ("notes/hello.txt", "child.txt", "empty.txt")
        if path.split("/")[0] in said[run_id]["files"]
    }
Path(sys.argv[1]).write_text(json.dumps(said))
