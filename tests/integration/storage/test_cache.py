"""The cache of a node: what is in use stays, what is not makes room, and it is known how often it helped."""

import multiprocessing
import threading
from pathlib import Path

import pytest

from trackbed.base.errors import StorageFull
from trackbed.base.ids import Digest
from trackbed.storage import NodeCache, Store, open_store
from trackbed.storage.store import Progress

SIZE = 100_000


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store((tmp_path / "store").as_uri(), key=bytes(32))


@pytest.fixture
def trees(store: Store, tmp_path: Path) -> list[Digest]:
    made: list[Digest] = []
    for number in range(5):
        folder = tmp_path / f"in{number}"
        folder.mkdir()
        (folder / "data").write_bytes(b"%d" % number * SIZE)
        made.append(store.put_tree(folder).digest)
    return made


def test_the_longest_unused_goes_when_the_limit_is_reached(store: Store, trees: list[Digest], tmp_path: Path):
    for digest in trees[:3]:
        cache = NodeCache(tmp_path / "cache", store, limit_bytes=3 * SIZE)
        cache.path_of(digest)
        cache.close()
    cache = NodeCache(tmp_path / "cache", store, limit_bytes=3 * SIZE)
    cache.path_of(trees[0])  # used again: younger than 1 and 2 now
    cache.path_of(trees[3])
    assert [cache.has(digest) for digest in trees[:4]] == [True, False, True, True]
    assert cache.size_bytes() == 3 * SIZE


def test_what_is_in_use_is_never_removed_even_over_the_limit(store: Store, trees: list[Digest], tmp_path: Path):
    user = NodeCache(tmp_path / "cache", store, limit_bytes=SIZE)
    held = [user.path_of(digest) for digest in trees[:2]]
    other = NodeCache(tmp_path / "cache", store, limit_bytes=SIZE)
    other.path_of(trees[2])
    assert all((path / "data").stat().st_size == SIZE for path in held)
    user.close()
    other.path_of(trees[3])
    assert not any(path.exists() for path in held)


def _hold(root: str, url: str, digest: str, ready: "multiprocessing.synchronize.Event") -> None:
    cache = NodeCache(Path(root), open_store(url, key=bytes(32)))
    cache.path_of(Digest(digest))
    ready.set()
    threading.Event().wait(60)


def test_a_killed_user_holds_nothing_any_more(store: Store, trees: list[Digest], tmp_path: Path):
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Event()
    user = spawn.Process(
        target=_hold, args=(str(tmp_path / "cache"), (tmp_path / "store").as_uri(), trees[0], ready), daemon=True
    )
    user.start()
    assert ready.wait(60)
    cache = NodeCache(tmp_path / "cache", store)
    assert cache.evict(SIZE) == 0
    user.kill()
    user.join()
    assert cache.evict(SIZE) == SIZE


def test_a_full_disk_evicts_instead_of_failing(store: Store, trees: list[Digest], tmp_path: Path):
    class Full:
        """A store whose disk has no room for a third tree."""

        def __getattr__(self, name: str):
            return getattr(store, name)

        def get_tree(
            self, digest: Digest, target: Path, *, read_only: bool = False, on_progress: Progress | None = None
        ):
            if len([one for one in (tmp_path / "cache").glob("??/*") if one.is_dir()]) >= 2:
                raise StorageFull("storage_full", where=str(target))
            store.get_tree(digest, target, read_only=read_only)

    for digest in trees[:3]:
        cache = NodeCache(tmp_path / "cache", Full())  # type: ignore[arg-type]
        assert (cache.path_of(digest) / "data").stat().st_size == SIZE
        cache.close()
    holding = NodeCache(tmp_path / "cache", Full())  # type: ignore[arg-type]
    for digest in trees[1:3]:
        holding.path_of(digest)
    with pytest.raises(StorageFull):
        holding.path_of(trees[3])


def test_hits_and_misses_are_counted_over_all_processes(store: Store, trees: list[Digest], tmp_path: Path):
    for _ in range(4):
        NodeCache(tmp_path / "cache", store).path_of(trees[0])
    counts = NodeCache(tmp_path / "cache", store).counts()
    assert (counts.hits, counts.misses, counts.hit_bytes, counts.fetched_bytes) == (3, 1, 3 * SIZE, SIZE)
    assert counts.hit_rate == 0.75


def test_the_limit_is_read_from_the_folder(store: Store, trees: list[Digest], tmp_path: Path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "LIMIT").write_text(str(2 * SIZE))
    for digest in trees:
        cache = NodeCache(tmp_path / "cache", store)
        cache.path_of(digest)
        cache.close()
    assert NodeCache(tmp_path / "cache", store).size_bytes() <= 2 * SIZE


def test_eight_that_ask_at_once_while_others_make_room_all_read_right(
    store: Store, trees: list[Digest], tmp_path: Path
):
    faults: list[BaseException] = []

    def use(number: int) -> None:
        try:
            for turn in range(10):
                cache = NodeCache(tmp_path / "cache", store, limit_bytes=2 * SIZE)
                which = (number + turn) % 5
                data = (cache.path_of(trees[which]) / "data").read_bytes()
                assert data == b"%d" % which * SIZE
                cache.close()
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert NodeCache(tmp_path / "cache", store).size_bytes() > 0
