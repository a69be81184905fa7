"""Runs beside each other over HTTP, and the tables that were made of groups."""

from typing import Any

from litestar import get, post

from trackbed.db import ReadTx
from trackbed.domain.scope import Permission, Scope
from trackbed.server.app import App
from trackbed.server.flows.compare import compare as compare_runs
from trackbed.tracking import compare_groups, runs
from trackbed.wire.compare import CompareRequest, Comparison, GroupComparison

READ = {"permission": Permission.READ}


@post("/api/v1/compare", opt=READ, status_code=200)
async def compare(trackbed_app: App, who: Scope, data: CompareRequest) -> Comparison:
    """What differs between 2 to 100 runs, by name, and their metrics with mean and spread over repeats."""
    return await compare_runs(trackbed_app, who, data.runs, data.metrics)


@get("/api/v1/runs/{run:str}/comparisons", opt=READ)
async def comparisons(trackbed_app: App, who: Scope, run: str) -> list[GroupComparison]:
    """Tables that were made when the last run of a matrix or pair of this run had ended."""

    def read(tx: ReadTx) -> list[GroupComparison]:
        return compare_groups.made_of(tx, who, runs.resolve(tx, who, run))

    return await trackbed_app.db.aread(read)


routes: list[Any] = [compare, comparisons]
