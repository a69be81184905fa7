"""Health of nodes for every signed-in person; looking again needs the right to maintain."""

import asyncio
from typing import Any

from litestar import get, post

from trackbed.domain.scope import Permission
from trackbed.server.app import App
from trackbed.server.loops import doctor as loop
from trackbed.sources import doctor, doctor_sql
from trackbed.wire.doctor import NodeCheck

SIGNED_IN = {"permission": Permission.SIGNED_IN}
MAINTAIN = {"permission": Permission.MAINTAIN}


@get("/api/v1/doctor", opt=SIGNED_IN, name="doctor", operation_id="doctor")
async def newest(trackbed_app: App) -> list[NodeCheck]:
    """The last look of every check at every node."""
    return await trackbed_app.db.aread(doctor_sql.newest)


@get("/api/v1/doctor/history", opt=SIGNED_IN, name="doctor_history", operation_id="doctor_history")
async def history(
    trackbed_app: App, node: str = "", check: str = "", since_us: int = 0, limit: int = 500
) -> list[NodeCheck]:
    """Looks of the last 14 days, the newest first."""
    return await trackbed_app.db.aread(
        lambda tx: doctor_sql.history(tx, node=node, check=check, since_us=since_us, limit=limit)
    )


@post("/api/v1/doctor", opt=MAINTAIN, status_code=200, name="doctor_look", operation_id="doctor_look")
async def look(trackbed_app: App) -> list[NodeCheck]:
    """Look at the server's node now. What changed since the last scheduled look is not judged by this one."""
    return await asyncio.to_thread(loop.look, trackbed_app, doctor.Memory())


routes: list[Any] = [newest, history, look]
