"""Runs over HTTP: submit, list, read, change, the verbs, reproduction, lineage."""

from typing import Any

from litestar import Response, get, patch, post

from trackbed.access import naming
from trackbed.base.errors import BadInput, NotFound
from trackbed.db import ReadTx, Tx
from trackbed.domain.scope import Permission, Scope
from trackbed.server.app import App
from trackbed.server.flows import clone, lineage, outside, reproduce, trial, verbs
from trackbed.server.flows import submit as submitting
from trackbed.server.flows.detail import detail
from trackbed.tracking import facts, runs, runs_attempts
from trackbed.tracking.anomalies import open_kinds_of
from trackbed.tracking.metrics import last_values_of
from trackbed.tracking.metrics_state import word
from trackbed.tracking.runs_tables import run as run_table
from trackbed.tracking.runs_views import run_view, view
from trackbed.tracking.search import compile as compile_filter
from trackbed.tracking.search import order as compile_order
from trackbed.wire.data import LineageView
from trackbed.wire.runs import (
    CloneView,
    EventView,
    OutsideRunRequest,
    ReproductionVerdict,
    RunDetail,
    RunPage,
    RunView,
    SubmitReply,
    SubmitRequest,
    VerbRequest,
)
from trackbed.wire.trial import TrialView

READ = {"permission": Permission.READ}
WRITE = {"permission": Permission.WRITE}
# Inside a job the relay forwards reads of the job's own project under the attempt token.
READ_BY_JOBS = {"permission": Permission.READ, "attempt": True}
MOST_COLUMNS = 200


@get("/api/v1/runs", opt=READ_BY_JOBS)
async def list_runs(
    trackbed_app: App,
    who: Scope,
    filter: str = "",
    order_by: str = "created",
    descending: bool = True,
    limit: int = 50,
    cursor: str = "",
    project: str = "",
    columns: str = "",
) -> RunPage:
    """A page of the runs table; `columns` are metric keys or `params.name`."""
    asked = [name for name in columns.split(",") if name]
    if len(asked) > MOST_COLUMNS:
        raise BadInput("columns_many", given=len(asked), most=MOST_COLUMNS)

    def read(tx: ReadTx) -> RunPage:
        where = [compile_filter(filter)] if filter.strip() else []
        if project:
            where.append(run_table.c.project == project)
        order = compile_order(order_by)
        rows, following, total = runs.list_runs(
            tx, who, where=where, order=order, descending=descending, cursor=cursor, limit=limit
        )
        return RunPage(runs=with_columns(tx, rows, asked), next=following, total=total)

    return await trackbed_app.db.aread(read)


def with_columns(tx: ReadTx, rows: list[runs.RunRow], columns: list[str]) -> list[RunView]:
    """Rows as views, with the last values of the asked metrics and params."""
    ids = [row.id for row in rows]
    names = [name.removeprefix("params.") for name in columns if name.startswith("params.")]
    keys = [name.removeprefix("metrics.") for name in columns if not name.startswith("params.")]
    params = facts.params_of_runs(tx, ids, names) if names else {}
    last = last_values_of(tx, ids, keys) if keys else {}
    values = {run_id: {key: word(value) for key, value in found.items()} for run_id, found in last.items()}
    spent = runs_attempts.spent(tx, ids)
    marks = open_kinds_of(tx, ids)
    return [
        run_view(
            row,
            metrics=values.get(row.id),
            params=params.get(row.id),
            spent=spent.get(row.id, 0.0),
            marks=marks.get(row.id, ()),
        )
        for row in rows
    ]


@post("/api/v1/runs", opt=WRITE)
async def submit(trackbed_app: App, who: Scope, data: SubmitRequest) -> Response[SubmitReply]:
    """Make a run; on a dry run say what would be made."""
    reply = await submitting.submit(trackbed_app, who, data)
    return Response(reply, status_code=200 if data.dry_run else 201)


@post("/api/v1/outside-runs", opt=WRITE)
async def begin_outside(trackbed_app: App, who: Scope, data: OutsideRunRequest) -> RunView:
    """A run that nobody submitted: `trackbed.init()` outside of jobs."""
    return await trackbed_app.db.awrite(lambda tx: view(tx, outside.begin(tx, who, data)), actor=who.actor)


@get("/api/v1/runs/{run:str}", opt=READ_BY_JOBS)
async def show(trackbed_app: App, who: Scope, run: str) -> RunDetail:
    """All of a run's record but series and logs."""
    return await trackbed_app.db.aread(lambda tx: detail(trackbed_app, tx, who, runs.resolve(tx, who, run)))


@patch("/api/v1/runs/{run:str}", opt=WRITE)
async def change(trackbed_app: App, who: Scope, run: str, data: dict[str, Any]) -> RunView:
    """Change name, description or tags, if nobody did so since."""

    def work(tx: Tx) -> RunView:
        row = runs.patch(tx, who, run, data)
        if data.keys() & {"name", "tags"}:
            rule = naming.rule_of(tx, who, row.space, row.project)
            faults = rule.faults(row.name, runs.from_json(row.tags, []), user=row.owner)
            faults = [fault for fault in faults if fault.field in data]
            if faults:
                raise BadInput("run_patch_wrong", faults=faults)
        return view(tx, row)

    return await trackbed_app.db.awrite(work, actor=who.actor)


@get("/api/v1/runs/{run:str}/clone", opt=READ)
async def show_clone(
    trackbed_app: App, who: Scope, run: str, fork: bool = False, checkpoint: str = "", model: str = ""
) -> CloneView:
    """The run as a file that asks for it again, to be changed and submitted; with `fork` it begins from its checkpoint."""
    return await trackbed_app.db.aread(
        lambda tx: clone.clone(tx, who, run, fork=fork, checkpoint=checkpoint, model=model)
    )


@get("/api/v1/runs/{run:str}/trial", opt=READ)
async def show_trial(trackbed_app: App, who: Scope, run: str) -> TrialView:
    """The trial that was made for a run, or that it is; while it runs, with what is known so far."""

    def read(tx: ReadTx) -> TrialView:
        row = runs.resolve(tx, who, run)
        found = trial.view_of(trackbed_app, tx, row)
        if found is None:
            raise NotFound("trial_none", ref=runs.ref_of(row))
        return found

    return await trackbed_app.db.aread(read)


def _verb(verb: str) -> Any:
    @post(
        f"/api/v1/runs/{{run:str}}/{verb}", opt=WRITE, status_code=200, name=f"{verb}_run", operation_id=f"{verb}_run"
    )
    async def act(trackbed_app: App, who: Scope, run: str, data: VerbRequest | None = None) -> RunView:
        request = data or VerbRequest()

        def work(tx: Tx) -> RunView:
            return view(tx, verbs.act(trackbed_app, tx, who, run, verb, request))

        return await trackbed_app.db.awrite(work, actor=who.actor)

    return act


@get("/api/v1/runs/{run:str}/events", opt=READ)
async def events(trackbed_app: App, who: Scope, run: str, after: int = 0, limit: int = 500) -> list[EventView]:
    """What happened to a run, oldest first, from behind a journal position."""

    def read(tx: ReadTx) -> list[EventView]:
        row = runs.resolve(tx, who, run)
        found = trackbed_app.db.events_in(tx, after, limit=max(1, min(limit, 5000)), run_id=row.id)
        return lineage.event_views(tx, row, list(found))

    return await trackbed_app.db.aread(read)


@get("/api/v1/runs/{run:str}/lineage", opt=READ)
async def show_lineage(trackbed_app: App, who: Scope, run: str) -> LineageView:
    """What the run was made from and what was made of it."""
    return await trackbed_app.db.aread(lambda tx: lineage.of_run(tx, who, runs.resolve(tx, who, run)))


@get("/api/v1/runs/{run:str}/reproduction", opt=READ)
async def reproduction(trackbed_app: App, who: Scope, run: str) -> SubmitRequest:
    """The same run again, from its record alone, ready to send."""
    return await trackbed_app.db.aread(lambda tx: reproduce.reproduction(tx, who, run))


@get("/api/v1/runs/{run:str}/reproduction/verdict", opt=READ)
async def verdict(trackbed_app: App, who: Scope, run: str) -> ReproductionVerdict:
    """Whether a run that reproduces another gave every deterministic metric bit for bit."""
    return await trackbed_app.db.aread(lambda tx: reproduce.compare(trackbed_app, tx, who, runs.resolve(tx, who, run)))


routes: list[Any] = [
    list_runs, submit, begin_outside, show, change, *[_verb(verb) for verb in verbs.VERBS], events, show_lineage,
    reproduction, verdict, show_trial, show_clone,
]  # fmt: skip
