"""submit: from a spec with names to a run with digests, in the queue, or every fault at once and nothing left behind."""

import asyncio
import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from trackbed.access import ProjectRow, ensure_project, naming, next_run_number, space_named
from trackbed.base.entropy import new_id
from trackbed.base.errors import BadInput, Denied, Fault, NotFound, TrackbedError
from trackbed.base.ids import Digest
from trackbed.clusters.engine import NodeFacts
from trackbed.datasets.service import resolve as resolve_dataset
from trackbed.db import ReadTx, Tx
from trackbed.domain.scope import Permission, Scope
from trackbed.formats.tree import encode_listing
from trackbed.registry.service import resolve as resolve_model
from trackbed.scheduling.rules import Node, Waiting, could_ever_fit, largest_node
from trackbed.server.app import App
from trackbed.server.flows import clone, environments, reviewed, trial, when
from trackbed.server.flows.code_diff import commits_before
from trackbed.server.flows.estimate import estimate
from trackbed.server.flows.facts import node_of
from trackbed.server.flows.prepare import prepare
from trackbed.server.flows.template import template_of, with_template
from trackbed.server.flows.trees import may_use
from trackbed.sources.reviews import note_run
from trackbed.sources.service import save_environment
from trackbed.storage.store import Store
from trackbed.tracking import runs, runs_attempts
from trackbed.wire.runs import Estimate, Reason, SubmitReply, SubmitRequest, SubmittedRun
from trackbed.wire.spec import DataPin, FromPin, Resources, Spec, Stage, Uses
from trackbed.wire.trial import DataSlice, TrialRequest
from trackbed.workflow.check import notice
from trackbed.workflow.graph import is_named
from trackbed.workflow.matrix import MOST, combinations, count, with_values
from trackbed.workflow.spec import check, wrong
from trackbed.workflow.trial import request_faults


@dataclass
class Resolved:
    spec: Spec
    faults: list[Fault] = field(default_factory=list[Fault])
    warnings: list[Reason] = field(default_factory=list[Reason])
    reproduces: str = ""


async def submit(app: App, scope: Scope, request: SubmitRequest) -> SubmitReply:
    """Make the run that was asked for, or answer what would be made (`dry_run`).

    Raises:
        NotFound, Denied: the space or the right to write in it is missing.
        BadInput: `spec_wrong` with every fault.
    """
    named = await app.db.aread(lambda tx: template_of(tx, scope, request))
    asked = await asyncio.to_thread(with_template, request, named)  # nothing long in a transaction
    request = asked.request
    outer = [*asked.faults, *await asyncio.to_thread(_outer_faults, app, request, judged=asked.judged)]
    outer += request_faults(request.trial) if request.trial else []
    missing = any(fault.code == "run_tree_missing" for fault in outer)
    request, unknown = await asyncio.to_thread(_with_used_files, app, scope, request, missing=missing)
    outer += unknown
    judged = await reviewed.judge(app, scope, request)
    outer += judged.faults
    if request.dry_run:
        found = await app.db.aread(lambda tx: resolve(app, tx, scope, request, outer))
        if found.faults:
            raise wrong(found.faults)
        commits = await app.db.aread(lambda tx: commits_before(tx, scope, found.spec.space, found.spec.project))
        planned = [SubmittedRun(values=values) for values in combinations(found.spec)] if found.spec.matrix else []
        expected = await app.db.aread(lambda tx: _estimate(app, tx, scope, found.spec))
        return SubmitReply(
            spec=found.spec,
            warnings=found.warnings,
            runs=planned,
            resolved=asked.resolved,
            estimate=expected,
            commits_before=commits,
        )
    tried: _Trial | None = None
    wanted = request.trial
    if wanted is not None and not asked.judged:
        found = await app.db.aread(lambda tx: resolve(app, tx, scope, request, outer))
        if found.faults:
            raise wrong(found.faults)
        pins, said = await asyncio.to_thread(
            lambda: trial.sliced(_store(app, scope, found.spec.space), found.spec.data, wanted.data_bytes)
        )
        tried = _Trial(wanted, found.spec.data, pins, said)
    if asked.judged:  # everything else that is wrong is told with it
        found = await app.db.aread(lambda tx: resolve(app, tx, scope, request, outer))
        raise wrong(found.faults)
    ids = [new_id("run") for _ in range(min(count(request.spec), MOST) + 1)]  # the last one for a trial
    work = _Asked(scope, request, outer, ids, tried, judged.reviews)
    return await app.db.awrite(lambda tx: _submit(app, tx, work), actor=scope.actor)


@dataclass
class _Trial:
    """`whole` is the data as it was looked at: a name may mean another version by the time the runs are made."""

    asked: TrialRequest
    whole: dict[str, DataPin]
    part: dict[str, DataPin]
    said: list[DataSlice]


@dataclass
class _Asked:
    scope: Scope
    request: SubmitRequest
    outer: list[Fault]
    ids: list[str]
    trial: _Trial | None = None
    reviews: list[str] = field(default_factory=list[str])


def _submit(app: App, tx: Tx, asked: _Asked) -> SubmitReply:
    """Make the run, or all runs of a matrix, with the trial that they wait for: in one transaction, or none."""
    scope, request = asked.scope, asked.request
    found = resolve(app, tx, scope, request, asked.outer)
    if found.faults:
        raise wrong(found.faults)
    project = ensure_project(tx, scope, found.spec.space, found.spec.project)
    data = asked.trial.whole if asked.trial else found.spec.data
    spec = msgspec.structs.replace(found.spec, project=project.name, space=project.space, data=data, trial=None)
    if request.environment is not None:
        save_environment(tx, request.environment)
    tx.after_commit(lambda: app.wake.set("schedule"))
    of = clone.origin(tx, scope, request)
    rows: list[runs.RunRow] = []
    made: list[SubmittedRun] = []
    group = ""
    for run_id, values in zip(asked.ids, combinations(spec), strict=False):
        number = next_run_number(tx, project.id)
        one = with_values(spec, values)
        if spec.matrix:
            group = group or f"matrix:{project.name}#{number}"
            one = msgspec.structs.replace(one, tags=[*dict.fromkeys([*one.tags, group])])
        row = _make(app, tx, scope, request, found, one, project, run_id, number)
        note_run(tx, row.id, row.space_id, asked.reviews)
        rows.append(row)
        if of is not None:
            clone.note(tx, row, of, runs.spec_of(of), one)
        made.append(SubmittedRun(run_id=run_id, ref=runs.ref_of(row), url=_url(app, run_id), values=values))
    reply = SubmitReply(
        run_id=made[0].run_id, ref=made[0].ref, url=made[0].url, spec=spec, warnings=found.warnings,
        runs=made if spec.matrix else [], group=group,
    )  # fmt: skip
    return _try_first(app, tx, asked, rows, reply)


def _try_first(app: App, tx: Tx, asked: _Asked, rows: list[runs.RunRow], reply: SubmitReply) -> SubmitReply:
    """Make the trial of the first of the runs; all of them are held for it."""
    if asked.trial is None:
        return reply
    new = trial.new_trial(tx, rows[0], asked.ids[-1], asked.trial.asked, asked.trial.part)
    tree, environment = asked.request.tree, asked.request.environment
    tried = prepare(app, tx, runs.create(tx, replace(new, tree=tree, environment=environment)))
    trial.began(tx, rows, tried, asked.trial.asked, asked.trial.said)
    reply.trial_id, reply.trial_ref = tried.id, runs.ref_of(tried)
    return reply


def _estimate(app: App, tx: ReadTx, scope: Scope, spec: Spec) -> Estimate:
    return estimate(app, tx, scope, spec, app.engine.inventory(), count=count(spec))


def _url(app: App, run_id: str) -> str:
    return f"{app.url}/runs/{run_id}"


def _make(
    app: App, tx: Tx, scope: Scope, request: SubmitRequest, found: Resolved, spec: Spec, project: ProjectRow,
    run_id: str, number: int,
) -> runs.RunRow:  # fmt: skip
    row = runs.create(
        tx,
        runs.NewRun(
            id=run_id, space_id=project.space_id, project_id=project.id,
            number=number,
            owner_id=scope.actor.id, owner=scope.actor.name, spec=spec, tree=request.tree,
            environment=request.environment, reproduces=found.reproduces,
            nondeterminism=("determinism: recorded",) if spec.determinism == "recorded" else (),
        ),
    )  # fmt: skip
    why = Reason(code="trial_waits", params={"run": runs.ref_of(row)}) if request.trial else None
    return prepare(app, tx, row, held=why)


def _outer_faults(app: App, request: SubmitRequest, *, judged: bool) -> list[Fault]:
    """What the spec alone (unless it was judged with its template), the store and the engine say; outside of the transaction."""
    faults = [] if judged else check(request.spec)
    tree = request.tree
    if tree is not None and tree.digest and not app.store.has_tree(Digest(tree.digest)):
        faults.append(tree_missing(tree.digest))
    faults += environments.faults_of(app, request)
    inventory: list[NodeFacts] = app.engine.inventory()
    nodes = [node_of(facts) for facts in inventory]
    spec = request.spec
    faults += _too_large("resources", spec.resources, nodes)
    for at, stage in enumerate(spec.stages):
        if stage.resources is not None:
            faults += _too_large(f"stages[{at}].resources", stage.resources, nodes)
    return faults


def _with_used_files(
    app: App, scope: Scope, request: SubmitRequest, *, missing: bool
) -> tuple[SubmitRequest, list[Fault]]:
    """Cut the tree for stages that name the files they use: a tree of its own for each, so that it finds nothing else."""
    tree, spec = request.tree, request.spec
    if not any(stage.uses for stage in spec.stages):
        return request, []
    known = tree is not None and tree.digest != "" and not missing
    entries = app.store.read_listing(Digest(tree.digest)) if known and tree else []
    faults: list[Fault] = []
    parts: list[Stage] = []
    for at, stage in enumerate(spec.stages):
        if stage.uses is None or stage.uses.files is None or not known:
            parts.append(stage if stage.uses is None else _with_tree(stage, ""))
            continue
        kept = [entry for entry in entries if is_named(os.fsdecode(entry.path), stage.uses.files)]
        for name in stage.uses.files:
            if not any(is_named(os.fsdecode(entry.path), [name]) for entry in kept):
                faults.append(Fault("spec_uses_no_file", f"stages[{at}].uses.files", None, {"name": name}))
        digest = _store(app, scope, spec.space).put_listing(encode_listing(kept))
        parts.append(_with_tree(stage, digest))
    return msgspec.structs.replace(request, spec=msgspec.structs.replace(spec, stages=parts)), faults


def _store(app: App, scope: Scope, space: str) -> Store:
    """The store of the space that a run is for; whether it may be is said later, with every other fault."""
    with contextlib.suppress(NotFound, Denied):
        return app.store_for(scope, space)
    return app.store


def _with_tree(stage: Stage, digest: str) -> Stage:
    uses = msgspec.structs.replace(stage.uses or Uses(), tree=digest)
    return msgspec.structs.replace(stage, uses=uses)


def tree_missing(digest: str) -> Fault:
    """The same words for a tree that is not there and for one that the scope has never sent."""
    return Fault("run_tree_missing", "code", None, {"digest": digest})


def _too_large(where: str, wanted: Resources, nodes: list[Node]) -> Iterable[Fault]:
    asked = waiting_of(wanted)
    if could_ever_fit(asked, nodes):
        return
    node, largest = largest_node(nodes)
    params = {"cards_per_node": wanted.cards_per_node, "nodes": wanted.nodes, "kind": wanted.kind,
              "node": node or "-", "largest": largest, "pool_nodes": len(nodes)}  # fmt: skip
    yield Fault("too_large_for_any_node", where, None, params)


def waiting_of(wanted: Resources) -> Waiting:
    """The resources alone, as the planner sees them."""
    return Waiting(
        "", "", runs.Priority.NORMAL, 0, wanted.cards_per_node, wanted.nodes, wanted.kind, wanted.card_memory_bytes,
        tuple(wanted.only), tuple(wanted.not_), wanted.time_limit_s,
    )  # fmt: skip


def resolve(app: App, tx: ReadTx, scope: Scope, request: SubmitRequest, outer: list[Fault]) -> Resolved:
    """Turn every name of the spec into a digest; collect what cannot be."""
    space = space_named(tx, scope, request.spec.space, permission=Permission.WRITE)
    spec = msgspec.structs.replace(request.spec, space=space.name)
    found = Resolved(spec, [*outer], notice(spec))
    found.spec = msgspec.structs.replace(
        spec, data={name: _data(tx, scope, spec, name, pin, found) for name, pin in spec.data.items()},
        from_=_from(tx, scope, spec, found),
    )  # fmt: skip
    if spec.priority == "urgent" and not scope.may(Permission.MAINTAIN, space.id):
        found.faults.append(Fault("urgent_needs_right", "priority"))
    if spec.register is not None:
        with _collected(found, "register.when"):
            when.parse(spec.register.when)
    found.faults += environments.site_faults(app, tx, space.id, request)
    if not request.reproduces:  # a run that stands keeps its name, and its reproduction has it too
        rule = naming.rule_of(tx, scope, spec.space, spec.project)
        found.faults += rule.faults(spec.name, spec.tags, user=scope.actor.name)
    tree = request.tree
    sent = tree is None or not tree.digest or may_use(tx, scope, Digest(tree.digest))
    if not sent:  # what is in a tree that they may not read is not told
        found.faults = [fault for fault in found.faults if fault.code != "spec_uses_no_file"]
    if not sent and not any(fault.code == "run_tree_missing" for fault in outer):
        found.faults.append(tree_missing(tree.digest if tree else ""))
    if request.like:
        with _collected(found, "like"):
            clone.origin(tx, scope, request)
    if request.reproduces:
        with _collected(found, "reproduces"):
            found.reproduces = runs.resolve(tx, scope, request.reproduces).id
    return found


class _collected:  # noqa: N801 - read as a phrase: with _collected(found, field)
    """What is refused inside becomes a fault of a field."""

    def __init__(self, found: Resolved, name: str) -> None:
        self._found, self._name = found, name

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> bool:
        if not isinstance(error, BadInput | NotFound | Denied):
            return False
        self._found.faults += faults_of(error, self._name)
        return True


def faults_of(error: TrackbedError, name: str) -> list[Fault]:
    """An error as faults of one field."""
    return [one._replace(field=one.field or name) for one in error.faults] or [
        Fault(error.code, name, None, error.params)
    ]


def _data(tx: ReadTx, scope: Scope, spec: Spec, name: str, pin: DataPin, found: Resolved) -> DataPin:
    with _collected(found, f"data.{name}"):
        view = resolve_dataset(tx, scope, pin.ref, spec.space)
        kind = "file" if view.kind == "file" else "folder"
        return DataPin(
            ref=pin.ref, dataset=view.dataset, version=view.version, digest=view.digest, kind=kind,
            size_bytes=view.size_bytes,
        )  # fmt: skip
    return pin


def _from(tx: ReadTx, scope: Scope, spec: Spec, found: Resolved) -> FromPin | None:
    pin = spec.from_
    if pin is None:
        return None
    with _collected(found, f"from.{pin.kind}"):
        if pin.kind == "model":
            view = resolve_model(tx, scope, pin.ref, spec.space)
            return msgspec.structs.replace(pin, digest=view.digest, run_id=view.run_id)
        return _from_checkpoint(tx, scope, pin)
    return pin


def _from_checkpoint(tx: ReadTx, scope: Scope, pin: FromPin) -> FromPin:
    """`demo#16@latest`, `demo#16@200` (a step), `demo#16@NAME`, `run_…@b3:…`; without `@` the latest.

    Raises:
        NotFound: `checkpoint_unknown` with the steps there are.
    """
    ref, _, which = pin.ref.partition("@")
    source = runs.resolve(tx, scope, ref)
    points = runs_attempts.checkpoints(tx, source.id)
    if which in ("", "latest"):
        chosen = [point for point in points if point.current][-1:]
    else:
        chosen = [point for point in points if which in (str(point.step), point.name, point.digest)][-1:]
    if not chosen:
        steps = ", ".join(dict.fromkeys(str(point.step) for point in points)) or "-"
        raise NotFound("checkpoint_unknown", ref=pin.ref, which=which or "latest", steps=steps)
    return msgspec.structs.replace(pin, digest=chosen[0].digest, run_id=source.id, step=chosen[0].step)
