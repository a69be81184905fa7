"""What lies in TRACKBED_OUTPUT at the end: typed, archived, and the products of a stage beside it."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from trackbed.base.errors import BadInput
from trackbed.formats.tree import link_leaves, show
from trackbed.storage.store import Store, TreeInfo
from trackbed.wire.attempts import Assignment, OutputEntry, OutputsReport

_BY_SUFFIX = {
    ".safetensors": "model", ".pt": "model", ".pth": "model", ".onnx": "model", ".gguf": "model", ".bin": "model",
    ".ckpt": "checkpoint", ".html": "report", ".htm": "report", ".md": "report", ".pdf": "report", ".log": "log",
    ".csv": "table", ".tsv": "table", ".parquet": "table", ".jsonl": "table", ".arrow": "table",
    ".png": "image", ".jpg": "image", ".jpeg": "image", ".gif": "image", ".webp": "image", ".svg": "image",
}  # fmt: skip
_BY_START = (
    (b"\x89PNG\r\n\x1a\n", "image"),
    (b"\xff\xd8\xff", "image"),
    (b"GIF8", "image"),
    (b"%PDF-", "report"),
    (b"PAR1", "table"),
)
_LOOKED_AT = 4096


def kind_of(path: str, start: bytes) -> str:
    """Return what a file is by its place, name and first bytes (`wire.runs.ArtifactView.kind`)."""
    pure = PurePosixPath(path)
    parts, name, suffix = [part.lower() for part in pure.parts], pure.name.lower(), pure.suffix.lower()
    if parts[0] in ("model", "models"):
        return "model"
    if any(part.startswith("checkpoint") for part in parts):
        return "checkpoint"
    if "sample" in name or parts[0] in ("sample", "samples"):
        return "sample"
    if "report" in name:
        return "report"
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    for mark, kind in _BY_START:
        if start.startswith(mark):
            return kind
    return "text" if start and _is_text(start) else "other"


def _is_text(start: bytes) -> bool:
    if b"\0" in start:
        return False
    try:
        start.decode("utf-8")
    except UnicodeDecodeError as fault:
        return fault.start >= len(start) - 3 and len(start) == _LOOKED_AT  # cut inside a character
    return True


class Missing(Exception):
    """A stage did not leave what it promised."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(", ".join(names))
        self.names = names


def archive(
    store: Store,
    assignment: Assignment,
    *,
    output: Path,
    work: Path,
    scratch: Path,
    kinds: Mapping[str, str],
    products: bool,
) -> tuple[OutputsReport, list[str]]:
    """Put everything into the store and return the report, with what could not be kept (sockets, links that lead out).

    Raises:
        Missing: `products` was asked and one is not there.
        TrackbedError, OSError: of the store.
    """
    info, left_out = _keep(store, output, scratch)
    entries = [
        OutputEntry(
            path=path, size_bytes=entry.size, file_digest=entry.digest,
            kind=kinds.get(path) or kind_of(path, _start(output / os.fsdecode(entry.path))),
        )
        for entry in store.read_listing(info.digest)
        if entry.kind == "f"
        for path in [show(entry.path)]
    ]  # fmt: skip
    found: dict[str, str] = {}
    if products and assignment.stage is not None:
        missing: list[str] = []
        for name, place in assignment.stage.produces.items():
            path = _inside(output, place) or _inside(work, place)
            if path is None:
                missing.append(name)
                continue
            kept, lost = _keep(store, path, scratch)
            found[name] = kept.digest
            left_out += [f"{place}/{item}" for item in lost]
        if missing:
            raise Missing(missing)
    return OutputsReport(epoch=assignment.epoch, digest=info.digest, entries=entries, products=found), left_out


def _keep(store: Store, path: Path, scratch: Path) -> tuple[TreeInfo, list[str]]:
    try:
        return store.put_tree(path), []
    except BadInput:
        if not path.is_dir():
            raise
    aside = scratch / f".kept-{path.name}"
    shutil.rmtree(aside, ignore_errors=True)
    left_out = _copy_plain(path, aside)
    return store.put_tree(aside), left_out


def _copy_plain(root: Path, aside: Path) -> list[str]:
    """Link plain files and inner links into `aside`; return the names of everything else."""
    left_out: list[str] = []
    links: dict[bytes, bytes] = {}

    def inside(path: Path) -> bytes:
        return os.fsencode(path.relative_to(root))

    for folder, folders, names in os.walk(
        root, onerror=lambda fault: left_out.append(show(inside(Path(fault.filename))))
    ):
        here = Path(folder)
        target = aside / here.relative_to(root)
        target.mkdir(parents=True, exist_ok=True)
        for path in [here / name for name in (*folders, *names)]:
            if path.is_symlink():
                links[inside(path)] = os.fsencode(path.readlink())
            elif path.name in folders:
                continue
            elif path.is_file() and os.access(path, os.R_OK):
                os.link(path, target / path.name)
            else:
                left_out.append(show(inside(path)))
    for place, leads_to in links.items():
        if link_leaves(place, links):
            left_out.append(show(place))
        else:
            (aside / os.fsdecode(place)).symlink_to(os.fsdecode(leads_to))
    return left_out


def _inside(root: Path, place: str) -> Path | None:
    path = root / place
    return path if path.exists() and path.resolve().is_relative_to(root.resolve()) else None


def _start(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_LOOKED_AT)
    except OSError:
        return b""
