"""Open pages hear that a run has more to show; what they missed they read by cursor."""

from typing import Any

from trackbed.server.app import App
from trackbed.tracking import runs
from trackbed.tracking.ingest import Ingested
from trackbed.tracking.metrics_state import word

LAST_VALUES = 100  # metrics whose last value goes out with the news; a page reads the others


def tell(app: App, row: runs.RunRow, done: Ingested) -> None:
    """Tell open pages what a batch brought."""
    receipt = done.receipt
    if not receipt.frames:
        return
    data: dict[str, Any] = {"run_id": row.id, "kind": "data", "points": receipt.points, "lines": receipt.lines}
    if done.step is not None:
        data["step"] = done.step
    data["last"] = {key: word(value) for key, value in list(done.last.items())[:LAST_VALUES]}
    app.publisher.publish(f"run:{row.id}", data, space_id=row.space_id)
    app.publisher.publish("runs", data, space_id=row.space_id)
