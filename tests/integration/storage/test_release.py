"""Freeing dropped checkpoints at once: their private packs go, what anything else reaches stays, also beside an upload."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trackbed.base.ids import Digest
from trackbed.storage.chunks import ChunkStore
from trackbed.storage.gc import Alive
from trackbed.storage.open import Options, open_chunks
from trackbed.storage.release import ReleaseReport, release
from trackbed.storage.verify import verify

MASTER = bytes(range(32))


def opened(root: Path, cache: str = "c") -> ChunkStore:
    return open_chunks(root.as_uri(), MASTER, Options(cache=root.parent / cache))


def save(store: ChunkStore, folder: Path, seed: int, *, owner: str = "run_a", size: int = 300_000) -> Digest:
    folder.mkdir(parents=True)
    (folder / "weights").write_bytes(random.Random(seed).randbytes(size))
    return store.put_tree(folder, owner=owner).digest


def step(store: ChunkStore, *dropped: Digest, alive: tuple[Digest, ...] = (), grace_s: float = 0.0) -> ReleaseReport:
    time.sleep(0.01)
    return release(store, dropped, lambda: Alive(frozenset(alive)), grace_s=grace_s)


def stored(store: ChunkStore) -> int:
    return sum(info.size for info in store.backend.list("packs/"))


def test_the_packs_of_a_dropped_checkpoint_go_after_the_short_grace_and_not_before(tmp_path: Path):
    store = opened(tmp_path / "store")
    old, new = (save(store, tmp_path / str(seed), seed) for seed in (1, 2))
    before = stored(store)
    assert step(store, old, alive=(new,), grace_s=60).waiting == [old]
    assert not store.has_tree(old), "from now on whoever saves the same adds it again"
    assert step(store, old, alive=(new,), grace_s=60).waiting == [old] and stored(store) == before
    report = step(store, old, alive=(new,))
    assert report.done == [old] and report.packs_freed == 1 and report.bytes_freed > 300_000
    assert stored(store) == before - report.bytes_freed
    store.get_tree(new, tmp_path / "out")
    assert (tmp_path / "out" / "weights").read_bytes() == (tmp_path / "2" / "weights").read_bytes()
    assert verify(store).clean and list(store.backend.list("tombs/")) == []
    assert step(store, old).done == [old], "asked again, it is gone"


def test_what_a_kept_tree_reaches_is_not_freed(tmp_path: Path):
    """Two saves that share their bytes, and a dataset that was found to be here already."""
    store = opened(tmp_path / "store")
    old = save(store, tmp_path / "1", 1)
    again = tmp_path / "1b"
    again.mkdir()
    (again / "weights").write_bytes((tmp_path / "1" / "weights").read_bytes())
    (again / "step").write_text("2")
    new = store.put_tree(again, owner="run_a").digest
    for _ in range(3):
        step(store, old, alive=(new,))
    assert not store.has_tree(old)
    opened(tmp_path / "store", "fresh").get_tree(new, tmp_path / "out")
    assert (tmp_path / "out" / "weights").read_bytes() == (tmp_path / "1" / "weights").read_bytes()
    assert verify(store).clean


def test_a_digest_that_somebody_names_again_is_left_alone(tmp_path: Path):
    store = opened(tmp_path / "store")
    old = save(store, tmp_path / "1", 1)
    step(store, old)
    assert not store.has_tree(old)
    assert step(store, old, alive=(old,)).done == [old] and store.has_tree(old)
    store.get_tree(old, tmp_path / "out")
    assert verify(store).clean


def test_an_upload_that_relies_on_a_dropped_pack_writes_it_again(tmp_path: Path):
    store, other = opened(tmp_path / "store"), opened(tmp_path / "store", "other")
    old = save(store, tmp_path / "1", 1)
    other.refresh()
    for _ in range(2):
        step(store, old)  # the other process does not know yet
    again = other.put_tree(tmp_path / "1", owner="run_a").digest
    assert again == old and store.has_tree(old)
    opened(tmp_path / "store", "fresh").get_tree(old, tmp_path / "out")
    assert verify(store).clean


def test_shared_packs_are_left_to_the_collection(tmp_path: Path):
    store = opened(tmp_path / "store")
    data = save(store, tmp_path / "1", 1, owner="")
    before = stored(store)
    for _ in range(2):
        report = step(store, data)
    assert report.done == [data] and stored(store) == before


_RELEASE = """
import sys
from pathlib import Path
from trackbed.base.ids import Digest
from trackbed.storage.gc import Alive
from trackbed.storage.open import Options, open_chunks
from trackbed.storage.release import release
store = open_chunks(sys.argv[1], bytes(range(32)), Options(cache=Path(sys.argv[2])))
for _ in range(3):
    release(store, [Digest(sys.argv[4])], lambda: Alive(frozenset([Digest(sys.argv[3])])), grace_s=0)
store.close()
"""


@pytest.mark.slow
def test_a_release_killed_at_any_step_loses_nothing_that_is_named(tmp_path: Path):
    number = 1
    while True:
        home = tmp_path / str(number)
        store = opened(home / "store")
        old, new = (save(store, home / str(seed), seed, size=60_000) for seed in (1, 2))
        done = subprocess.run(
            [sys.executable, "-c", _RELEASE, (home / "store").as_uri(), home / "c2", new, old],
            env={**os.environ, "TRACKBED_FAULT": f"any@{number}=kill"},
        )
        store.backend.delete("locks/gc")  # what six hours would do
        again = opened(home / "store", "c3")
        again.get_tree(new, home / "out")
        for _ in range(3):
            step(again, old, alive=(new,))
        assert verify(again).clean, number
        assert not again.has_tree(old)
        again.close()
        store.close()
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
        number += 1
    assert number > 5
