"""Where an artifact path leads: to files of a run, of a logged model, or of a model version.

<project id>/<run id>/artifacts/…            files of a run
<project id>/models/<model id>/artifacts/…   files of a logged model
registry/<model id>/<version>/…              the tree of a model version; never changed
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from sqlalchemy import delete, select

from trackbed.base.errors import BadInput, NotFound
from trackbed.base.ids import Digest, FileDigest
from trackbed.db import ReadTx, Tx, scope_clause, upsert
from trackbed.domain.events import Event
from trackbed.domain.scope import ActorKind, Permission, Scope
from trackbed.formats.tree import show
from trackbed.registry.sql import version
from trackbed.server.mlflow import run_views
from trackbed.server.mlflow.codec import Document, some
from trackbed.server.mlflow.tables import logged_file, logged_model
from trackbed.storage import Store
from trackbed.tracking import artifacts

RUN, LOGGED, VERSION = "run", "logged", "version"
MOST_PATH = 2000


@dataclass(frozen=True)
class Place:
    """`owner` is a run, a logged model, or `mod_…/3`; `path` lies below it, empty for all of it."""

    kind: str
    owner: str
    path: str = ""


@dataclass(frozen=True)
class File:
    path: str
    size_bytes: int
    digest: FileDigest


@dataclass(frozen=True)
class Folder:
    """What is known of a place within a transaction: its files, or the digest of its tree."""

    files: list[File]
    tree: str = ""


def place_of(path: str) -> Place:
    """Read a path of the artifact proxy.

    Raises:
        BadInput: `mlflow_artifact_path`.
        NotFound: `mlflow_artifact_place`.
    """
    parts = path.strip("/").split("/") if path.strip("/") else []
    safe = path.isprintable() and "\\" not in path and len(path) <= MOST_PATH
    if not safe or any(part in ("", ".", "..") for part in parts):
        raise BadInput("mlflow_artifact_path", path=ascii(path)[:200])
    if len(parts) >= 3 and parts[0] == "registry":
        return Place(VERSION, "/".join(parts[1:3]), "/".join(parts[3:]))
    if len(parts) >= 4 and parts[1] == "models" and parts[3] == "artifacts":
        return Place(LOGGED, parts[2], "/".join(parts[4:]))
    if len(parts) >= 3 and parts[2] == "artifacts":
        return Place(RUN, parts[1], "/".join(parts[3:]))
    raise NotFound("mlflow_artifact_place", path=path[:200])


def place_of_uri(uri: str) -> Place | None:
    """Read a URI of ours: `runs:/…`, `models:/m-…`, `mlflow-artifacts:/…`; None for any other."""
    found = urlsplit(uri)
    path = unquote(found.path).strip("/")
    if found.scheme == "mlflow-artifacts" or "/mlflow-artifacts/artifacts/" in uri:
        return place_of(path.rpartition("mlflow-artifacts/artifacts/")[2])
    if found.scheme == "runs":
        run_id, _, inner = path.partition("/")
        return Place(RUN, run_id, place_of(f"p/{run_id}/artifacts/{inner}").path)
    if found.scheme == "models" and path.startswith("m-"):
        model_id, _, inner = path.partition("/")
        return Place(LOGGED, model_id, inner)
    return None


def folder_of(tx: ReadTx, scope: Scope, place: Place) -> Folder:
    """Return what lies at a place that the scope may read.

    Raises:
        NotFound: there is no such run or model in scope.
    """
    if place.kind == RUN:
        row = run_views.find(tx, scope, place.owner)
        found = artifacts.of_run(tx, row.id)
        return Folder([File(one.path, one.size_bytes, FileDigest(one.file_digest)) for one in found])
    if place.kind == LOGGED:
        model = find_logged(tx, scope, place.owner)
        rows = tx.rows(select(logged_file).where(logged_file.c.model_id == model.id).order_by(logged_file.c.path))
        return Folder([File(row.path, row.size_bytes, FileDigest(row.file_digest)) for row in rows])
    return Folder([], _version_row(tx, scope, place).digest)


def files_of(store: Store, folder: Folder) -> list[File]:
    """Return the files of a folder; reads the store where it is a tree."""
    if not folder.tree:
        return folder.files
    entries = store.read_listing(Digest(folder.tree))
    return [File(show(one.path), one.size, FileDigest(one.digest)) for one in entries if one.kind == "f"]


def _version_row(tx: ReadTx, scope: Scope, place: Place) -> Any:
    model_id, _, number = place.owner.partition("/")
    if number.isdigit() and len(number) < 18:
        this = (version.c.model_id == model_id, version.c.version == int(number))
        row = tx.one(select(version).where(*this, scope_clause(version, scope)))
        if row is not None:
            return row
    raise NotFound("mlflow_artifact_place", path=f"registry/{place.owner}"[:200])


def find_logged(tx: ReadTx, scope: Scope, model_id: str, permission: Permission = Permission.READ) -> Any:
    """Return the row of a logged model, deleted or not.

    Raises:
        NotFound: `mlflow_logged_model_unknown`, also behind a wall.
    """
    row = tx.one(select(logged_model).where(logged_model.c.id == model_id, scope_clause(logged_model, scope)))
    if row is None:
        raise NotFound("mlflow_logged_model_unknown", ref=model_id[:200])
    scope.require(permission, row.space_id, what=f"model {model_id}")
    if permission is Permission.WRITE and scope.actor.kind is ActorKind.ATTEMPT:
        run_views.writable(tx, scope, row.source_run_id)  # a job changes what it made, nothing else
    return row


def may_keep(tx: ReadTx, scope: Scope, place: Place) -> Any:
    """Return the row of the run or logged model where a file may be put or taken away.

    Raises:
        BadInput: `mlflow_artifact_fixed`, of a model version.
        NotFound, Denied: as the run or model says.
    """
    if place.kind == VERSION:
        raise BadInput("mlflow_artifact_fixed", path=f"registry/{place.owner}"[:200])
    if not place.path:
        raise BadInput("mlflow_artifact_path", path="-")
    if place.kind == RUN:
        return run_views.writable(tx, scope, place.owner)
    return find_logged(tx, scope, place.owner, Permission.WRITE)


def keep(tx: Tx, scope: Scope, place: Place, digest: FileDigest, size: int) -> None:
    """Record a file that is in the store."""
    row = may_keep(tx, scope, place)
    if place.kind == RUN:
        artifacts.record(tx, row, row.attempt, [artifacts.Kept(place.path, "other", size, digest)])
        _tell(tx, "artifact.uploaded", row, row.id, place)
        return
    values = {
        "model_id": row.id, "path": place.path, "size_bytes": size, "file_digest": digest, "created_us": tx.now_us,
    }  # fmt: skip
    update = ["size_bytes", "file_digest", "created_us"]
    tx.execute(upsert(logged_file, values, key=["model_id", "path"], update=update))
    _tell(tx, "artifact.uploaded", row, row.source_run_id, place)


def forget(tx: Tx, scope: Scope, place: Place) -> None:
    """Take a file or a folder off the record.

    Raises:
        NotFound: `mlflow_artifact_unknown`.
    """
    row = may_keep(tx, scope, place)
    if place.kind == RUN:
        gone, run_id = artifacts.forget(tx, row.id, place.path), row.id
    else:
        below = logged_file.c.path.startswith(place.path + "/", autoescape=True)
        this = (logged_file.c.model_id == row.id, (logged_file.c.path == place.path) | below)
        gone, run_id = tx.execute(delete(logged_file).where(*this)).rowcount, row.source_run_id
    if not gone:
        raise NotFound("mlflow_artifact_unknown", path=place.path[:200])
    _tell(tx, "artifact.deleted", row, run_id, place)


def _tell(tx: Tx, kind: str, row: Any, run_id: str, place: Place) -> None:
    tx.emit(Event(kind, row.id, row.space_id, run_id, data={"path": place.path[:500]}))


def children(files: list[File], folder: str, *, whole_paths: bool) -> list[Document]:
    """Return what lies directly in a folder, as MLflow lists it; nothing for a file."""
    prefix = f"{folder}/" if folder else ""
    found: dict[str, Document] = {}
    for one in files:
        if not one.path.startswith(prefix):
            continue
        name, below, _ = one.path[len(prefix) :].partition("/")
        path = prefix + name if whole_paths else name
        size = None if below else one.size_bytes
        found.setdefault(name, some(path=path, is_dir=bool(below), file_size=size))
    return [found[name] for name in sorted(found)]


def has(files: list[File], path: str) -> bool:
    return any(one.path == path for one in files)
