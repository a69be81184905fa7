"""A token shard: one flat run of tokens, and where its documents begin. Page: `docs/formats/tokens.md`.

    header 64 bytes | tokens (u8 or u16, little-endian) | zeros up to a multiple of 8 | document starts (u64 × documents + 1)

A shard is written once and renamed into place; it is read through a memory map, so that a rank pays only for what it uses.
"""

import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from trackbed.base.errors import BadInput, Damaged

MAGIC = b"TBTOKEN1"
HEADER = struct.Struct("<8sIIQQ32s")  # magic, bytes a token, vocabulary, tokens, documents, BLAKE3 of what follows
HEADER_BYTES = HEADER.size
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Shard:
    """An open shard. `tokens` and `starts` are read-only maps; document i is `tokens[starts[i]:starts[i + 1]]`."""

    path: Path
    vocabulary: int
    digest: str  # BLAKE3, hex, of everything behind the header
    tokens: NDArray[np.uint8] | NDArray[np.uint16]
    starts: NDArray[np.uint64]

    @property
    def documents(self) -> int:
        return len(self.starts) - 1


def width_for(vocabulary: int) -> int:
    """Return bytes a token: 1 up to 256 different tokens, else 2.

    Raises:
        BadInput: `vocabulary_too_large`, more than 65,536.
    """
    if not 1 <= vocabulary <= 65536:
        raise BadInput("vocabulary_too_large", vocabulary=vocabulary, most=65536)
    return 1 if vocabulary <= 256 else 2


def write_shard(path: Path, documents: Iterable[NDArray[np.integer]], *, vocabulary: int) -> str:
    """Write documents one behind the other; return the shard's digest.

    The file is complete and durable when it appears under `path`: it is written beside it, fsynced and renamed.
    """
    width = width_for(vocabulary)
    kind = np.dtype("<u1" if width == 1 else "<u2")
    starts: list[int] = [0]
    digest = blake3()
    staged = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with staged.open("wb") as file:
        file.write(bytes(HEADER_BYTES))

        def put(part: bytes) -> None:
            digest.update(part)
            file.write(part)

        for document in documents:
            put(document.astype(kind, copy=False).tobytes())
            starts.append(starts[-1] + len(document))
        put(bytes(-(starts[-1] * width) % 8))
        put(np.asarray(starts, dtype="<u8").tobytes())
        file.seek(0)
        file.write(HEADER.pack(MAGIC, width, vocabulary, starts[-1], len(starts) - 1, digest.digest()))
        file.flush()
        os.fsync(file.fileno())
    staged.replace(path)
    return digest.hexdigest()


def open_shard(path: Path, *, verify: bool = False) -> Shard:
    """Map a shard; with `verify`, read all of it and compare its digest.

    Raises:
        Damaged: `tokens_damaged`, it is no shard, is cut short, or its bytes do not match.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(HEADER_BYTES)
    if len(head) < HEADER_BYTES or not head.startswith(MAGIC):
        raise Damaged("tokens_damaged", path=path.name, what="no header")
    _, width, vocabulary, tokens, documents, digest = HEADER.unpack(head)
    padded = tokens * width + -(tokens * width) % 8
    if width not in (1, 2) or size != HEADER_BYTES + padded + 8 * (documents + 1):
        raise Damaged("tokens_damaged", path=path.name, what=f"{size} bytes do not fit the header")
    if verify and _digest_behind_header(path) != digest:
        raise Damaged("tokens_damaged", path=path.name, what="another digest")
    raw = np.memmap(path, dtype=np.uint8, mode="r")
    body = raw[HEADER_BYTES : HEADER_BYTES + tokens * width]
    return Shard(
        path=path,
        vocabulary=vocabulary,
        digest=digest.hex(),
        tokens=body.view("<u1" if width == 1 else "<u2"),
        starts=raw[HEADER_BYTES + padded :].view("<u8"),
    )


def _digest_behind_header(path: Path) -> bytes:
    digest = blake3()
    with path.open("rb") as file:
        file.seek(HEADER_BYTES)
        while part := file.read(_BLOCK):
            digest.update(part)
    return digest.digest()
