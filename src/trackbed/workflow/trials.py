"""Which trial was made for which run: kept, found, settled."""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Row, select, update

from trackbed.db import ReadTx, Tx
from trackbed.wire.reason import Reason
from trackbed.wire.trial import DataSlice, TrialReport
from trackbed.workflow.sql import trial


def record(
    tx: Tx, space_id: str, trial_id: str, run_ids: Sequence[str], slices: Sequence[DataSlice], *, then_queue: bool
) -> None:
    """Note that these runs wait for a trial."""
    rows = [
        {"run_id": run_id, "trial_id": trial_id, "space_id": space_id, "then_queue": int(then_queue),
         "slices": _json(list(slices)), "created_us": tx.now_us}
        for run_id in run_ids
    ]  # fmt: skip
    tx.execute(trial.insert(), rows)


def of_run(tx: ReadTx, run_id: str) -> list[Row[Any]]:
    """Return the rows of the trial that was made for a run, or that the run is; the first run that it was made for first."""
    mine = select(trial.c.trial_id).where((trial.c.run_id == run_id) | (trial.c.trial_id == run_id))
    return tx.rows(select(trial).where(trial.c.trial_id.in_(mine)).order_by(trial.c.created_us, trial.c.run_id))


def unsettled(tx: ReadTx) -> list[Row[Any]]:
    """Return the rows of trials that nobody has looked at since they ended, and of those that have not."""
    return tx.rows(select(trial).where(trial.c.settled == 0).order_by(trial.c.created_us, trial.c.run_id))


def settle(tx: Tx, trial_id: str, report: TrialReport, *, reason: Reason | None) -> bool:
    """Note what came out; False where somebody did already."""
    values = {
        "settled": 1, "good": int(reason is None), "report": _json(report), "reason": _json(reason) if reason else "",
    }  # fmt: skip
    mine = update(trial).where(trial.c.trial_id == trial_id, trial.c.settled == 0)
    return tx.execute(mine.values(**values)).rowcount > 0


def slices_of(row: Row[Any]) -> list[DataSlice]:
    return msgspec.json.decode(row.slices, type=list[DataSlice])


def report_of(row: Row[Any]) -> TrialReport | None:
    return msgspec.json.decode(row.report, type=TrialReport) if row.report else None


def reason_of(row: Row[Any]) -> Reason | None:
    return msgspec.json.decode(row.reason, type=Reason) if row.reason else None


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
