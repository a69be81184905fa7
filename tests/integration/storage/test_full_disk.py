"""A disk that is full, or answers EIO, at any write: the last durable checkpoint is there, nothing half is published, and with
room again the same save goes through."""

import os
import random
import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from trackbed.base import faults
from trackbed.base.errors import StorageFull, TrackbedError, Unavailable
from trackbed.base.ids import Digest
from trackbed.storage.chunks import ChunkStore
from trackbed.storage.gc import Alive, collect
from trackbed.storage.index import ChunkIndex
from trackbed.storage.open import Options, open_backend, open_chunks
from trackbed.storage.release import release
from trackbed.storage.verify import verify
from trackbed.testing.backends import FaultyBackend

MASTER = bytes(range(32))
MIB = 1 << 20


def weights(folder: Path, seed: int, size: int) -> Path:
    folder.mkdir(parents=True)
    (folder / "weights").write_bytes(random.Random(seed).randbytes(size))
    return folder


def same(store: ChunkStore, digest: Digest, want: Path, into: Path) -> None:
    store.get_tree(digest, into)
    assert (into / "weights").read_bytes() == (want / "weights").read_bytes()
    shutil.rmtree(into)


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """48 MiB of memory as a disk."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "none", place]).returncode:
        pytest.skip("NO DISK WAS FILLED: that needs a root that may mount; the twin below ran")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.root
def test_a_disk_that_runs_full_keeps_the_last_durable_checkpoint(small_disk: Path, tmp_path: Path):
    store = open_chunks((small_disk / "store").as_uri(), MASTER)
    first = weights(tmp_path / "1", 1, 16 * MIB)
    kept = store.put_tree(first, owner="run_a").digest
    for seed in (2, 3):
        with pytest.raises(StorageFull):
            store.put_tree(weights(tmp_path / str(seed), seed, 40 * MIB), owner="run_a")
        same(store, kept, first, tmp_path / "out")
        assert verify(store).clean
    assert list(small_disk.rglob("*.part")) == [], "what did not fit makes room again"
    next_one = weights(tmp_path / "4", 4, 16 * MIB)
    digest = store.put_tree(next_one, owner="run_a").digest
    for _ in range(2):
        release(store, [kept], lambda: Alive(frozenset([digest])), grace_s=-1)
    last = weights(tmp_path / "5", 5, 16 * MIB)
    same(store, store.put_tree(last, owner="run_a").digest, last, tmp_path / "out")
    same(store, digest, next_one, tmp_path / "out")
    assert verify(store).clean


@pytest.mark.parametrize("errno", ["ENOSPC", "EIO"])
def test_a_write_that_fails_anywhere_costs_neither_the_last_checkpoint_nor_the_next(errno: str, tmp_path: Path):
    """The no-root twin: the n-th step fails, for every n until none does."""
    first, second = weights(tmp_path / "a", 1, 300_000), weights(tmp_path / "b", 2, 300_000)
    step = 1
    while True:
        home = tmp_path / f"{errno}{step}"
        store = open_chunks((home / "store").as_uri(), MASTER, Options(cache=home / "c"))
        kept = store.put_tree(first, owner="run_a").digest
        faults.arm(f"any@{step}={errno}")
        try:
            store.put_tree(second, owner="run_a")
            passed = True
        except (TrackbedError, OSError):
            passed = False
        finally:
            faults.arm("")
        same(store, kept, first, tmp_path / "out")
        assert verify(store).clean, step
        same(store, store.put_tree(second, owner="run_a").digest, second, tmp_path / "out")
        store.close()
        shutil.rmtree(home)
        if passed:
            break
        step += 1
    assert step > 4


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["refused", "full", "lost"])
def test_a_place_that_fails_at_any_call_of_a_collection_loses_nothing_that_is_named(kind: str, tmp_path: Path):
    keep, drop = weights(tmp_path / "keep", 1, 60_000), weights(tmp_path / "drop", 2, 60_000)
    call = 1
    while True:
        home = tmp_path / str(call)
        made = open_chunks((home / "store").as_uri(), MASTER, Options(cache=home / "c"))
        kept, dropped = made.put_tree(keep).digest, made.put_tree(drop, owner="run_a").digest
        faulty = FaultyBackend(open_backend((home / "store").as_uri()), at=call, kind=kind)
        store = ChunkStore(faulty, made.keys, ChunkIndex.open(home / "f.sqlite"), refs=made.refs)
        try:
            for _ in range(3):
                release(store, [dropped], lambda kept=kept: Alive(frozenset([kept])), grace_s=-1)
                collect(store, lambda kept=kept: Alive(frozenset([kept])), grace_s=-1)
        except (Unavailable, StorageFull):
            pass
        made.backend.delete("locks/gc")  # what six hours would do
        for _ in range(3):
            collect(made, lambda kept=kept: Alive(frozenset([kept])), grace_s=-1)
        same(made, kept, keep, tmp_path / "out")
        assert verify(made).clean, call
        assert len(list(made.backend.list("trees/"))) == 1
        made.close()
        if not faulty.fired:
            break
        call += 1
    assert call > 10
