"""The model registry."""

import asyncio
from typing import Any

from litestar import get, post, put

from trackbed.db import Tx
from trackbed.domain.scope import Permission, Scope
from trackbed.registry import service
from trackbed.server.app import App
from trackbed.server.flows import environments, reviewed
from trackbed.server.flows.register import register_by_hand
from trackbed.wire.data import AliasRequest, ModelVersionView, ModelView, RegisterRequest

READ = {"permission": Permission.READ}
WRITE = {"permission": Permission.WRITE}
MAINTAIN = {"permission": Permission.MAINTAIN}


@get("/api/v1/models", opt=READ)
async def list_all(trackbed_app: App, who: Scope, space: str = "") -> list[ModelView]:
    """All models, or those of one space, each with its newest version."""
    return await trackbed_app.db.aread(lambda tx: service.list_models(tx, who, space))


@get("/api/v1/models/{name:str}", opt=READ)
async def show(trackbed_app: App, who: Scope, name: str, space: str = "") -> ModelView:
    """One model with its aliases and all its versions, the newest first."""
    return await trackbed_app.db.aread(lambda tx: service.show(tx, who, name, space))


@post("/api/v1/models/{name:str}/versions", opt=WRITE)
async def register(data: RegisterRequest, trackbed_app: App, who: Scope, name: str) -> ModelVersionView:
    """Register an output of a run as the next version."""
    return await asyncio.to_thread(register_by_hand, trackbed_app, who, name, data.run, data.path)


@put("/api/v1/models/{name:str}/aliases/{alias:str}", opt=MAINTAIN)
async def set_alias(
    data: AliasRequest, trackbed_app: App, who: Scope, name: str, alias: str, space: str = ""
) -> ModelView:
    """Point an alias to a version, if it stands where the caller last saw it."""

    def work(tx: Tx) -> ModelView:
        view = reviewed.set_alias(tx, who, name, alias, data.version, expected=data.expected, space=space or "default")
        chosen = next((one for one in view.versions if one.version == data.version), None)
        if chosen is not None and chosen.run_id:
            view.warnings = environments.release_warnings(tx, chosen.run_id, alias)
        return view

    return await trackbed_app.db.awrite(work, actor=who.actor)


routes: list[Any] = [list_all, show, register, set_alias]
