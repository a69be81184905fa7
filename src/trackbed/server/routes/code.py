"""Code of runs: compared line by line."""

import asyncio
from typing import Any

from litestar import get

from trackbed.domain.scope import Permission, Scope
from trackbed.server.app import App
from trackbed.server.flows.code_diff import line_diff
from trackbed.wire.code import CodeDiff


@get(
    "/api/v1/runs/{run:str}/code-diff", opt={"permission": Permission.READ}, name="code_diff", operation_id="code_diff"
)
async def diff(trackbed_app: App, who: Scope, run: str, before: str = "", path: str = "") -> CodeDiff:
    """What the code of a run changed since that of an earlier one (`before`), and who brought each line."""
    return await asyncio.to_thread(line_diff, trackbed_app, who, before, run, path=path)


routes: list[Any] = [diff]
