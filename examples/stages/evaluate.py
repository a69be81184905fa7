"""Stage `eval`: how far the line is from the points; the report is archived."""

import json
import os
import pathlib

found = pathlib.Path(os.environ["TRACKBED_DATA_LINE"])
line = json.loads((found / "line.json" if found.is_dir() else found).read_text())
text = (pathlib.Path(os.environ["TRACKBED_DATA_POINTS"]) / "points.csv").read_text()
points = [tuple(map(float, row.split(","))) for row in text.splitlines()]
error = sum((line["a"] * x + line["b"] - y) ** 2 for x, y in points) / len(points)
pathlib.Path("report.md").write_text(f"y = {line['a']:.3f} x + {line['b']:.3f}, mean squared error {error:.4f}\n")
print(f"mean squared error {error:.4f}")
