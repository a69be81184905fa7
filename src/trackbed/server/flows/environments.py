"""environments: what a run is installed with, before it may queue. One build for however many runs wait for it.

preparing ─► pack ready: queue      pack missing: it waits, without cards      build failed: failed(environment)
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from trackbed.access import space_named
from trackbed.base.errors import BadInput, Fault, NotFound
from trackbed.db import ReadTx, Tx, scope_clause
from trackbed.domain.events import Event
from trackbed.domain.scope import Permission, Scope
from trackbed.domain.states import Cause, RunState
from trackbed.server.app import App
from trackbed.sources import names_sql, packs, packs_sql
from trackbed.sources.compare import compare
from trackbed.sources.environment import digest_of
from trackbed.sources.locking import this_platform
from trackbed.sources.locks import parse
from trackbed.sources.service import environment_faults, load_environment, save_environment
from trackbed.sources.sql import environment
from trackbed.tracking import runs, runs_views
from trackbed.tracking.runs_tables import run
from trackbed.wire.environments import EnvironmentFacts, EnvironmentName, EnvironmentView, NameRequest
from trackbed.wire.runs import Reason, SubmitRequest
from trackbed.wire.spec import Spec

KEEP_US = 30 * 86400 * 1_000_000  # a pack of no run and no name is dropped after this


def pool_platform() -> str:
    """The platform that packs are built for: that of the embedded node."""
    return this_platform()


# --- submit ----------------------------------------------------------------------------------------------------------


def faults_of(app: App, request: SubmitRequest) -> list[Fault]:
    """What is wrong with the environment of a request, apart from what the database knows. May start a program."""
    wanted, record = request.spec.environment, request.environment
    if record is None:
        if wanted == "current" or request.dry_run:
            return _image_faults(app, wanted)
        return [Fault("environment_not_sent", "environment", None, {"environment": wanted})]
    faults = environment_faults(record)
    if faults or record.kind == "current":
        return faults
    if record.kind == "image":
        return _image_faults(app, record.image)
    lock = parse(record.lock)
    if pool_platform() not in lock.platforms:
        params = {"platform": pool_platform(), "platforms": ", ".join(lock.platforms)}
        return [Fault("environment_platform", "environment", None, params)]
    try:
        packs.interpreter_for(lock.python)
    except NotFound as missing:
        return [Fault(missing.code, "environment", None, missing.params)]
    if _needs_us(request.spec) and "trackbed" not in lock.names():
        return [Fault("environment_without_trackbed", "environment")]
    return []


def _needs_us(spec: Spec) -> bool:
    return bool(spec.recipe) or any(stage.recipe or stage.suite for stage in spec.stages)


def _image_faults(app: App, image: str) -> list[Fault]:
    if "@sha256:" not in image:
        return []
    if getattr(app.engine.caps, "containers", False):
        return []
    return [Fault("environment_image", "environment", None, {"engine": app.engine.name})]


def site_faults(app: App, tx: ReadTx, space_id: str, request: SubmitRequest) -> list[Fault]:
    """Where a site allows only environments that have a name, whether this one has."""
    if app.settings.environments != "published" or request.dry_run:
        return []
    digest = request.environment.digest if request.environment else ""
    if digest and names_sql.is_named(tx, space_id, digest):
        return []
    known = tx.rows(select(names_sql.name.c.name).where(names_sql.name.c.space_id == space_id))
    params = {"digest": digest[:15] or "-", "known": ", ".join(sorted(row.name for row in known)) or "-"}
    return [Fault("environment_unpublished", "environment", None, params)]


# --- preparing -------------------------------------------------------------------------------------------------------


def missing_pack(tx: ReadTx, row: runs.RunRow) -> str:
    """Return the platform for which the run's pack is still to be built; empty where nothing is missing."""
    record = runs_views.environment_of(row)
    if record is None or record.kind != "lock" or packs_sql.ready_tree(tx, record.digest, pool_platform()):
        return ""
    return pool_platform()


def wait_for_pack(app: App, tx: Tx, row: runs.RunRow, platform: str, **columns: Any) -> runs.RunRow:
    """Keep a run in `preparing` until its pack is there; whoever comes second waits for the same build."""
    packs_sql.want(tx, row.environment_digest, platform)
    tx.after_commit(lambda: app.wake.set("environments"))
    reason = runs.to_json(Reason(code="environment_building", params={"digest": row.environment_digest[:15]}))
    if row.state == RunState.PREPARING.value:
        runs.set_columns(tx, row, reason=reason, **columns)
        return runs.get(tx, row.id)
    return runs.move(tx, row, RunState.PREPARING, "run.preparing", reason=reason, cause="", wish="",
                     data={"environment": row.environment_digest}, **columns)  # fmt: skip


def waiting_for(tx: ReadTx, environment: str) -> list[runs.RunRow]:
    preparing = (run.c.state == RunState.PREPARING.value) & (run.c.environment_digest == environment)
    return tx.rows(select(run).where(preparing).order_by(run.c.created_us, run.c.id))


def fail_waiting(tx: Tx, environment: str, reason: Reason) -> int:
    """End the runs that wait for a pack which could not be built."""
    rows = waiting_for(tx, environment)
    for row in rows:
        runs.move(tx, row, RunState.FAILED, "run.failed", cause=Cause.ENVIRONMENT.value, reason=runs.to_json(reason),
                  data={"cause": Cause.ENVIRONMENT.value, "code": reason.code})  # fmt: skip
    return len(rows)


# --- reading ---------------------------------------------------------------------------------------------------------


def show(tx: ReadTx, scope: Scope, digest: str) -> EnvironmentView:
    """One environment with its packs and names.

    Raises:
        NotFound: `sources_environment_missing`, also for one of no run and name that may be read.
    """
    views = list_all(tx, scope, digest)
    if not views:
        raise NotFound("sources_environment_missing", digest=digest)
    view = views[0]
    view.record = load_environment(tx, view.digest)
    view.packs = packs_sql.of_environment(tx, view.digest)
    for one in view.packs:
        one.waiting = len(waiting_for(tx, view.digest))
    return view


def list_all(tx: ReadTx, scope: Scope, digest: str = "") -> list[EnvironmentView]:
    """The environments of readable runs and names, the newest first; those that begin with `digest`, if it is given."""
    used: dict[str, int] = {}
    where = [scope_clause(run, scope), run.c.environment_digest.startswith(digest or "b3:", autoescape=True)]
    for row in tx.rows(select(run.c.environment_digest).where(*where)):
        used[row.environment_digest] = used.get(row.environment_digest, 0) + 1
    names: dict[str, list[str]] = {}
    for one in names_sql.all_of(tx, scope):
        if one.digest.startswith(digest):
            names.setdefault(one.digest, []).append(f"{one.space}/{one.name}")
    rows = tx.rows(
        select(environment)
        .where(environment.c.digest.in_(sorted(used.keys() | names.keys())))
        .order_by(environment.c.created_us.desc())
    )
    views: list[EnvironmentView] = []
    for row in rows:
        record = load_environment(tx, row.digest)
        views.append(EnvironmentView(
            digest=row.digest, kind=record.kind, python=record.python, platform=record.platform, packages=len(record.packages),
            runs=used.get(row.digest, 0), created_us=row.created_us, names=names.get(row.digest, []),
        ))  # fmt: skip
    return views


def facts(tx: ReadTx, scope: Scope, ref: str, space: str = "default") -> EnvironmentFacts:
    """Everything known of the environment of a run, a name, or a digest.

    Raises:
        NotFound: `environment_ref_unknown`.
    """
    if ref.startswith("b3:"):
        return EnvironmentFacts(label=ref[:15], environment=show(tx, scope, ref).record)
    for one in names_sql.all_of(tx, scope):
        if ref in (one.name, f"{one.space}/{one.name}") and ("/" in ref or one.space == space):
            row = names_sql.row_of(tx, _space_id(tx, scope, one.space), one.name)
            return EnvironmentFacts(
                label=ref, environment=load_environment(tx, one.digest), surroundings=names_sql.surroundings_of(row)
            )
    try:
        row = runs.resolve(tx, scope, ref)
    except NotFound as fault:
        raise NotFound("environment_ref_unknown", ref=ref) from fault
    return facts_of_run(tx, row)


def facts_of_run(tx: ReadTx, row: runs.RunRow) -> EnvironmentFacts:
    told = names_sql.found_of_run(tx, row.id)
    return EnvironmentFacts(
        label=runs.ref_of(row), environment=runs_views.environment_of(row),
        surroundings=told.surroundings if told else None, drift=told.drift if told else [],
    )  # fmt: skip


def _space_id(tx: ReadTx, scope: Scope, space: str) -> str:
    return space_named(tx, scope, space).id


# --- names -----------------------------------------------------------------------------------------------------------


def name(tx: Tx, scope: Scope, label: str, asked: NameRequest) -> EnvironmentName:
    """Point a name to the environment of a run, or to a record.

    Raises:
        BadInput: `environment_name_what`, or what is wrong with the record.
        Conflict: `environment_name_moved`.
    """
    space = space_named(tx, scope, asked.space, permission=Permission.MAINTAIN)
    record, run_id, surroundings = asked.environment, "", asked.surroundings
    if asked.run:
        row = runs.resolve(tx, scope, asked.run)
        record, run_id, surroundings = runs_views.environment_of(row), row.id, facts_of_run(tx, row).surroundings
    if record is None:
        raise BadInput("environment_name_what", name=label)
    faults = environment_faults(record)
    if faults:
        raise BadInput("environment_name_wrong", faults=faults, name=label)
    save_environment(tx, record)
    return names_sql.point(
        tx,
        (space.id, space.name),
        label,
        digest_of(record),
        run_id=run_id,
        surroundings=surroundings,
        expected=asked.expected,
    )


def forget_unused(tx: Tx, *, keep_us: int = KEEP_US) -> list[str]:
    """Drop packs that belong to no run and no name; a pack of a kept run stays."""
    keep: Sequence[str] = [
        *(row[0] for row in tx.rows(select(run.c.environment_digest).distinct())),
        *(row[0] for row in tx.rows(select(names_sql.name.c.digest).distinct())),
    ]
    return packs_sql.forget(tx, keep, tx.now_us - keep_us)


# --- release ---------------------------------------------------------------------------------------------------------

PRODUCTION = ("prod", "production")  # names of the environment that a release is compared with
_MOST_TOLD = 8


def release_warnings(tx: Tx, run_id: str, alias: str = "") -> list[Reason]:
    """Compare the environment of a run with the one that its model will meet: named as the alias, else `prod`.

    Where they differ it is an event too. Nothing is said where no such name is.
    """
    row = tx.one(select(run).where(run.c.id == run_id))
    if row is None:
        return []
    table = names_sql.name
    wanted = dict.fromkeys([*([alias] if alias else []), *PRODUCTION])
    known = {found.name: found for found in tx.rows(select(table).where(table.c.space_id == row.space_id))}
    chosen = next((known[label] for label in wanted if label in known), None)
    if chosen is None or (chosen.digest == row.environment_digest and not chosen.surroundings):
        return []
    target = EnvironmentFacts(
        label=chosen.name,
        environment=load_environment(tx, chosen.digest),
        surroundings=names_sql.surroundings_of(chosen),
    )
    found = compare(facts_of_run(tx, row), target).differences
    if not found:
        return []
    changes = [f"{one.name} {one.before or '-'} -> {one.after or '-'}" for one in found[:_MOST_TOLD]]
    more = f" (+{len(found) - _MOST_TOLD})" if len(found) > _MOST_TOLD else ""
    params = {"run": runs.ref_of(row), "name": chosen.name, "count": len(found), "changes": ", ".join(changes) + more}
    tx.emit(Event("model.environment_differs", row.id, row.space_id, row.id, data=params))
    return [Reason(code="release_environment_differs", params=params)]
