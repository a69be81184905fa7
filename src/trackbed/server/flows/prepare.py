"""prepare: from a draft to the queue. Holds no cards.

What an environment needs to be built is built here, once per digest; `current` needs nothing, it is there already.
"""

from typing import Any

from trackbed.db import Tx
from trackbed.domain.states import RunState
from trackbed.server.app import App
from trackbed.server.flows import environments, stages
from trackbed.tracking import runs
from trackbed.wire.reason import Reason


def prepare(app: App, tx: Tx, row: runs.RunRow, *, held: Reason | None = None) -> runs.RunRow:
    """Move a draft through `preparing` into the queue, or out of it where earlier runs left all that it would leave.

    With `held` it stays out of the queue for that reason, and nothing of it is looked at before it is released.
    """
    row = runs.move(tx, row, RunState.PREPARING, "run.preparing", data={"environment": row.environment_digest})
    if held is not None:
        row = runs.to_queue(tx, row, "run.queued")
        return runs.move(tx, row, RunState.HELD, "run.held", reason=runs.to_json(held))
    platform = environments.missing_pack(tx, row)
    if platform:
        return environments.wait_for_pack(app, tx, row, platform)
    return prepared(app, tx, row)


def prepared(app: App, tx: Tx, row: runs.RunRow) -> runs.RunRow:
    """All that the run needs is there: into the queue."""
    row = runs.to_queue(tx, row, "run.queued")
    return stages.go_on(app, tx, row)


def again(app: App, tx: Tx, row: runs.RunRow, kind: str, *, data: dict[str, Any]) -> runs.RunRow:
    """A run that ended goes into the queue once more, by way of `preparing` where its pack is not there (any more)."""
    platform = environments.missing_pack(tx, row)
    if platform:
        return environments.wait_for_pack(app, tx, row, platform, used="{}", not_before_us=0)
    return runs.to_queue(tx, row, kind, data=data, used="{}", not_before_us=0)


def released(app: App, tx: Tx, row: runs.RunRow, *, data: dict[str, Any]) -> runs.RunRow:
    """A held run goes on waiting: in the queue, at the place it had, or for its pack."""
    platform = environments.missing_pack(tx, row)
    if platform:
        return environments.wait_for_pack(app, tx, row, platform)
    return stages.go_on(app, tx, runs.to_queue(tx, row, "run.released", keep_place=True, data=data))
