"""stages: which stage of a run is next, and whether an earlier run left what it would leave.

    due(run) ─► stages whose needs are done ─► key of everything it depends on ─► found, and its products are there: taken (hit)
                                                                           └► not: it is run (miss, with what differs)

Of several stages that are to be run at the same time, the run works on the first; each other one becomes a run of its own beside
it (`stage_child`), with its own attempts, cards and logs. What they leave is joined by the schedule loop.

A stage is taken from its space only, and only where everything it depends on is pinned. Never where it registers a model
(the metrics that decide belong to the run), leaves no product, or where the spec or a reproduction says so.
"""

from importlib.metadata import version
from typing import Any

import msgspec

from trackbed.access import next_run_number
from trackbed.base.entropy import new_id
from trackbed.base.ids import Digest
from trackbed.db import ReadTx, Tx
from trackbed.domain.events import Event
from trackbed.domain.scope import Actor
from trackbed.domain.states import ACTIVE, ATTEMPT_ENDED, TERMINAL, AttemptState, RunState
from trackbed.server.app import App
from trackbed.tracking import runs, runs_attempts, runs_views
from trackbed.wire.runs import Reason, StageView
from trackbed.wire.spec import Spec, Stage
from trackbed.workflow import children, results
from trackbed.workflow.cache import key_of, parts_of, why_missed
from trackbed.workflow.graph import order, ready_stages
from trackbed.workflow.results import Choice


def due(app: App, tx: Tx, row: runs.RunRow) -> int | None:
    """Return the stage that the run stands at next; None where nothing is left. Of a run without stages the answer is 0.

    All that can be taken from earlier runs is taken. Of several stages that are due the run works on the first, and the others
    are given to runs of their own. Where only those are left, it stands at one of them and waits.
    """
    spec = runs.spec_of(row)
    if not spec.stages:
        return 0
    mine = _due(app, tx, row, spec)
    given = children.of_run(tx, row.id)
    if any(one.state == "failed" for one in given.values()):
        mine = []  # what runs is let run; nothing new is begun
    others = any(one.state == "running" for one in given.values())
    kept, away = _shared_out(spec, mine, others=others)
    for at in away:
        _give(app, tx, row, spec, at)
    if kept:
        return kept[0]
    left = [at for at, one in given.items() if one.state == "running"] + [
        at for at, one in given.items() if one.state == "failed"
    ]
    return left[0] if left else None


def _due(app: App, tx: Tx, row: runs.RunRow, spec: Spec) -> list[int]:
    """Take what can be taken; return what is to be run, the first first, without what is worked on already."""
    made, given = _products(tx, row), children.of_run(tx, row.id)
    looked: dict[int, Choice] = {}
    while todo := [at for at in ready_stages(spec.stages, made) if at not in looked and at not in given]:
        at = todo[0]
        found = _choose(app, tx, row, spec, at, products_of(tx, row))
        results.choose(tx, row.space_id, row.id, found)
        if found.state != "hit":
            looked[at] = found
            differs = found.reason.code == "cache_differs"
            _say(tx, row, "stage.differs" if differs else "stage.due", spec.stages[at], found)
            continue
        kept = results.find(tx, row.space_id, found.key)
        products: dict[str, str] = runs.from_json(kept.products, {}) if kept else {}
        runs_attempts.stage_taken(tx, row, at, products)
        made[spec.stages[at].name] = products
        _say(tx, row, "stage.taken", spec.stages[at], found)
    return sorted(looked)


def _shared_out(spec: Spec, mine: list[int], *, others: bool) -> tuple[list[int], list[int]]:
    """What a run keeps of the stages that are due, and what it gives away.

    The stage by whose metrics a model is registered stays with the run that registers, and is its last: it waits for all
    `others`. A trial goes step by step.
    """
    if spec.trial is not None:
        return mine, []
    last = order(spec.stages)[-1] if spec.register is not None else -1
    if others or len(mine) > 1:
        mine = [at for at in mine if at != last]
    return mine[:1], mine[1:]


def _give(app: App, tx: Tx, row: runs.RunRow, spec: Spec, at: int) -> None:
    """Make a run that works on one stage, beside the run that it is of."""
    stage = spec.stages[at]
    own = msgspec.structs.replace(
        spec, name=f"{spec.name}-{stage.name}"[:128] if spec.name else "", stages=[msgspec.structs.replace(stage, needs=[])],
        tags=[*spec.tags, f"stages:{runs.ref_of(row)}"], register=None, matrix={},
    )  # fmt: skip
    made = runs.create(
        tx,
        runs.NewRun(
            id=new_id("run"), space_id=row.space_id, project_id=row.project_id,
            number=next_run_number(tx, row.project_id), owner_id=row.owner_id, owner=row.owner, spec=own,
            tree=runs_views.tree_of(row), environment=runs_views.environment_of(row),
        ),
    )  # fmt: skip
    children.give(tx, row.id, at, made.id, row.space_id)
    runs_attempts.stage_given(tx, row.id, at)
    about = {"stage": stage.name, "run": runs.ref_of(made)}
    tx.emit(Event("stage.given", made.id, row.space_id, row.id, "", about))
    made = runs.move(tx, made, RunState.PREPARING, "run.preparing", data={"environment": made.environment_digest})
    go_on(app, tx, runs.to_queue(tx, made, "run.queued"))
    tx.after_commit(lambda: app.wake.set("schedule"))


def gather(app: App, *, actor: Actor) -> int:
    """Take over what the runs of single stages left, and let the runs that they are of go on, or fail with them.

    Level-triggered: it looks at what there is, whatever ended them. Returns how many ended.
    """
    ended = app.db.read(_ended_children)
    for run_id, position in ended:
        app.db.write(lambda tx, r=run_id, p=position: _join(app, tx, r, p), actor=actor)
    for run_id in dict.fromkeys(one.run_id for one in app.db.read(children.failed)):
        if app.db.read(lambda tx, r=run_id: _is_lost(tx, r)):
            app.db.write(lambda tx, r=run_id: _fail(tx, r), actor=actor)
    return len(ended)


def _ended_children(tx: ReadTx) -> list[tuple[str, int]]:
    """Which have ended; of those that failed, which somebody has let go on since."""
    found = [one for one in children.running(tx) if RunState(runs.get(tx, one.child_id).state) in TERMINAL]
    lost = (RunState.FAILED.value, RunState.STOPPED.value)
    found += [one for one in children.failed(tx) if runs.get(tx, one.child_id).state not in lost]
    return [(one.run_id, one.position) for one in found]


def _join(app: App, tx: Tx, run_id: str, position: int) -> None:
    one = children.of_run(tx, run_id)[position]
    row, child = runs.get(tx, run_id), runs.get(tx, one.child_id)
    if RunState(child.state) not in TERMINAL:
        if one.state == "failed":
            children.set_state(tx, run_id, position, "running")
            runs_attempts.stage_given(tx, run_id, position)
        return
    if one.state == "done":
        return
    stage = runs.spec_of(row).stages[position]
    about = {"stage": stage.name, "run": runs.ref_of(child), "state": child.state, "cause": child.cause}
    if child.state != RunState.FINISHED.value:
        if one.state == "failed":
            return
        children.set_state(tx, run_id, position, "failed")
        runs_attempts.stage_failed(tx, run_id, position)
        tx.emit(Event("stage.lost", child.id, row.space_id, run_id, "", about))
        return
    left = {found.name: runs.from_json(found.products, {}) for found in runs_attempts.stages(tx, child.id)}
    children.set_state(tx, run_id, position, "done")
    runs_attempts.stage_taken(tx, row, position, left.get(stage.name, {}))
    tx.emit(Event("stage.joined", child.id, row.space_id, run_id, "", about))
    if _only_waits(tx, row):
        go_on(app, tx, row)
    elif RunState(row.state) in ACTIVE:  # it works on a stage of its own: what has become due begins beside it
        _spread(app, tx, row)
    tx.after_commit(lambda: app.wake.set("schedule"))


def _spread(app: App, tx: Tx, row: runs.RunRow) -> None:
    spec = runs.spec_of(row)
    if any(one.state == "failed" for one in children.of_run(tx, row.id).values()):
        return
    mine = [at for at in _due(app, tx, row, spec) if at != row.stage_index]
    for at in [one for part in _shared_out(spec, mine, others=True) for one in part] if spec.trial is None else []:
        _give(app, tx, row, spec, at)


def _is_lost(tx: ReadTx, run_id: str) -> bool:
    """Whether a run waits in the queue, a stage of it failed, and none of its stages is worked on any more."""
    going = any(one.state == "running" for one in children.of_run(tx, run_id).values())
    return not going and _only_waits(tx, runs.get(tx, run_id))


def _fail(tx: Tx, run_id: str) -> None:
    if not _is_lost(tx, run_id):
        return
    row = runs.get(tx, run_id)
    position, one = next((at, one) for at, one in children.of_run(tx, run_id).items() if one.state == "failed")
    child = runs.get(tx, one.child_id)
    about = {"stage": runs.spec_of(row).stages[position].name, "run": runs.ref_of(child), "cause": child.cause}
    why = Reason(code="stage_failed", params=about)
    runs.move(tx, row, RunState.FAILED, "run.failed", data=about, cause=child.cause, reason=runs.to_json(why))


def again(app: App, tx: Tx, row: runs.RunRow) -> list[runs.RunRow]:
    """Forget that stages of a run failed elsewhere; return the runs that worked on them, for whoever lets them go on."""
    found: list[runs.RunRow] = []
    for position, one in children.of_run(tx, row.id).items():
        if one.state == "failed":
            children.set_state(tx, row.id, position, "running")
            runs_attempts.stage_given(tx, row.id, position)
            found.append(runs.get(tx, one.child_id))
    return found


def working_for(tx: ReadTx, row: runs.RunRow) -> list[runs.RunRow]:
    """Return the runs that work on stages of a run."""
    return [runs.get(tx, one.child_id) for one in children.of_run(tx, row.id).values() if one.state == "running"]


def products_of(tx: ReadTx, row: runs.RunRow) -> dict[str, dict[str, str]]:
    """Return what stages that are done left: stage → product → tree digest; for a run of one stage those of the whole graph."""
    parent = children.parent_of(tx, row.id)
    above = products_of(tx, runs.get(tx, parent.run_id)) if parent is not None else {}
    return above | _products(tx, row)


def _products(tx: ReadTx, row: runs.RunRow) -> dict[str, dict[str, str]]:
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
    spec, made, given = runs.spec_of(row), results.choices(tx, row.id), children.of_run(tx, row.id)
    for at, view in enumerate(shown):
        view.needs = spec.stages[at].needs
        if at in given:
            view.run_id = given[at].child_id
            view.run = runs.ref_of(runs.get(tx, given[at].child_id))
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
