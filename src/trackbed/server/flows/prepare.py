"""prepare: from a draft to the queue. Holds no cards.

What an environment needs to be built is built here, once per digest; `current` needs nothing, it is there already.
"""

from trackbed.db import Tx
from trackbed.domain.states import RunState
from trackbed.server.app import App
from trackbed.server.flows import stages
from trackbed.tracking import runs
from trackbed.wire.reason import Reason


def prepare(app: App, tx: Tx, row: runs.RunRow, *, held: Reason | None = None) -> runs.RunRow:
    """Move a draft through `preparing` into the queue, or out of it where earlier runs left all that it would leave.

    With `held` it stays out of the queue for that reason, and nothing of it is looked at before it is released.
    """
    row = runs.move(tx, row, RunState.PREPARING, "run.preparing", data={"environment": row.environment_digest})
    row = runs.to_queue(tx, row, "run.queued")
    if held is not None:
        return runs.move(tx, row, RunState.HELD, "run.held", reason=runs.to_json(held))
    return stages.go_on(app, tx, row)
