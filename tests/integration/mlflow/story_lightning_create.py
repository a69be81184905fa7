"""As Lightning's logger does it: an experiment and a run of its own by the client, without `start_run`."""

import json
import os
import sys
from pathlib import Path

from mlflow.tracking import MlflowClient

client = MlflowClient()
found = client.get_experiment_by_name("lightning_logs")
first = client.create_run(found.experiment_id, tags={"mlflow.runName": "lit"})
second = client.create_run(found.experiment_id)
client.log_metric(first.info.run_id, "x", 1.0, step=0)
client.set_terminated(first.info.run_id)
said = {"own": os.environ["TRACKBED_RUN"], "first": first.info.run_id, "second": second.info.run_id}
Path(sys.argv[1]).write_text(json.dumps(said))
