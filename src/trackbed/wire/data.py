"""Datasets, trees, models, blobs."""

from typing import Any, Literal

import msgspec

from trackbed.wire.runs import Reason


class ListingEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One entry of a tree. `path` is text where the bytes are UTF-8, else `path_hex` holds the bytes."""

    path: str = ""
    path_hex: str = ""
    type: Literal["file", "dir", "link"] = "file"
    executable: bool = False
    size_bytes: int = 0
    file_digest: str = ""
    target: str = ""  # of a link


class TreeView(msgspec.Struct, kw_only=True, omit_defaults=True):
    digest: str
    files: int
    size_bytes: int
    entries: list[ListingEntry] = []
    next: str = ""


class CommitTree(msgspec.Struct, kw_only=True):
    """Body of `PUT /api/v1/trees/{digest}`: the canonical listing (formats.tree), base64; its blobs are already there."""

    listing: bytes


class HasRequest(msgspec.Struct, kw_only=True):
    file_digests: list[str]


class HasReply(msgspec.Struct, kw_only=True):
    missing: list[str]


class DatasetCommit(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Make the next version of a dataset from a tree in the store. An unchanged tree gives the version there is."""

    digest: str
    kind: Literal["folder", "file"] = "folder"
    message: str = ""
    space: str = "default"


class DatasetVersionView(msgspec.Struct, kw_only=True, omit_defaults=True):
    dataset: str
    version: int
    digest: str
    kind: str = "folder"
    files: int = 0
    size_bytes: int = 0
    message: str = ""
    created_us: int = 0
    created_by: str = ""
    space: str = "default"
    unchanged: bool = False  # answer to a commit that made nothing new


class DatasetView(msgspec.Struct, kw_only=True, omit_defaults=True):
    name: str
    space: str
    latest: int
    versions: list[DatasetVersionView] = []


class ModelVersionView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Immutable. `provenance`: run, attempt, checkpoint, tree, environment, data, seed, metrics at registration."""

    model: str
    version: int
    digest: str
    size_bytes: int = 0
    space: str = "default"
    run_id: str = ""
    run_ref: str = ""
    aliases: list[str] = []
    created_us: int = 0
    created_by: str = ""
    provenance: dict[str, Any] = {}
    warnings: list[Reason] = []  # of the answer to a registration: what to look at before a release


class ModelView(msgspec.Struct, kw_only=True, omit_defaults=True):
    name: str
    space: str
    latest: int
    aliases: dict[str, int] = {}
    versions: list[ModelVersionView] = []
    warnings: list[Reason] = []  # of the answer to a moved alias


class RegisterRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Register an output of a run by hand."""

    run: str
    path: str = "model"


class AliasRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Point an alias to `version`. `expected`: where the caller saw it last; null if it is not there yet."""

    version: int
    expected: int | None = None


class LineageEdge(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`kind`: used | made | from | reproduces | registered. Ends are `run:…`, `data:name@3`, `model:name@1`, `tree:b3:…`."""

    source: str
    target: str
    kind: str


class LineageView(msgspec.Struct, kw_only=True, omit_defaults=True):
    root: str
    nodes: dict[str, dict[str, Any]] = {}  # end → {label, digest, created_us, state}
    edges: list[LineageEdge] = []
