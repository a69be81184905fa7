"""prepare: from a draft to the queue. Holds no cards.

What an environment needs to be built is built here, once per digest; `current` needs nothing, it is there already.
"""

from trackbed.db import Tx
from trackbed.domain.states import RunState
from trackbed.tracking import runs


def prepare(tx: Tx, row: runs.RunRow) -> runs.RunRow:
    """Move a draft through `preparing` into the queue."""
    row = runs.move(tx, row, RunState.PREPARING, "run.preparing", data={"environment": row.environment_digest})
    return runs.to_queue(tx, row, "run.queued")
