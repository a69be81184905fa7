"""The whole record of a run, from every room that keeps a part of it."""

from trackbed.db import ReadTx
from trackbed.domain.scope import Scope
from trackbed.registry.service import made_by
from trackbed.server.app import App
from trackbed.server.flows import clone, stages, trial
from trackbed.tracking import artifacts, runs, runs_views
from trackbed.tracking.export_tables import origin_view
from trackbed.tracking.metrics import key_names
from trackbed.wire.runs import RunDetail


def detail(app: App, tx: ReadTx, scope: Scope, row: runs.RunRow) -> RunDetail:
    """Everything but series and logs."""
    record = runs_views.detail(tx, row)
    record.stages = stages.views(tx, row, record.stages)
    record.artifacts = artifacts.of_run(tx, row.id)
    record.metric_keys = key_names(tx, row.id)
    record.models = [f"{view.model}@{view.version}" for view in made_by(tx, scope, row.id)]
    record.like = clone.view_of(tx, scope, row)
    record.origin = origin_view(tx, row.id)
    record.trial = trial.view_of(app, tx, row)
    return record
