"""stages: which stage of a run is next, and whether an earlier run left what it would leave.

    due(run) ─► next stage by its needs ─► key of everything it depends on ─► found, and its products are there: taken (hit)
                                                                           └► not: it is run (miss, with what differs)

A stage is taken from its space only, and only where everything it depends on is pinned. Never where it registers a model
(the metrics that decide belong to the run), leaves no product, or where the spec or a reproduction says so.
"""

from importlib.metadata import version
from typing import Any

from trackbed.base.ids import Digest
from trackbed.db import ReadTx, Tx
from trackbed.domain.events import Event
from trackbed.domain.states import ATTEMPT_ENDED, AttemptState, RunState
from trackbed.server.app import App
from trackbed.tracking import runs, runs_attempts
from trackbed.wire.runs import Reason, StageView
from trackbed.wire.spec import Spec, Stage
from trackbed.workflow import results
from trackbed.workflow.cache import key_of, parts_of, why_missed
from trackbed.workflow.graph import next_stage, order
from trackbed.workflow.results import Choice


def due(app: App, tx: Tx, row: runs.RunRow) -> int | None:
    """Return the stage that the run works on next, after taking all that can be taken; None where nothing is left.

    Of a run without stages the answer is 0.
    """
    spec = runs.spec_of(row)
    if not spec.stages:
        return 0
    made = products_of(tx, row)
    while (at := next_stage(spec.stages, made)) is not None:
        found = _choose(app, tx, row, spec, at, made)
        results.choose(tx, row.space_id, row.id, found)
        if found.state != "hit":
            differs = found.reason.code == "cache_differs"
            _say(tx, row, "stage.differs" if differs else "stage.due", spec.stages[at], found)
            return at
        kept = results.find(tx, row.space_id, found.key)
        products: dict[str, str] = runs.from_json(kept.products, {}) if kept else {}
        runs_attempts.stage_taken(tx, row, at, products)
        made[spec.stages[at].name] = products
        _say(tx, row, "stage.taken", spec.stages[at], found)
    return None


def products_of(tx: ReadTx, row: runs.RunRow) -> dict[str, dict[str, str]]:
    """Return what the stages that are done left: stage → product → tree digest."""
    return {
        one.name: runs.from_json(one.products, {}) for one in runs_attempts.stages(tx, row.id) if one.state == "done"
    }


def inputs_of(stage: Stage, made: dict[str, dict[str, str]]) -> dict[str, str]:
    """Stage inputs by digest: `corpus: prep.shards` is what stage `prep` left as `shards`."""
    pairs = {name: ref.partition(".") for name, ref in stage.inputs.items()}
    return {name: made.get(of, {}).get(product, "") for name, (of, _, product) in pairs.items()}


def _choose(app: App, tx: ReadTx, row: runs.RunRow, spec: Spec, at: int, made: dict[str, dict[str, str]]) -> Choice:
    stage = spec.stages[at]
    parts = parts_of(
        spec, stage, tree=row.tree_digest, environment=row.environment_digest, inputs=inputs_of(stage, made),
        program=version("trackbed"),
    )  # fmt: skip
    key = key_of(parts)
    off = _why_never(row, spec, at)
    if off is not None:  # a trial is given a part of the data and leaves early: nobody may take what it leaves
        return Choice(at, "off", off, "" if spec.trial else key, parts)
    found = results.find(tx, row.space_id, key)
    if found is None:
        why = why_missed(parts, results.earlier(tx, row.space_id, stage.name))
        return Choice(at, "miss", why, key, parts)
    about = {"run": found.run_ref, "attempt": found.attempt}
    left: dict[str, str] = runs.from_json(found.products, {})
    if set(left) != set(stage.produces) or not all(app.store.has_tree(Digest(digest)) for digest in left.values()):
        return Choice(at, "miss", Reason(code="cache_gone", params=about), key, parts)
    return Choice(at, "hit", Reason(code="cache_hit", params=about), key, parts, found.run_id, found.outputs)


def _why_never(row: runs.RunRow, spec: Spec, at: int) -> Reason | None:
    """Why the result of a stage is never taken from an earlier run, nor kept for a later one to be taken."""
    stage = spec.stages[at]
    if spec.trial is not None:
        return Reason(code="cache_trial")
    if row.reproduces:
        return Reason(code="cache_reproduces")
    if not spec.cache:
        return Reason(code="cache_off")
    if not stage.produces:
        return Reason(code="cache_no_products", params={"stage": stage.name})
    if not row.environment_digest:
        return Reason(code="cache_unpinned")
    if spec.register is not None and at == order(spec.stages)[-1]:
        return Reason(code="cache_registers", params={"stage": stage.name, "model": spec.register.model})
    return None


def done(app: App, tx: Tx, row: runs.RunRow, attempt: runs_attempts.AttemptRow, products: dict[str, str]) -> None:
    """Note what the stage of the run left, for it and for later runs; runs that wait to do the same need not any more."""
    spec = runs.spec_of(row)
    stage = spec.stages[row.stage_index]
    kept = {name: digest for name, digest in products.items() if name in stage.produces}
    runs_attempts.stage_done(tx, row, kept)
    made = results.choices(tx, row.id).get(row.stage_index)
    if made is None or not made.key or not stage.produces or not row.environment_digest:
        return
    results.record(
        tx, row.space_id, made, stage.name, run_id=row.id, ref=runs.ref_of(row), attempt=attempt.number, products=kept,
        outputs=attempt.outputs_digest,
    )  # fmt: skip
    for run_id, position in results.waiting_for(tx, row.space_id, made.key):
        other = runs.get(tx, run_id)
        if run_id != row.id and other.stage_index == position and _only_waits(tx, other):
            go_on(app, tx, other)


def _only_waits(tx: ReadTx, row: runs.RunRow) -> bool:
    """Whether the run is in the queue and none of its attempts may be heard of again."""
    if row.state != RunState.QUEUED.value:
        return False
    return not row.attempt_id or AttemptState(runs_attempts.get(tx, row.attempt_id).state) in ATTEMPT_ENDED


def go_on(app: App, tx: Tx, row: runs.RunRow) -> runs.RunRow:
    """Let a run that waits in the queue look again at what is next; it is finished if nothing is."""
    at = due(app, tx, row)
    if at is None:
        data = {"cause": "done", "attempt": row.attempt}
        return runs.move(tx, row, RunState.FINISHED, "run.finished", data=data, cause="done", reason="")
    if at != row.stage_index:
        runs.set_columns(tx, row, stage_index=at, used="{}", not_before_us=0)
    return runs.get(tx, row.id)


def is_last(row: runs.RunRow) -> bool:
    """Whether the run finishes with the stage that it works on (also one without stages)."""
    spec = runs.spec_of(row)
    return not spec.stages or row.stage_index == order(spec.stages)[-1]


def views(tx: ReadTx, row: runs.RunRow, shown: list[StageView]) -> list[StageView]:
    """Add to the stages of a run what was chosen for each, and why."""
    spec, made = runs.spec_of(row), results.choices(tx, row.id)
    for at, view in enumerate(shown):
        view.needs = spec.stages[at].needs
        found = made.get(at)
        if found is not None:
            view.reason, view.key, view.from_run = found.reason, found.key, found.from_run
            view.cache = found.state  # type: ignore[assignment]
    return shown


def _say(tx: Tx, row: runs.RunRow, kind: str, stage: Stage, found: Choice) -> None:
    data: dict[str, Any] = {
        **found.reason.params, "stage": stage.name, "why": found.reason.code, "key": found.key,
    }  # fmt: skip
    tx.emit(Event(kind, row.id, row.space_id, row.id, "", data))
