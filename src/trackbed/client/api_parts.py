"""The parts of a `Client`: data, models, the pool, people."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from blake3 import blake3

from trackbed.base.entropy import new_id
from trackbed.base.errors import BadInput, Damaged, NotFound
from trackbed.base.home import home
from trackbed.client.connection import Connection, encode, part
from trackbed.client.pull import pull
from trackbed.client.push import Progress, push
from trackbed.domain.names import name_of
from trackbed.formats.tree import Entry, show
from trackbed.storage.scan import Scan, scan
from trackbed.storage.seen import Seen
from trackbed.wire.access import (
    NamingRequest,
    NamingView,
    PersonRequest,
    PersonView,
    ProjectView,
    RoleRequest,
    SpaceRequest,
    SpaceView,
    TokenRequest,
    TokenView,
)
from trackbed.wire.data import (
    DatasetCommit,
    DatasetVersionView,
    DatasetView,
    ModelVersionView,
    ModelView,
    RegisterRequest,
)
from trackbed.wire.runs import ArtifactView, CheckpointView, NodeView, QueueEntry, RunDetail
from trackbed.wire.store import CollectReply, CollectRequest, StoreSettings, StoreView, VerifyReply, VerifyRequest
from trackbed.wire.templates import TemplateRequest, TemplateVersionView, TemplateView

_PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib", ".bin")


_LONG_S = 24 * 3600.0  # of verbs that read the whole store


class Data:
    """Datasets, and files of runs."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self, space: str = "") -> list[DatasetView]:
        return self._connection.get("/api/v1/datasets", list[DatasetView], {"space": space})

    def show(self, name: str, space: str = "") -> DatasetView:
        return self._connection.get(f"/api/v1/datasets/{part(name)}", DatasetView, {"space": space})

    def resolve(self, ref: str) -> DatasetVersionView:
        """`name@latest` → the version there is."""
        name = ref.rpartition("/")[2].partition("@")[0]
        return self._connection.get(f"/api/v1/datasets/{part(name)}/resolve", DatasetVersionView, {"ref": ref})

    def add(
        self, name: str, path: Path | str, *, message: str = "", space: str = "default",
        keep: Callable[[str], bool] | None = None, on_progress: Progress | None = None,
    ) -> DatasetVersionView:  # fmt: skip
        """Make the next version of a dataset from a folder or file; unchanged, it is the version there is.

        Bytes that the store has are not sent again; files that have not changed since the last time are not even read.
        `keep` is asked with each relative path (folders end with `/`).
        """
        _checked(name, "dataset_name_bad")  # before anything is read or sent
        place = Path(path)
        found = scan(place, keep=keep, seen=Seen(home() / "client" / "seen", place))
        return self.commit(
            name,
            found,
            kind="file" if place.is_file() else "folder",
            message=message,
            space=space,
            on_progress=on_progress,
        )

    def commit(
        self, name: str, found: Scan, *, kind: Any = "folder", message: str = "", space: str = "default",
        on_progress: Progress | None = None,
    ) -> DatasetVersionView:  # fmt: skip
        """Make a version from a folder that was scanned before."""
        _checked(name, "dataset_name_bad")
        digest = push(self._connection, found, space=space, on_progress=on_progress)
        body = DatasetCommit(digest=digest, kind=kind, message=message, space=space)
        return self._connection.post(
            f"/api/v1/datasets/{part(name)}/versions", DatasetVersionView, body, key=new_id("idm")
        )

    def pull(
        self, ref: str, target: Path | str, *, paths: Sequence[str] = (), bytes_per_s: float | None = None,
        on_progress: Progress | None = None,
    ) -> DatasetVersionView:  # fmt: skip
        """Write a version, or what lies at or below `paths` of it, into an empty folder, verified; resumed after a break."""
        version = self.resolve(ref)
        pull(
            self._connection, version.digest, Path(target), paths=paths, bytes_per_s=bytes_per_s,
            on_progress=on_progress,
        )  # fmt: skip
        return version

    def download_artifact(self, run: str, path: str, target: Path, artifacts: list[ArtifactView]) -> Path:
        """Write one artifact, verified against the digest on the record."""
        found = next((one for one in artifacts if one.path == path), None)
        if found is None:
            raise NotFound("artifact_unknown_here", path=path, run=run)
        place = target / Path(path).name if target.is_dir() else target
        place.parent.mkdir(parents=True, exist_ok=True)
        aside = place.with_name(f".{place.name}.{os.getpid()}.part")
        hasher = blake3()
        try:
            with (
                self._connection.stream(
                    f"/api/v1/runs/{part(run)}/artifacts/content", query={"path": path, "download": True}
                ) as answer,
                aside.open("wb") as file,
            ):
                for chunk in answer.iter_bytes(1 << 20):
                    hasher.update(chunk)
                    file.write(chunk)
            if found.file_digest and hasher.hexdigest() != found.file_digest:
                raise Damaged("file_damaged", path=path, digest=found.file_digest)
            aside.replace(place)
        finally:
            aside.unlink(missing_ok=True)
        return place

    def pull_checkpoint(self, detail: RunDetail, target: Path | str, *, step: int | None = None) -> CheckpointView:
        """Write a checkpoint of a run (the current one, or that of a step) into an empty folder."""
        known = [one for one in detail.checkpoints if one.digest]
        wanted = [one for one in known if one.step == step] if step is not None else known
        if not wanted:
            raise NotFound(
                "checkpoint_unknown_here", run=detail.run.ref, known=", ".join(str(one.step) for one in known) or "-"
            )
        chosen = max(wanted, key=lambda one: (one.state == "current", one.step))
        pull(self._connection, chosen.digest, Path(target))
        return chosen


class Templates:
    """Templates of specs."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self, space: str = "") -> list[TemplateView]:
        return self._connection.get("/api/v1/templates", list[TemplateView], {"space": space})

    def show(self, name: str, space: str = "") -> TemplateView:
        return self._connection.get(f"/api/v1/templates/{part(name)}", TemplateView, {"space": space})

    def resolve(self, ref: str) -> TemplateVersionView:
        """`pretrain@2`, `pretrain` (the newest), `space/pretrain@2` → the version there is."""
        name = ref.rpartition("/")[2].partition("@")[0]
        return self._connection.get(f"/api/v1/templates/{part(name)}/resolve", TemplateVersionView, {"ref": ref})

    def add(self, file: Path | str, *, space: str = "default", expected: int | None = None) -> TemplateVersionView:
        """Add the next version of a template from a file (or its text); unchanged, it is the version there is.

        Raises:
            BadInput: `template_wrong` with every fault by field and line.
            Conflict: `template_moved`: `expected` is not the newest version.
        """
        text = file.read_text(encoding="utf-8") if isinstance(file, Path) else file
        body = TemplateRequest(text=text, space=space, expected=expected)
        return self._connection.post("/api/v1/templates", TemplateVersionView, body, key=new_id("idm"))


class Models:
    """The registry."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self) -> list[ModelView]:
        return self._connection.get("/api/v1/models", list[ModelView])

    def show(self, name: str) -> ModelView:
        return self._connection.get(f"/api/v1/models/{part(name)}", ModelView)

    def resolve(self, ref: str) -> ModelVersionView:
        """`name@1`, `name@latest`, `name@ALIAS` → the version.

        Raises:
            NotFound: `model_version_unknown_here`.
        """
        name, _, which = ref.rpartition("/")[2].partition("@")
        model = self.show(name)
        number = (
            model.latest if which in ("", "latest") else int(which) if which.isdigit() else model.aliases.get(which, 0)
        )
        found = next(
            (
                one
                for one in model.versions
                if one.version == number or (which.startswith("b3:") and one.digest == which)
            ),
            None,
        )
        if found is None:
            known = ", ".join([str(one.version) for one in model.versions] + sorted(model.aliases)) or "-"
            raise NotFound("model_version_unknown_here", ref=ref, known=known)
        return found

    def register(self, name: str, run: str, *, path: str = "model") -> ModelVersionView:
        _checked(name, "model_name_bad")
        return self._connection.post(
            f"/api/v1/models/{part(name)}/versions",
            ModelVersionView,
            RegisterRequest(run=run, path=path),
            key=new_id("idm"),
        )

    def alias(self, name: str, alias: str, version: int, *, expected: int | None = None) -> ModelView:
        """Point an alias to a version; with `expected`, only if it points there now."""
        return self._connection.put(
            f"/api/v1/models/{part(name)}/aliases/{part(alias)}", ModelView, {"version": version, "expected": expected}
        )

    def pull(
        self, ref: str, target: Path | str, *, trust: bool = False, on_progress: Progress | None = None
    ) -> ModelVersionView:
        """Write a model version into an empty folder, verified.

        Raises:
            BadInput: `model_can_run_code`: it holds files of formats that run code when they are loaded, without `trust`.
        """
        version = self.resolve(ref)

        def check(entries: list[Entry]) -> None:
            risky = [show(entry.path) for entry in entries if show(entry.path).lower().endswith(_PICKLES)]
            if risky and not trust:
                raise BadInput("model_can_run_code", ref=ref, files=", ".join(risky[:5]))

        pull(self._connection, version.digest, Path(target), check=check, on_progress=on_progress)
        return version


def _checked(name: str, code: str) -> None:
    if name_of(name) is None:
        raise BadInput(code, name=name[:120])


class Pool:
    """Cards and who waits for them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def nodes(self) -> list[NodeView]:
        return self._connection.get("/api/v1/nodes", list[NodeView])

    def queue(self) -> list[QueueEntry]:
        return self._connection.get("/api/v1/queue", list[QueueEntry])

    def store(self) -> StoreView:
        """Where the store is, how full, and what looking after it did last."""
        return self._connection.get("/api/v1/store", StoreView)

    def set_store(self, settings: StoreSettings) -> StoreSettings:
        """Change how the server looks after its store."""
        answer = self._connection.send("PUT", "/api/v1/store/settings", content=encode(settings))
        return self._connection.decode(answer, StoreSettings)

    def verify_store(self, request: VerifyRequest) -> VerifyReply:
        """Have the server read its store through; takes as long as the store is large."""
        answer = self._connection.send("POST", "/api/v1/store/verify", content=encode(request), timeout_s=_LONG_S)
        return self._connection.decode(answer, VerifyReply)

    def collect_store(self, request: CollectRequest) -> CollectReply:
        """Have the server collect what nothing names."""
        answer = self._connection.send("POST", "/api/v1/store/gc", content=encode(request), timeout_s=_LONG_S)
        return self._connection.decode(answer, CollectReply)


class People:
    """Accounts, tokens, spaces, projects."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def tokens(self) -> list[TokenView]:
        return self._connection.get("/api/v1/tokens", list[TokenView])

    def create_token(self, label: str = "", *, expires_s: float | None = None, person: str = "") -> TokenView:
        return self._connection.post(
            "/api/v1/tokens", TokenView, TokenRequest(label=label, expires_s=expires_s, person=person)
        )

    def revoke_token(self, token_id: str) -> None:
        self._connection.delete(f"/api/v1/tokens/{part(token_id)}")

    def people(self) -> list[PersonView]:
        return self._connection.get("/api/v1/people", list[PersonView])

    def add_person(self, name: str, *, admin: bool = False) -> PersonView:
        return self._connection.post("/api/v1/people", PersonView, PersonRequest(name=name, admin=admin))

    def login_link(self, name: str) -> PersonView:
        return self._connection.post(f"/api/v1/people/{part(name)}/login-link", PersonView)

    def spaces(self) -> list[SpaceView]:
        return self._connection.get("/api/v1/spaces", list[SpaceView])

    def add_space(self, name: str, *, accept_one_trust_domain: bool = False) -> SpaceView:
        return self._connection.post(
            "/api/v1/spaces", SpaceView, SpaceRequest(name=name, accept_one_trust_domain=accept_one_trust_domain)
        )

    def set_role(self, space: str, person: str, role: str) -> SpaceView:
        return self._connection.put(
            f"/api/v1/spaces/{part(space)}/members", SpaceView, RoleRequest(person=person, role=role)
        )

    def projects(self) -> list[ProjectView]:
        return self._connection.get("/api/v1/projects", list[ProjectView])

    def set_naming(
        self, project: str, *, name: str = "", tags: Sequence[str] = (), space: str = "default", expected: int | None = None
    ) -> NamingView:  # fmt: skip
        """Say what names and tags of a project's runs must look like; both empty takes the rule away."""
        request = NamingRequest(space=space, name=name, tags=list(tags), expected=expected)
        return self._connection.put(f"/api/v1/projects/{part(project)}/naming", NamingView, request)
