"""Artifacts by MLflow's proxy, inside a job: those of the job's run are files below its output, kept without the server.

<experiment>/<the job's run>/artifacts/a/b.txt   →   $TRACKBED_OUTPUT/a/b.txt
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from trackbed.base.errors import BadInput, NotFound, StorageFull
from trackbed.supervisor.outputs import kind_of
from trackbed.supervisor.relay_told import Spooler
from trackbed.wire.mlflow import Document, some

ROOTS = ("/api/2.0/mlflow-artifacts/artifacts", "/ajax-api/2.0/mlflow-artifacts/artifacts")
MOST_PATH = 2000
_BLOCK = 2**20
_LOOKED_AT = 4096
Store = Callable[[Path], tuple[str, int]]  # puts a file into the store; digest and size


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Files:
    """Files of the job's own run lie in `output`; those of its child runs go into the store at once."""

    def __init__(self, own: str, output: Path, scratch: Path, spooler: Spooler, store: Store) -> None:
        self._own, self._output, self._scratch, self._spooler, self._store = own, output, scratch, spooler, store

    def place(self, proxied: str) -> tuple[str, str] | None:
        """Return run and path of what lies at `<experiment>/<run>/artifacts/<path>`; None for any other place.

        Raises:
            BadInput: `mlflow_artifact_path`.
        """
        parts = proxied.strip("/").split("/") if proxied.strip("/") else []
        safe = proxied.isprintable() and "\\" not in proxied and len(proxied) <= MOST_PATH
        if not safe or any(part in ("", ".", "..") for part in parts):
            raise BadInput("mlflow_artifact_path", path=ascii(proxied)[:200])
        if len(parts) >= 3 and parts[2] == "artifacts" and parts[0] != "registry":
            return parts[1], "/".join(parts[3:])
        return None

    def put(self, run: str, path: str, body: Readable) -> None:
        """Keep a file of any size as it streams in; it appears whole or not at all.

        Raises:
            StorageFull: `relay_output_unwritable`.
            BadInput: `mlflow_artifact_path`: something else lies there.
        """
        part = self._scratch / f".relay-{os.getpid()}-{os.urandom(8).hex()}.part"
        start = b""
        try:
            with part.open("wb") as file:
                while block := body.read(_BLOCK):
                    start = start or block[:_LOOKED_AT]
                    file.write(block)
            if run == self._own:
                self._move(part, path)
                self._spooler.file(run, {"path": path, "kind": kind_of(path, start)})
                return
            digest, size = self._store(part)
            self._spooler.file(run, {"path": path, "kind": kind_of(path, start), "digest": digest, "size": size})
        except OSError as fault:
            raise StorageFull("relay_output_unwritable", path=path[:200], what=fault.strerror or str(fault)) from None
        finally:
            part.unlink(missing_ok=True)

    def _move(self, part: Path, path: str) -> None:
        place = self._output / path
        if not _inside(place, self._output) or place.is_dir():
            raise BadInput("mlflow_artifact_path", path=path[:200])
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise BadInput("mlflow_artifact_path", path=path[:200]) from None
        part.replace(place)

    def local(self, path: str) -> Path | None:
        """Return a file of the own run that lies here."""
        place = self._output / path
        return place if path and place.is_file() and _inside(place, self._output) else None

    def listed(self, folder: str, *, whole_paths: bool) -> list[Document]:
        """Return what lies directly in a folder here, as MLflow lists it."""
        place = self._output / folder
        if not place.is_dir() or not _inside(place, self._output):
            return []
        found: list[Document] = []
        for entry in sorted(place.iterdir()):
            if _inside(entry, self._output) and (entry.is_dir() or entry.is_file()):
                path = f"{folder}/{entry.name}" if folder and whole_paths else entry.name
                size = None if entry.is_dir() else entry.stat().st_size
                found.append(some(path=path, is_dir=entry.is_dir(), file_size=size))
        return found

    def remove(self, path: str) -> None:
        """Take away a file of the own run that lies here; the server is told by whoever calls.

        Raises:
            NotFound: `mlflow_artifact_unknown`.
        """
        place = self.local(path)
        if place is None:
            raise NotFound("mlflow_artifact_unknown", path=path[:200])
        place.unlink()


def merged(here: list[Document], there: list[Document]) -> list[Document]:
    """Return what lies here or on the server, by path; what lies here is newer."""
    found = {one["path"]: one for one in there} | {one["path"]: one for one in here}
    return [found[path] for path in sorted(found)]


def _inside(path: Path, root: Path) -> bool:
    return path.resolve().is_relative_to(root.resolve())
