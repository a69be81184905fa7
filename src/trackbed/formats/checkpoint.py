"""The manifest of a checkpoint: which parts it has, and what run of numbers it continues. Page: `docs/formats/checkpoint.md`.

A checkpoint is a folder `step-<n>` with one part a rank and `manifest.json`. It exists once the folder was renamed to that
name; until then it is `.staged-<n>`. Whoever reads it trusts a part only after its digest matched.
"""

import os
import re
from pathlib import Path
from typing import Any

import msgspec
from blake3 import blake3

from trackbed.base.errors import Damaged, NotYet

FORMAT = "trackbed.checkpoint"
VERSION = 1
MANIFEST = "manifest.json"
_NAME = re.compile(r"step-(\d+)")
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class Part(msgspec.Struct, kw_only=True, frozen=True):
    """One file of a checkpoint, written by one rank. `digest` is BLAKE3 of its bytes, 64 hex digits."""

    path: str
    rank: int
    size_bytes: int
    digest: str


class Manifest(msgspec.Struct, kw_only=True, frozen=True):
    """Everything about a checkpoint but the tensors. Fields only grow.

    `config` digests what the numbers depend on; `layout` is what bit-equality also depends on (world size, threads,
    precision, torch); `state` holds the scalars of the loop.
    """

    format: str = FORMAT
    version: int = VERSION
    step: int
    world_size: int
    mesh: dict[str, int]
    config: str
    layout: dict[str, Any]
    state: dict[str, Any]
    parts: list[Part]


def name_of(step: int) -> str:
    return f"step-{step}"


def staged_name_of(step: int) -> str:
    return f".staged-{step}"


def step_of(name: str) -> int | None:
    """Return the step in a checkpoint's name, or None if the name is not one of ours."""
    found = _NAME.fullmatch(name)
    return int(found.group(1)) if found else None


def encode(manifest: Manifest) -> bytes:
    """Return the manifest's canonical bytes: JSON with sorted keys, two spaces, a newline at the end."""
    raw = msgspec.json.encode(manifest, order="sorted")
    return msgspec.json.format(raw, indent=2) + b"\n"


def decode(raw: bytes, *, where: str) -> Manifest:
    """Read a manifest.

    Raises:
        Damaged: `checkpoint_damaged`, it is not a manifest, or a part has a name that leads out of the folder.
        NotYet: `checkpoint_newer`, a later version of the format wrote it.
    """
    try:
        manifest = msgspec.json.decode(raw, type=Manifest)
    except msgspec.DecodeError as fault:  # a ValidationError is one too
        raise Damaged("checkpoint_damaged", where=where, what=str(fault)) from fault
    if manifest.format != FORMAT:
        raise Damaged("checkpoint_damaged", where=where, what=f"format {manifest.format!r}")
    if manifest.version > VERSION:
        raise NotYet("checkpoint_newer", where=where, version=manifest.version, known=VERSION)
    for part in manifest.parts:
        if not _PLAIN.fullmatch(part.path):
            raise Damaged("checkpoint_damaged", where=where, what=f"part {part.path!r}")
    if sorted(part.rank for part in manifest.parts) != list(range(manifest.world_size)):
        raise Damaged("checkpoint_damaged", where=where, what=f"{len(manifest.parts)} parts of {manifest.world_size}")
    return manifest


def read(folder: Path) -> Manifest:
    """Return the manifest of a checkpoint folder; `Damaged` when it has none."""
    path = folder / MANIFEST
    if not path.is_file():
        raise Damaged("checkpoint_damaged", where=str(folder), what=f"no {MANIFEST}")
    return decode(path.read_bytes(), where=str(folder))


def describe_part(path: Path, *, rank: int) -> Part:
    """Return the entry of a part that lies complete on the disk."""
    return Part(path=path.name, rank=rank, size_bytes=path.stat().st_size, digest=_digest(path))


def verify_part(folder: Path, part: Part) -> Path:
    """Return the part's path if it holds the bytes that the manifest promises; `Damaged` otherwise."""
    path = folder / part.path
    if not path.is_file() or path.stat().st_size != part.size_bytes or _digest(path) != part.digest:
        raise Damaged("checkpoint_damaged", where=str(folder), what=f"part {part.path} is missing or has other bytes")
    return path


def write_durably(path: Path, raw: bytes) -> None:
    """Put bytes under a name, all or nothing, and on the disk when this returns."""
    staged = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with staged.open("wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())
    staged.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _digest(path: Path) -> str:
    digest = blake3()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
