"""What the planner is shown: rows and inventory as its own values. Reads only."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Row, select

from trackbed.clusters.engine import NodeFacts
from trackbed.db import ReadTx
from trackbed.domain.states import Priority, RunState
from trackbed.scheduling import holds
from trackbed.scheduling.rules import Card, Node, Running, Waiting
from trackbed.server.flows.start import resources_of, stage_name
from trackbed.tracking import runs, runs_attempts
from trackbed.tracking.runs_tables import run
from trackbed.wire.attempts import NodeSlot
from trackbed.wire.spec import Resources
from trackbed.workflow import children, results

LOOK_AGAIN_S = 10.0  # a run that waits for another to leave what it needs is looked at in every tick anyway
STUCK_S = 60.0  # an attempt that is still there so long after its grace is not counted on any more


@dataclass(frozen=True)
class Facts:
    waiting: list[Waiting]
    nodes: list[Node]
    running: list[Running]
    keys: dict[str, str]  # run that waits → key of the stage that it is to run, where its result would be kept
    elsewhere: dict[str, tuple[str, str]]  # run that waits → stage, and the run that works on the very same just now
    kept: set[str]  # runs that are held for a reason of their own, which stands


def node_of(facts: NodeFacts, blocked: Iterable[int] = ()) -> Node:
    """A machine as the planner sees it. Cards that are not healthy are there, but nobody may take them."""
    ill = {card.index for card in facts.cards if not card.healthy}
    return Node(
        facts.name,
        tuple(Card(card.index, card.kind, card.memory_bytes) for card in facts.cards),
        frozenset(facts.labels),
        usable=facts.state == "ready",
        blocked=frozenset(ill | set(blocked)),
    )


def slots_of(inventory: Iterable[NodeFacts]) -> dict[str, NodeSlot]:
    """Where each node is and what its cards are, for assignments."""
    return {
        node.name: NodeSlot(node=node.name, address=node.address, card_kind=node.cards[0].kind if node.cards else "cpu")
        for node in inventory
    }


def waiting_rows(tx: ReadTx) -> list[runs.RunRow]:
    waiting = run.c.state.in_([RunState.QUEUED.value, RunState.HELD.value])
    return tx.rows(select(run).where(waiting).order_by(run.c.priority_rank, run.c.queued_us, run.c.id))


def observe(tx: ReadTx, inventory: Iterable[NodeFacts]) -> Facts:
    """Look at everything in one snapshot."""
    live = {attempt.id: attempt for attempt in runs_attempts.live(tx)}
    held: dict[str, set[tuple[str, int]]] = {}
    blocked: dict[str, set[int]] = {}
    for hold in holds.all_holds(tx):
        if hold.unknown or hold.attempt_id not in live:
            blocked.setdefault(hold.node, set()).add(hold.card)
        else:
            held.setdefault(hold.attempt_id, set()).add((hold.node, hold.card))
    owners = {row.id: row for row in _rows_of(tx, {live[attempt].run_id for attempt in held})}
    running = [
        running_of(live[attempt], owners[live[attempt].run_id], frozenset(slots), tx.now_us)
        for attempt, slots in held.items()
    ]
    nodes = [node_of(facts, blocked.get(facts.name, ())) for facts in inventory]
    rows = waiting_rows(tx)
    keys, elsewhere = _same_stages(tx, rows, {attempt.run_id for attempt in live.values() if not attempt.lost_us})
    waiting = [waiting_of(row) for row in rows]
    later = tx.now_us + int(LOOK_AGAIN_S * 1e6)
    waiting = [replace(one, not_before_us=later) if one.run_id in elsewhere else one for one in waiting]
    kept = {row.id for row in rows if row.state == RunState.HELD.value and '"trial_' in row.reason}
    return Facts(waiting, nodes, running, keys, elsewhere, kept)


def _same_stages(
    tx: ReadTx, waiting: list[runs.RunRow], live: set[str]
) -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
    """Which stages wait under which key, and which of them a live attempt works on: what it leaves will be taken."""
    waiting = [row for row in waiting if '"stages":' in row.spec]  # all others are spared the look
    away = children.awaited(tx, {row.id: row.stage_index for row in waiting})
    beside = {row.id: row for row in _rows_of(tx, set(away.values()))}
    waits = {row.id: (stage_name(row), runs.ref_of(beside[away[row.id]])) for row in waiting if row.id in away}
    waiting = [row for row in waiting if row.id not in away]
    due = results.due(tx, {row.id: row.stage_index for row in waiting})
    if not due:
        return {}, waits
    working = _rows_of(tx, live)
    busy = results.due(tx, {row.id: row.stage_index for row in working})
    refs = {row.id: runs.ref_of(row) for row in working}
    by_key = {(row.space_id, busy[row.id]): refs[row.id] for row in working if row.id in busy}
    found = {
        row.id: (stage_name(row), by_key[row.space_id, due[row.id]])
        for row in waiting
        if row.id in due and (row.space_id, due[row.id]) in by_key and row.id not in live
    }
    return {row.id: f"{row.space_id} {due[row.id]}" for row in waiting if row.id in due}, found | waits


def _rows_of(tx: ReadTx, ids: set[str]) -> list[runs.RunRow]:
    return tx.rows(select(run).where(run.c.id.in_(sorted(ids)))) if ids else []


_asked: OrderedDict[tuple[str, int], tuple[Resources, float]] = OrderedDict()
_MOST_ASKED = 20_000


def asked_of(row: runs.RunRow) -> tuple[Resources, float]:
    """What the next attempt of a run takes and its grace; specs never change, so each is read once."""
    key = (row.id, row.stage_index)
    found = _asked.get(key)
    if found is None:
        found = _asked[key] = (resources_of(row), runs.spec_of(row).on_preempt.grace_s)
        while len(_asked) > _MOST_ASKED:
            _asked.popitem(last=False)
    return found


def waiting_of(row: runs.RunRow) -> Waiting:
    wanted, grace_s = asked_of(row)
    return Waiting(
        row.id, runs.ref_of(row), Priority(row.priority), row.queued_us, wanted.cards_per_node, wanted.nodes,
        wanted.kind, wanted.card_memory_bytes, tuple(wanted.only), tuple(wanted.not_), wanted.time_limit_s,
        grace_s, row.not_before_us, held=row.state == RunState.HELD.value,
    )  # fmt: skip


def running_of(attempt: Row[Any], row: runs.RunRow, slots: frozenset[tuple[str, int]], now_us: int) -> Running:
    wanted, grace_s = asked_of(row)
    limit_s = wanted.time_limit_s
    began_us = attempt.started_us or attempt.created_us
    leaving = bool(attempt.order_kind) and not attempt.order_withdrawn
    stuck = leaving and now_us > attempt.order_us + int((2 * attempt.order_grace_s + STUCK_S) * 1e6)
    return Running(
        attempt.id, row.id, Priority(row.priority), slots, attempt.created_us,
        None if limit_s is None else began_us + int((limit_s + grace_s) * 1e6),
        leaving=leaving, leaving_for=attempt.order_for, fixed=stuck,
    )  # fmt: skip
