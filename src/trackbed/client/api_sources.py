"""The parts of a `Client` that speak of sources: code, reviews, conflicts, triggers."""

from pathlib import Path

from trackbed.base.errors import Conflict
from trackbed.client.connection import Connection, part
from trackbed.client.push import Progress, pull
from trackbed.wire.code import CodeDiff
from trackbed.wire.runs import RunDetail, TreeFacts


class Code:
    """The code of runs."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def checkout(self, run: str, target: Path | str, *, on_progress: Progress | None = None) -> TreeFacts:
        """Write the tree of a run into an empty folder, verified: what its job found.

        Raises:
            Conflict: `run_without_tree`; `storage_target_taken`: something is in the folder already.
        """
        detail = self._connection.get(f"/api/v1/runs/{part(run)}", RunDetail)
        if detail.tree is None or not detail.tree.digest:
            raise Conflict("run_without_tree", ref=detail.run.ref)
        pull(self._connection, detail.tree.digest, Path(target), on_progress=on_progress)
        return detail.tree

    def diff(self, before: str, after: str, *, path: str = "") -> CodeDiff:
        """Return what the code of a run changed since an earlier one, and who brought each line."""
        return self._connection.get(f"/api/v1/runs/{part(after)}/code-diff", CodeDiff, {"before": before, "path": path})
