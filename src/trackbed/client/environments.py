"""The parts of a `Client` for what surrounds code: environments, health of nodes, documents of trees."""

import sys
from pathlib import Path

from trackbed.base.errors import BadInput, NotFound
from trackbed.client.connection import Connection, part
from trackbed.sources.compare import compare
from trackbed.sources.environment import record_current
from trackbed.sources.locking import lock_of, record_of_lock
from trackbed.sources.surroundings import around
from trackbed.wire.docs import Document, DocumentView
from trackbed.wire.doctor import NodeCheck
from trackbed.wire.environments import (
    EnvironmentDiff,
    EnvironmentFacts,
    EnvironmentName,
    EnvironmentView,
    NameRequest,
)

HERE = "here"


class Environments:
    """Locks with their packs, names, differences. `here` is the interpreter of this process; a path is a lock."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self) -> list[EnvironmentView]:
        return self._connection.get("/api/v1/environments", list[EnvironmentView])

    def show(self, digest: str) -> EnvironmentView:
        """Return an environment with its packs; a unique beginning of the digest is enough."""
        return self._connection.get(f"/api/v1/environments/{part(digest)}", EnvironmentView)

    def names(self) -> list[EnvironmentName]:
        return self._connection.get("/api/v1/environments/names", list[EnvironmentName])

    def facts(self, ref: str, *, space: str = "default") -> EnvironmentFacts:
        """Return what is known of `here`, a lock file, a run, a name or a digest.

        Raises:
            NotFound: `environment_ref_unknown`.
        """
        local = facts_here(ref)
        return local or self._connection.get(
            "/api/v1/environments/facts", EnvironmentFacts, {"ref": ref, "space": space}
        )

    def diff(self, before: str, after: str = HERE, *, space: str = "default") -> EnvironmentDiff:
        """Return what differs between two of them, and of which areas one side tells nothing."""
        return compare(self.facts(before, space=space), self.facts(after, space=space))

    def name(
        self, name: str, ref: str = HERE, *, space: str = "default", expected: int | None = None
    ) -> EnvironmentName:
        """Point a name to the environment of a run, a lock file, a digest or `here`.

        Raises:
            Conflict: `environment_name_moved`: somebody moved it since `expected` was read.
        """
        local = facts_here(ref)
        if local is None and ref.startswith("b3:"):
            local = self.facts(ref, space=space)
        body = NameRequest(run="" if local else ref, space=space, expected=expected)
        if local:
            body.environment, body.surroundings = local.environment, local.surroundings
        return self._connection.put(f"/api/v1/environments/names/{part(name)}", EnvironmentName, body)


class Doctor:
    """Health of nodes."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def newest(self) -> list[NodeCheck]:
        """Return the last look of every check at every node."""
        return self._connection.get("/api/v1/doctor", list[NodeCheck])

    def history(self, *, node: str = "", check: str = "", since_us: int = 0, limit: int = 500) -> list[NodeCheck]:
        """Return looks of the last 14 days, the newest first."""
        query = {"node": node, "check": check, "since_us": since_us, "limit": limit}
        return self._connection.get("/api/v1/doctor/history", list[NodeCheck], query)

    def look(self) -> list[NodeCheck]:
        """Look at the server's node now. Needs the right to maintain."""
        return self._connection.post("/api/v1/doctor", list[NodeCheck])


class Docs:
    """Documents of the tree of a run."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self, run: str) -> list[Document]:
        return self._connection.get(f"/api/v1/runs/{part(run)}/docs", list[Document])

    def show(self, run: str, path: str = "") -> DocumentView:
        """Return one document as it was captured; without a path, the first README."""
        return self._connection.get(f"/api/v1/runs/{part(run)}/docs/content", DocumentView, {"path": path})


def facts_here(ref: str) -> EnvironmentFacts | None:
    """Return the facts of `here` or of a lock file; None for what only the server knows."""
    if ref == HERE:
        return EnvironmentFacts(label=HERE, environment=record_current(sys.executable), surroundings=around())
    path = Path(ref)
    if path.suffix not in (".lock", ".txt") or "#" in ref:
        return None
    try:
        return EnvironmentFacts(label=path.name, environment=record_of_lock(lock_of(path)))
    except NotFound as fault:
        raise BadInput("lock_source_missing", path=ref) from fault
