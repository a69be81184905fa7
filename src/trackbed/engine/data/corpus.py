"""A folder of files as token shards: one for training, one held out. No torch."""

import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from trackbed.base.errors import BadInput, Unavailable
from trackbed.engine.model.shape import BYTE_VOCABULARY, END_OF_DOCUMENT
from trackbed.formats.tokens import Shard, open_shard, write_shard

_TRAIN, _HELD_OUT, _FACTS = "train.tokens", "held-out.tokens", "corpus.json"
_VERSION = 1  # of the rules below: another one makes another folder


@dataclass(frozen=True)
class Corpus:
    """Both shards, and what was read to make them."""

    train: Shard
    held_out: Shard
    files: int
    held_out_files: int
    size_bytes: int

    @property
    def digest(self) -> str:
        """BLAKE3 over both shards: what a checkpoint remembers of its data."""
        return blake3(f"{self.train.digest} {self.held_out.digest}".encode()).hexdigest()

    def facts(self) -> dict[str, Any]:
        return {
            "files": self.files,
            "held_out_files": self.held_out_files,
            "size_bytes": self.size_bytes,
            "train_tokens": len(self.train.tokens),
            "held_out_tokens": len(self.held_out.tokens),
            "digest": self.digest,
        }


@dataclass(frozen=True)
class _Facts:
    files: int
    held_out_files: int
    size_bytes: int


def list_files(source: Path) -> list[bytes]:
    """Return the relative paths of all regular files, sorted by their bytes; links are not followed.

    A single file is a corpus too: the one path is its name.
    """
    if not source.is_dir():
        return [os.fsencode(source.name)]
    root = os.fsencode(source)
    found: list[bytes] = []
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)  # noqa: PTH118 - bytes: names need not be text
            if os.path.isfile(path) and not os.path.islink(path):  # noqa: PTH113, PTH114
                found.append(os.path.relpath(path, root))
    return sorted(found)


def is_held_out(path: bytes, *, share: float) -> bool:
    """Decide by the file's path alone, so that a file keeps its side when others come and go."""
    return int.from_bytes(blake3(path).digest(length=8), "little") < share * 2.0**64


def split(paths: list[bytes], *, share: float) -> tuple[list[bytes], list[bytes]]:
    """Return files to train on and files held out, both never empty.

    Raises:
        BadInput: `corpus_too_small`, fewer than two files and so nothing to hold out.
    """
    if len(paths) < 2:
        raise BadInput("corpus_too_small", files=len(paths))
    held_out = [path for path in paths if is_held_out(path, share=share)]
    if not held_out or len(held_out) == len(paths):
        held_out = [min(paths, key=lambda path: blake3(path).digest())]
    return [path for path in paths if path not in set(held_out)], held_out


def prepare(source: Path, scratch: Path, *, share: float, builder: bool, wait_s: float = 600.0) -> Corpus:
    """Return the corpus of a folder; the one builder of a node writes it, the others wait for it to appear.

    Raises:
        BadInput: `corpus_missing`, there is nothing to read; `corpus_too_small`.
        Unavailable: `corpus_late`, the builder did not finish within `wait_s`.
    """
    if not source.exists():
        raise BadInput("corpus_missing", path=str(source))
    paths = list_files(source)
    target = scratch / f"tokens-{_key(source, paths, share)}"
    if builder and not target.is_dir():
        _build(source, paths, target, share=share)
    _wait_for(target, wait_s=wait_s)
    facts = msgspec.json.decode((target / _FACTS).read_bytes(), type=_Facts)
    return Corpus(
        train=open_shard(target / _TRAIN),
        held_out=open_shard(target / _HELD_OUT),
        files=facts.files,
        held_out_files=facts.held_out_files,
        size_bytes=facts.size_bytes,
    )


def _key(source: Path, paths: list[bytes], share: float) -> str:
    """Name a corpus by what is listed, so that a scratch folder used twice never gives the wrong one."""
    digest = blake3(f"{_VERSION} {share!r}".encode())
    for path in paths:
        size = _place(source, path).stat().st_size
        digest.update(path + b"\0" + str(size).encode() + b"\n")
    return digest.hexdigest()[:16]


def _place(source: Path, path: bytes) -> Path:
    return source / os.fsdecode(path) if source.is_dir() else source


def _build(source: Path, paths: list[bytes], target: Path, *, share: float) -> None:
    train, held_out = split(paths, share=share)
    staged = target.with_name(f".{target.name}.{os.getpid()}")
    staged.mkdir(parents=True, exist_ok=True)
    sizes: list[int] = []

    def documents(chosen: list[bytes]) -> Iterator[NDArray[np.uint16]]:
        for path in chosen:
            raw = _place(source, path).read_bytes()
            sizes.append(len(raw))
            tokens = np.empty(len(raw) + 1, dtype=np.uint16)
            tokens[:-1] = np.frombuffer(raw, dtype=np.uint8)
            tokens[-1] = END_OF_DOCUMENT
            yield tokens

    write_shard(staged / _TRAIN, documents(train), vocabulary=BYTE_VOCABULARY)
    write_shard(staged / _HELD_OUT, documents(held_out), vocabulary=BYTE_VOCABULARY)
    facts = _Facts(files=len(paths), held_out_files=len(held_out), size_bytes=sum(sizes))
    (staged / _FACTS).write_bytes(msgspec.json.encode(asdict(facts)))
    try:
        staged.rename(target)
    except OSError:
        if not target.is_dir():
            raise
        shutil.rmtree(staged)  # another builder was first, with the same bytes


def _wait_for(target: Path, *, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    while not target.is_dir():
        if time.monotonic() > deadline:
            raise Unavailable("corpus_late", path=str(target), waited_s=round(wait_s))
        time.sleep(0.05)
