"""What was noticed about a run: anomalies of its curves, slow steps."""

from typing import Any

from litestar import get

from trackbed.domain.scope import Permission, Scope
from trackbed.server.app import App
from trackbed.tracking import anomalies as noticed
from trackbed.tracking import runs
from trackbed.wire.marks import AnomaliesReply, StepsReply

READ = {"permission": Permission.READ}


@get("/api/v1/runs/{run:str}/anomalies", opt=READ)
async def anomalies(trackbed_app: App, who: Scope, run: str) -> AnomaliesReply:
    """NaN and infinity, spikes, divergence, plateaus, stalls: open ones and those that are over, the newest first."""
    return await trackbed_app.db.aread(lambda tx: noticed.anomalies_of(tx, runs.resolve(tx, who, run).id))


@get("/api/v1/runs/{run:str}/steps", opt=READ)
async def steps(trackbed_app: App, who: Scope, run: str) -> StepsReply:
    """How the steps go: usual time and split by phase, the slow ones with their cause and straggler, the ranks."""
    return await trackbed_app.db.aread(lambda tx: noticed.steps_of(tx, runs.resolve(tx, who, run).id))


routes: list[Any] = [anomalies, steps]
