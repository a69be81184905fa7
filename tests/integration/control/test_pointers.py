"""A store whose place keeps no conditions: pointers are rows, collecting works under the server's own lease."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from control_world import World

from trackbed.base.errors import Conflict, Unavailable
from trackbed.base.home import remember_store, store_url
from trackbed.server.pointers import database_refs
from trackbed.storage.backends.folder import FolderBackend
from trackbed.storage.chunks import ChunkStore
from trackbed.storage.gc import Alive, collect
from trackbed.storage.index import ChunkIndex
from trackbed.storage.open import open_chunks
from trackbed.storage.verify import verify


class Careless(FolderBackend):
    """A place that says itself that it keeps no conditions."""

    def put_if(self, name: str, data: bytes, *, version: str | None) -> bool:
        raise Unavailable("storage_no_conditions", where=self.url)


def test_of_many_moves_at_once_one_wins_and_an_older_epoch_moves_nothing(world: World) -> None:
    refs = database_refs(world.app.db, "")
    refs.compare_and_set("run/a", None, "one", epoch=2)
    won: list[str] = []
    lost: list[str] = []

    def move(to: str) -> None:
        try:
            refs.compare_and_set("run/a", "one", to, epoch=2)
            won.append(to)
        except Conflict:
            lost.append(to)

    threads = [threading.Thread(target=move, args=(f"t{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    now = refs.get("run/a")
    assert (len(won), len(lost)) == (1, 7) and now is not None and now.value == won[0]
    with pytest.raises(Conflict) as older:
        refs.compare_and_set("run/a", won[0], "late", epoch=1)
    assert older.value.code == "epoch_superseded"
    assert database_refs(world.app.db, "another").get("run/a") is None


def test_such_a_store_keeps_reads_and_collects(world: World, tmp_path: Path) -> None:
    made = open_chunks((tmp_path / "store").as_uri(), bytes(range(32)))
    store = ChunkStore(
        Careless(tmp_path / "store" / "chunks"), made.keys, ChunkIndex.open(tmp_path / "i.sqlite"),
        refs=database_refs(world.app.db, ""),
    )  # fmt: skip
    digests = []
    for name in ("keep", "drop"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_text(name * 9000)
        digests.append(store.put_tree(tmp_path / name).digest)
    store.refs.compare_and_set("main", None, digests[0])
    for _ in range(4):
        collect(store, lambda: Alive(frozenset(digests[:1])), grace_s=0)
    assert [store.has_tree(digest) for digest in digests] == [True, False]
    assert verify(store).clean


def test_the_store_that_was_named_once_is_used_from_then_on(tmp_path: Path) -> None:
    assert store_url(tmp_path) == (tmp_path / "store").as_uri()
    remember_store(tmp_path, "s3://bucket/prefix?endpoint=https://host")
    assert store_url(tmp_path) == "s3://bucket/prefix?endpoint=https://host"
    assert (tmp_path / "store.json").stat().st_mode & 0o777 == 0o600
    remember_store(tmp_path, (tmp_path / "store").as_uri())
    assert store_url(tmp_path) == (tmp_path / "store").as_uri()
