"""The last work for a dead supervisor: end what is left, keep what is complete, report. It starts nothing."""

from typing import Any

import msgspec

from trackbed.clusters import NodeFolder
from trackbed.clusters.node_folder import RankState
from trackbed.clusters.processes import boot_id, kill_all, marked
from trackbed.domain.states import Cause
from trackbed.supervisor.attempt import Attempt, now_us
from trackbed.supervisor.ending import last_checkpoint, new_saver, report_end
from trackbed.supervisor.evidence import Judged
from trackbed.supervisor.saving import Ended


def salvage(attempt: Attempt) -> None:
    """Leave the exit report in the journal; a cause that was decided before stays decided."""
    facts = attempt.facts.value
    left = kill_all(lambda: marked(attempt.folder.control), timeout_s=10.0)
    if attempt.sender.journal.has_exit():
        return
    judged = _judged(attempt)
    if left:
        judged.evidence["unkillable"] = left
    ranks = [msgspec.structs.replace(rank, state="exited") for rank in facts.ranks]
    attempt.facts.change(ranks=ranks, ended_us=facts.ended_us or _last_sign_us(attempt.folder), phase="saving")
    report_end(attempt, last_checkpoint(attempt, new_saver(attempt), judged, Ended.TORN))


def _judged(attempt: Attempt) -> Judged:
    facts = attempt.facts.value
    if facts.end:
        return Judged(Cause(facts.end["cause"]), dict(facts.end["evidence"]))
    same_boot = facts.boot_id in ("", boot_id())
    evidence = {"supervisor": "gone", "same_boot": same_boot, "ranks": [_remembered(rank) for rank in facts.ranks]}
    return Judged(Cause.LOST if same_boot else Cause.NODE, evidence)


def _remembered(rank: RankState) -> dict[str, Any]:
    return {"rank": rank.rank, "state": rank.state, "exit_code": rank.exit_code, "signal": rank.signal}


def _last_sign_us(folder: NodeFolder) -> int:
    """When the youngest file that the attempt wrote was written."""
    paths = [*folder.spool.glob("*.tbs"), folder.root / "state.json"]
    return max((path.stat().st_mtime_ns // 1000 for path in paths if path.exists()), default=now_us())
