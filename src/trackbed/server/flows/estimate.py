"""estimate: when a run would start and what it would cost, were it submitted now. Asks the planner itself; changes nothing."""

from collections.abc import Iterable
from dataclasses import replace
from statistics import median

from sqlalchemy import select

from trackbed.clusters.engine import NodeFacts
from trackbed.db import ReadTx, scope_clause
from trackbed.domain.scope import Scope
from trackbed.domain.states import Priority, RunState
from trackbed.scheduling.rules import Running, Waiting, plan
from trackbed.server.app import App
from trackbed.server.flows import facts
from trackbed.tracking.runs_tables import run
from trackbed.wire.reason import Reason
from trackbed.wire.runs import Estimate
from trackbed.wire.spec import Resources, Spec
from trackbed.workflow.graph import order, resources_for

_MINE = "run_asked"
_ENDS_TRIED = 50
_LIKE = 20  # newest runs that a cost is told from


def estimate(app: App, tx: ReadTx, scope: Scope, spec: Spec, inventory: Iterable[NodeFacts], *, count: int = 1) -> Estimate:  # fmt: skip
    """Return what is to be expected of `count` runs of a checked spec. The start is that of the first of them."""
    found = _start(tx, spec, list(inventory))
    _cost(app, tx, scope, spec, found, count)
    return found


def _start(tx: ReadTx, spec: Spec, inventory: list[NodeFacts]) -> Estimate:
    seen = facts.observe(tx, inventory)
    first = spec.stages[order(spec.stages)[0]] if spec.stages else None
    mine = _waiting(spec, resources_for(spec, first), tx.now_us)
    waiting = [*seen.waiting, mine]
    decided = plan(tx.now_us, waiting, seen.nodes, seen.running)
    if any(begin.run_id == _MINE for begin in decided.starts):
        return Estimate(starts_now=True)
    why = decided.reasons.get(_MINE)
    found = Estimate(reason=Reason(code=why.code, params=dict(why.params)) if why else None)
    found.ahead = sum(one.order < mine.order and not one.held for one in seen.waiting)
    ends = sorted({one.ends_us for one in seen.running if one.ends_us is not None and one.ends_us > tx.now_us})
    for at_us in ends[:_ENDS_TRIED]:
        left = [one for one in seen.running if not _over(one, at_us)]
        later = plan(at_us, [replace(one, not_before_us=0) for one in waiting], seen.nodes, left)
        if any(begin.run_id == _MINE for begin in later.starts):
            found.not_before_s = (at_us - tx.now_us) / 1e6
            break
    return found


def _over(one: Running, at_us: int) -> bool:
    return one.ends_us is not None and one.ends_us <= at_us


def _waiting(spec: Spec, wanted: Resources, now_us: int) -> Waiting:
    return Waiting(
        _MINE, "", Priority(spec.priority), now_us, wanted.cards_per_node, wanted.nodes, wanted.kind,
        wanted.card_memory_bytes, tuple(wanted.only), tuple(wanted.not_), wanted.time_limit_s, spec.on_preempt.grace_s,
    )  # fmt: skip


def _cost(app: App, tx: ReadTx, scope: Scope, spec: Spec, found: Estimate, count: int) -> None:
    parts = [part.resources or spec.resources for part in spec.stages] or [spec.resources]
    limits = [part.cards * part.time_limit_s if part.time_limit_s is not None else None for part in parts]
    if None not in limits:
        found.card_hours_most = count * sum(limit or 0.0 for limit in limits) / 3600
    like = [run.c.state == RunState.FINISHED.value, run.c.project == spec.project, run.c.outside == 0, scope_clause(run, scope)]  # fmt: skip
    if spec.name:
        like.append(run.c.name == spec.name)
    elif spec.template:
        like.append(run.c.spec.contains(f'"template":"{spec.template}"', autoescape=True))
    rows = tx.rows(select(run).where(*like).order_by(run.c.created_us.desc()).limit(_LIKE)) if len(like) > 4 else []
    rows = [row for row in rows if row.card_seconds or row.started_us]
    if rows:
        found.like = len(rows)
        found.card_hours_like = count * median(row.card_seconds for row in rows) / 3600
        found.seconds_like = median((row.ended_us - row.started_us) / 1e6 for row in rows)
    price = app.settings.card_hour_price
    if price is not None:
        found.currency = app.settings.currency
        found.cost_most = None if found.card_hours_most is None else found.card_hours_most * price
        found.cost_like = None if found.card_hours_like is None else found.card_hours_like * price
