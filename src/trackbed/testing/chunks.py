"""Chunk stores for tests: on a folder, with a key made from a word."""

from pathlib import Path

from blake3 import blake3

from trackbed.formats.cut import CutRule
from trackbed.storage import ring
from trackbed.storage.backends.folder import FolderBackend
from trackbed.storage.backends.port import Backend
from trackbed.storage.chunks import ChunkStore
from trackbed.storage.index import ChunkIndex
from trackbed.storage.local import LocalStore
from trackbed.storage.refs import LocalRefs

SMALL_CUTS = CutRule(min=64, avg=256, max=1024, strict_bits=9, loose_bits=7)  # many chunks of little data


def master_of(word: str) -> bytes:
    """A master key that is the same in every run."""
    return blake3(word.encode(), derive_key_context="trackbed testing master key").digest()


def open_chunks(
    root: Path,
    *,
    word: str = "test",
    backend: Backend | None = None,
    old: LocalStore | None = None,
    rule: CutRule | None = None,
    index: Path | None = None,
) -> ChunkStore:
    """Open, and if need be make, a chunk store in a folder. `rule` counts when it is made."""
    place = backend or FolderBackend(root / "chunks")
    opened = ring.make_ring(place, master_of(word), rule=rule)
    pointers, aside = root / "refs", root / "tmp"
    for folder in (pointers, aside):
        folder.mkdir(parents=True, exist_ok=True)
    return ChunkStore(
        place,
        opened.keys,
        ChunkIndex.open(index or root / "local" / "index.sqlite"),
        refs=LocalRefs(pointers, aside),
        old=old,
        rule=opened.rule,
    )
