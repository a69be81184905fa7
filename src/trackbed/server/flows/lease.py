"""lease: a supervisor says that it lives and asks whether it still owns its run and what is asked of it."""

from trackbed.db import ReadTx, Tx
from trackbed.domain.states import ATTEMPT_ENDED
from trackbed.scheduling import holds
from trackbed.server.app import App
from trackbed.sources import names_sql
from trackbed.tracking import runs, runs_attempts
from trackbed.wire.attempts import LeaseReply, LeaseRequest

LONGEST_WAIT_S = 30.0


def renew(app: App, tx: Tx, attempt_id: str, request: LeaseRequest) -> tuple[LeaseReply, bool]:
    """Renew; return the answer and whether it may be held until there is news.

    An attempt that was declared gone and is not replaced gets its cards back. A withdrawn order is said at once, and
    again in every later answer, for as long as the supervisor names it: an answer may get lost.
    """
    before = runs_attempts.get(tx, attempt_id)
    if not runs_attempts.renew(tx, attempt_id, request):
        return LeaseReply(verdict="superseded", lease_s=0.0), False
    if request.environment is not None:
        names_sql.note_found(tx, before, request.environment)
    if before.lost_us:
        holds.set_unknown(tx, attempt_id, unknown=False)
        tx.after_commit(lambda: app.wake.set("schedule"))
    row = runs_attempts.get(tx, attempt_id)
    order = runs_attempts.order_for(row, request.order_seen)
    told = order is not None and order.withdrawn and not runs_attempts.first_told(tx, row)
    return LeaseReply(lease_s=app.settings.lease.lease_s, order=order), order is None or told


def look(app: App, tx: ReadTx, attempt_id: str, request: LeaseRequest) -> LeaseReply:
    """What `renew` would answer now, without renewing: for the end of a held reply."""
    row = runs_attempts.get(tx, attempt_id)
    its_run = runs.get(tx, row.run_id)
    if its_run.epoch != row.epoch or row.epoch != request.epoch or row.state in {s.value for s in ATTEMPT_ENDED}:
        return LeaseReply(verdict="superseded", lease_s=0.0)
    return LeaseReply(lease_s=app.settings.lease.lease_s, order=runs_attempts.order_for(row, request.order_seen))


def wait_s(app: App, request: LeaseRequest) -> float:
    """How long a reply may be held: never so long that the lease itself could run out meanwhile."""
    times = app.settings.lease
    return max(0.0, min(request.wait_s, LONGEST_WAIT_S, times.suspect_s / 2))


def wake_name(attempt_id: str) -> str:
    return f"order:{attempt_id}"
