"""Stage `train`: fit a line by gradient descent; leave it as line.json."""

import json
import os
import pathlib

params = json.loads(pathlib.Path(os.environ["TRACKBED_PARAMS"]).read_text())
text = (pathlib.Path(os.environ["TRACKBED_DATA_POINTS"]) / "points.csv").read_text()
points = [tuple(map(float, line.split(","))) for line in text.splitlines()]
a = b = 0.0
for _ in range(params["steps"]):
    errors = [(a * x + b - y, x) for x, y in points]
    a -= params["lr"] * sum(error * x for error, x in errors) / len(points)
    b -= params["lr"] * sum(error for error, _ in errors) / len(points)
pathlib.Path("line.json").write_text(json.dumps({"a": a, "b": b}))
print(f"y = {a:.3f} x + {b:.3f}")
