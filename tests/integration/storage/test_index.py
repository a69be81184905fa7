"""The index against a plain dictionary, and what becomes of it when its file is spoiled."""

import random
from contextlib import suppress
from pathlib import Path

import pytest

from trackbed.base.errors import Damaged
from trackbed.formats.footer import PRIVATE, SHARED, Base, FileRow, FrameRow, PackRows
from trackbed.storage.backends.folder import FolderBackend
from trackbed.storage.backends.port import Backend, ObjectInfo
from trackbed.storage.index import ChunkIndex
from trackbed.storage.tombs import pack_name


def pack(seed: int, *, frames: int = 5, chunks: int = 20, owner: bytes = b"") -> PackRows:
    dice = random.Random(seed)
    rows = [
        FrameRow(
            dice.randbytes(16), 64 + number * 1000, 900, 1, 0, 20 * 100, (Base(dice.randbytes(16), 7, 9),),
            tuple((dice.randbytes(32), 100) for _ in range(chunks)),
        )
        for number in range(frames)
    ]  # fmt: skip
    file = FileRow(dice.randbytes(32), 12345, rows[0].chunks[3][0], 1)
    return PackRows(dice.randbytes(16), 70_000, PRIVATE if owner else SHARED, owner, tuple(rows), (file,))


@pytest.fixture
def index(tmp_path: Path) -> ChunkIndex:
    return ChunkIndex.open(tmp_path / "local" / "index.sqlite")


def test_what_a_pack_says_is_found_again(index: ChunkIndex):
    packs = [pack(seed) for seed in range(5)]
    index.add_many(packs)
    index.add(packs[0])
    assert index.packs() == {one.pack_id: one.size for one in packs}
    every = [(one, frame, number) for one in packs for frame in one.frames for number in range(len(frame.chunks))]
    found = index.chunks([frame.chunks[number][0] for _, frame, number in every])
    assert len(found) == len(every)
    for one, frame, number in every:
        at = found[frame.chunks[number][0]]
        assert (at.frame.pack_id, at.frame.frame_id, at.frame.offset) == (one.pack_id, frame.frame_id, frame.offset)
        assert (at.start, at.length, at.frame.bases) == (number * 100, 100, frame.bases)
    assert index.file(packs[2].files[0].file_id) == packs[2].files[0]
    assert index.counts() == (5, 25, 500, 5)
    assert index.sound()


def test_a_pack_that_is_dropped_takes_its_chunks_and_no_others(index: ChunkIndex):
    packs = [pack(seed) for seed in range(3)]
    index.add_many(packs)
    index.drop([packs[1].pack_id, b"unknown"])
    assert index.chunk(packs[1].frames[0].chunks[0][0]) is None
    assert index.frame(packs[1].frames[0].frame_id) is None
    assert index.chunk(packs[2].frames[4].chunks[19][0]) is not None
    assert index.counts() == (2, 10, 200, 2)


def test_a_run_sees_its_own_private_chunks_and_nobody_elses(index: ChunkIndex):
    mine, theirs, shared = pack(1, owner=b"me"), pack(2, owner=b"them"), pack(3)
    index.add_many([mine, theirs, shared])
    ids = [one.frames[0].chunks[0][0] for one in (mine, theirs, shared)]
    assert set(index.chunks(ids)) == {ids[2]}
    assert set(index.chunks(ids, owner=b"me")) == {ids[0], ids[2]}
    assert set(index.chunks(ids, any_owner=True)) == set(ids)


def test_a_copy_without_a_tombstone_is_preferred(index: ChunkIndex):
    first = pack(1)
    second = PackRows(b"2" * 16, 1, SHARED, b"", first.frames, ())
    index.add_many([first, second])
    chunk = first.frames[0].chunks[0][0]
    for dead, alive in ((first.pack_id, second.pack_id), (second.pack_id, first.pack_id)):
        index.fade([dead])
        at = index.chunk(chunk)
        assert at is not None and (at.frame.pack_id, at.fading) == (alive, False)
    index.fade([first.pack_id, second.pack_id])
    at = index.chunk(chunk)
    assert at is not None and at.fading


def test_a_refresh_takes_in_what_others_wrote_and_forgets_what_is_gone(index: ChunkIndex, tmp_path: Path):
    backend = FolderBackend(tmp_path / "objects")
    packs = {one.pack_id: one for one in (pack(seed) for seed in range(12))}
    for pack_id in packs:
        backend.put(pack_name(pack_id), b"pack")

    def rows(backend: Backend, info: ObjectInfo) -> PackRows:
        return packs[bytes.fromhex(info.name.rpartition("/")[2])]

    assert index.refresh(backend, rows) == []
    assert set(index.packs()) == set(packs)
    gone = next(iter(packs))
    backend.delete(pack_name(gone))
    index.refresh(backend, rows)
    assert set(index.packs()) == set(packs) - {gone}
    index.rebuild(backend, rows)
    assert index.counts() == (11, 55, 1100, 11)


def test_a_pack_whose_rows_cannot_be_read_is_named_and_the_rest_is_taken(index: ChunkIndex, tmp_path: Path):
    backend = FolderBackend(tmp_path / "objects")
    packs = {one.pack_id: one for one in (pack(seed) for seed in range(3))}
    for pack_id in packs:
        backend.put(pack_name(pack_id), b"pack")
    bad = next(iter(packs))

    def rows(backend: Backend, info: ObjectInfo) -> PackRows:
        if info.name == pack_name(bad):
            raise Damaged("storage_pack_damaged", name=info.name, why="footer")
        return packs[bytes.fromhex(info.name.rpartition("/")[2])]

    assert [name for name, _ in index.refresh(backend, rows)] == [pack_name(bad)]
    assert set(index.packs()) == set(packs) - {bad}


@pytest.mark.parametrize("spoil", [b"", b"not a database at all" * 500])
def test_a_spoiled_file_is_thrown_away_and_starts_empty(tmp_path: Path, spoil: bytes):
    path = tmp_path / "index.sqlite"
    first = ChunkIndex.open(path)
    first.add(pack(1))
    first.close()
    path.write_bytes(spoil)
    again = ChunkIndex.open(path)
    assert again.packs() == {}
    again.add(pack(1))
    assert again.counts()[0] == 1


def test_flipped_bits_are_refused_or_harmless_never_another_chunk(tmp_path: Path):
    path = tmp_path / "index.sqlite"
    first = ChunkIndex.open(path)
    packs = [pack(seed) for seed in range(20)]
    first.add_many(packs)
    first.close()
    sound = path.read_bytes()
    dice = random.Random(5)
    for _ in range(30):
        spoiled = bytearray(sound)
        at = dice.randrange(len(spoiled))
        spoiled[at] ^= 1 << dice.randrange(8)
        path.write_bytes(spoiled)
        index = ChunkIndex.open(path)
        with suppress(Damaged):
            index.chunks([frame.chunks[0][0] for one in packs for frame in one.frames])
        index.sound()
        index.close()


def test_two_openings_share_one_file(tmp_path: Path):
    one, two = ChunkIndex.open(tmp_path / "i"), ChunkIndex.open(tmp_path / "i")
    one.add(pack(1))
    two.add(pack(2))
    assert one.packs().keys() == two.packs().keys()
    assert len(one.packs()) == 2
