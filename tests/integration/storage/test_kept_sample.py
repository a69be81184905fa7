"""A store that version 1 wrote and was kept: it must open, as long as this format is read. Pages: docs/formats/packs.md."""

import tarfile
from pathlib import Path

import pytest

from trackbed.formats import frame
from trackbed.storage.scan import scan
from trackbed.testing.chunks import open_chunks

SAMPLE = Path(__file__).parents[2] / "unit" / "formats" / "samples" / "store-1.tar.xz"
TREES = [
    "b3:295e7a435756165f9b47e6bad07c5016e5555674b4b6d6c531c00ff4e43e6eac",
    "b3:6999cadebaf28397e2b62e9c1ca4269a74ec5183d5eb105f00cbd27ff8dec49a",
    "b3:b4dfcd1604bc71ebfc25bd32c5da4d0ed776d3c4a6c9d5271b263a20c50cb4ce",
]  # three versions: a text with scattered edits, a tensor that moves and its rounding, a script, a link, an empty folder


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    with tarfile.open(SAMPLE) as archive:
        archive.extractall(tmp_path / "store", filter="data")
    return tmp_path / "store"


def test_the_kept_sample_opens_and_every_tree_of_it_is_whole(kept: Path, tmp_path: Path):
    store = open_chunks(kept, word="kept sample 1")
    store.refresh()
    for number, digest in enumerate(TREES):
        store.get_tree(digest, tmp_path / str(number))  # pyright: ignore[reportArgumentType]
        assert scan(tmp_path / str(number)).info.digest == digest
    store.close()


def test_the_kept_sample_has_every_codec(kept: Path):
    store = open_chunks(kept, word="kept sample 1")
    store.refresh()
    codecs = {one.codec for pack in store.index.packs() for one in store.index.frames(pack)}
    assert codecs == {frame.STORED, frame.ZSTD, frame.DELTA, frame.PLANES, frame.XOR, frame.ROUNDED}
    store.close()


def test_what_is_added_to_the_kept_sample_finds_its_chunks(kept: Path, tmp_path: Path):
    store = open_chunks(kept, word="kept sample 1")
    store.refresh()
    store.get_tree(TREES[0], tmp_path / "out")  # pyright: ignore[reportArgumentType]
    packs = len(store.index.packs())
    assert store.put_tree(tmp_path / "out").digest == TREES[0]
    assert len(store.index.packs()) == packs, "the same cuts and ids as then: nothing new"
    store.close()
