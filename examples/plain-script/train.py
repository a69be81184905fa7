"""A trainer that never heard of Trackbed: fits a line by gradient descent, saves, resumes, leaves a report."""

import json
import os
import re
import time
from pathlib import Path

params = json.loads(Path(os.environ["TRACKBED_PARAMS"]).read_text())
checkpoints = Path(os.environ["TRACKBED_CHECKPOINTS"])
output = Path(os.environ["TRACKBED_OUTPUT"])

points = [(x / 10, 3.0 * x / 10 - 1.0) for x in range(-20, 21)]
if "TRACKBED_DATA_POINTS" in os.environ:
    data = Path(os.environ["TRACKBED_DATA_POINTS"])
    lines = (data if data.is_file() else data / "points.csv").read_text().splitlines()
    points = [tuple(map(float, line.split(","))) for line in lines]

state = {"step": 0, "a": 0.0, "b": 0.0}
latest = checkpoints / "latest"
if latest.exists():
    state = json.loads((latest / "state.json").read_text())
    print(f"resumed at step {state['step']}")

while state["step"] < params["steps"]:
    errors = [(state["a"] * x + state["b"] - y, x) for x, y in points]
    state["a"] -= params["lr"] * sum(e * x for e, x in errors) / len(points)
    state["b"] -= params["lr"] * sum(e for e, _ in errors) / len(points)
    state["step"] += 1
    if state["step"] % params.get("save_every", 10) == 0:
        part = checkpoints / f".step-{state['step']}"
        part.mkdir(exist_ok=True)
        (part / "state.json").write_text(json.dumps(state))
        part.rename(checkpoints / f"step-{state['step']}")
    print(f"step {state['step']} loss {sum(e * e for e, _ in errors) / len(points):.6f}", flush=True)
    time.sleep(params.get("sleep_s", 0.02))

assert re.fullmatch(r"run_\w+", os.environ["TRACKBED_RUN"])
(output / "report.json").write_text(json.dumps(state, indent=1))
