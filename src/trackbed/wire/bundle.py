"""Runs as they travel in a bundle, and what an import says of them. Texts ending in `_json` are stored as they stand."""

from typing import Any

import msgspec


class AttemptRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    number: int
    cause: str = ""
    stage: str = ""
    evidence_json: str = "{}"
    placement_json: str = "[]"
    cards: int = 0
    node: str = ""
    created_us: int = 0
    started_us: int = 0
    ended_us: int = 0
    card_seconds: float = 0.0
    resumed_from_step: int | None = None
    last_step: int | None = None


class FileRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    path: str
    kind: str = "other"
    size_bytes: int = 0
    file_digest: str
    attempt: int = 0
    created_us: int = 0


class RunRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`run.json` of a bundle."""

    id: str
    ref: str
    space: str
    project: str
    name: str = ""
    description: str = ""
    owner: str = ""
    state: str
    cause: str = ""
    reason_json: str = ""
    tags: list[str] = []
    spec_json: str = "{}"
    tree_json: str = ""
    tree_digest: str = ""
    environment_json: str = ""
    environment_digest: str = ""
    nondeterminism_json: str = "[]"
    summary_json: str = "{}"
    params: dict[str, str] = {}  # name → JSON, non-finite floats as {"$float": …}
    definitions: dict[str, dict[str, Any]] = {}  # metric → what it means
    attempts: list[AttemptRecord] = []
    files: list[FileRecord] = []
    checkpoints: list[dict[str, Any]] = []  # what was saved; the bytes stay where they are
    mlflow_tags: dict[str, str] = {}
    origin: dict[str, str] = {}  # of a run that had been imported itself
    created_us: int = 0
    queued_us: int = 0
    started_us: int = 0
    ended_us: int = 0
    card_seconds: float = 0.0
    step: int = 0
    points: int = 0
    lines: int = 0


class OriginView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Where a foreign record came from: it was imported, not made here."""

    installation: str
    id: str
    ref: str
    owner: str = ""
    bundle: str = ""  # digest
    imported_us: int = 0
    imported_by: str = ""


class ImportedRun(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`known`: this bundle's record was here already, and nothing was changed."""

    id: str
    ref: str
    original_id: str
    original_ref: str
    points: int = 0
    lines: int = 0
    files: int = 0
    known: bool = False


class ImportReply(msgspec.Struct, kw_only=True, omit_defaults=True):
    bundle: str  # digest
    installation: str
    runs: list[ImportedRun] = []
