"""What every signed-in person may know of the pool: all rows, without the names of what lies behind a wall."""

from typing import Any

from sqlalchemy import select

from trackbed.clusters.engine import NodeFacts
from trackbed.db import ReadTx
from trackbed.domain.scope import Permission, Scope
from trackbed.scheduling import holds
from trackbed.server.flows.facts import waiting_rows
from trackbed.tracking import runs
from trackbed.tracking.runs_tables import run
from trackbed.tracking.runs_views import run_view
from trackbed.wire.runs import NodeView, QueueEntry, Reason, RunView

MASK = "•••"


def nodes(tx: ReadTx, scope: Scope, inventory: list[NodeFacts]) -> list[NodeView]:
    """Every node of the inventory, its cards with their state and holder."""
    held = {(hold.node, hold.card): hold for hold in holds.all_holds(tx)}
    owners = {row.id: row for row in _owners(tx, {hold.run_id for hold in held.values()})}
    return [
        NodeView(
            name=node.name, state=node.state, contact_us=tx.now_us,
            cards=[_card(scope, card, held.get((node.name, card.index)), owners) for card in node.cards],
        )
        for node in inventory
    ]  # fmt: skip


def _owners(tx: ReadTx, ids: set[str]) -> list[runs.RunRow]:
    return tx.rows(select(run).where(run.c.id.in_(sorted(ids)))) if ids else []


def _card(scope: Scope, card: Any, hold: Any, owners: dict[str, runs.RunRow]) -> dict[str, Any]:
    view: dict[str, Any] = {
        "index": card.index, "kind": card.kind, "memory_bytes": card.memory_bytes,
        "state": "free" if card.healthy else "unknown", "run": "", "space": "",
    }  # fmt: skip
    if hold is None:
        return view
    row = owners.get(hold.run_id)
    seen = row is not None and scope.may(Permission.READ, hold.space_id)
    view["state"] = "unknown" if hold.unknown else "held"
    view["run"], view["space"] = (runs.ref_of(row), row.space) if seen and row is not None else (MASK, MASK)
    return view


def queue(tx: ReadTx, scope: Scope) -> list[QueueEntry]:
    """Waiting runs by priority and place."""
    return [
        QueueEntry(
            place=place, run=masked(scope, row),
            reason=_reason(scope, row, runs.reason_of(row.reason) or Reason(code="planning")),
        )
        for place, row in enumerate(waiting_rows(tx), 1)
    ]  # fmt: skip


def masked(scope: Scope, row: runs.RunRow) -> RunView:
    """The run as it is, or only what the pool needs to be understood."""
    if scope.may(Permission.READ, row.space_id):
        return run_view(row)
    return RunView(
        id="", ref=MASK, number=0, project=MASK, space=MASK, owner=MASK, state=row.state, priority=row.priority,
        cards=row.cards, queued_us=row.queued_us, created_us=row.created_us,
    )  # fmt: skip


def _reason(scope: Scope, row: runs.RunRow, reason: Reason) -> Reason:
    """A reason names the run in front, which may lie behind a wall."""
    if "head" not in reason.params or scope.spaces() is None:
        return reason
    return Reason(code=reason.code, params={**reason.params, "head": MASK})
