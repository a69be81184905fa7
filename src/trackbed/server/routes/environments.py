"""Environments: locks with their packs, names, what differs between two."""

from typing import Any

from litestar import get, put

from trackbed.db import ReadTx
from trackbed.domain.scope import Permission, Scope
from trackbed.server.app import App
from trackbed.server.flows import environments
from trackbed.sources import names_sql
from trackbed.sources.compare import compare
from trackbed.wire.environments import EnvironmentDiff, EnvironmentFacts, EnvironmentName, EnvironmentView, NameRequest

READ = {"permission": Permission.READ}
MAINTAIN = {"permission": Permission.MAINTAIN}


@get("/api/v1/environments", opt=READ, name="list_environments", operation_id="list_environments")
async def list_all(trackbed_app: App, who: Scope) -> list[EnvironmentView]:
    """The environments of runs and names that may be read, the newest first."""
    return await trackbed_app.db.aread(lambda tx: environments.list_all(tx, who))


@get("/api/v1/environments/diff", opt=READ, name="diff_environments", operation_id="diff_environments")
async def diff(trackbed_app: App, who: Scope, before: str, after: str, space: str = "default") -> EnvironmentDiff:
    """What differs between the environments of two runs, names or digests, with where they ran."""

    def read(tx: ReadTx) -> EnvironmentDiff:
        return compare(environments.facts(tx, who, before, space), environments.facts(tx, who, after, space))

    return await trackbed_app.db.aread(read)


@get("/api/v1/environments/facts", opt=READ, name="show_environment_facts", operation_id="show_environment_facts")
async def facts(trackbed_app: App, who: Scope, ref: str, space: str = "default") -> EnvironmentFacts:
    """The environment of a run, a name or a digest, and what was found where it ran."""
    return await trackbed_app.db.aread(lambda tx: environments.facts(tx, who, ref, space))


@get("/api/v1/environments/names", opt=READ, name="list_environment_names", operation_id="list_environment_names")
async def names(trackbed_app: App, who: Scope) -> list[EnvironmentName]:
    """All names of the spaces that may be read."""
    return await trackbed_app.db.aread(lambda tx: names_sql.all_of(tx, who))


@put("/api/v1/environments/names/{name:str}", opt=MAINTAIN, name="name_environment", operation_id="name_environment")
async def set_name(trackbed_app: App, who: Scope, name: str, data: NameRequest) -> EnvironmentName:
    """Point a name to the environment of a run, or to a record; with `expected`, only if nobody moved it since."""
    return await trackbed_app.db.awrite(lambda tx: environments.name(tx, who, name, data), actor=who.actor)


@get("/api/v1/environments/{digest:str}", opt=READ, name="show_environment", operation_id="show_environment")
async def show(trackbed_app: App, who: Scope, digest: str) -> EnvironmentView:
    """One environment with its record, its packs and the end of their builds' logs; a unique beginning of the digest is enough."""
    return await trackbed_app.db.aread(lambda tx: environments.show(tx, who, digest))


routes: list[Any] = [list_all, diff, facts, names, set_name, show]
