"""The store contract over every adapter."""

from pathlib import Path

import pytest

from trackbed.base.errors import Denied, NotFound
from trackbed.storage import LocalStore, Options, Store, open_store
from trackbed.testing.store import StoreContract

MASTER = bytes(range(32))


class TestLocalStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return open_store(f"file://{tmp_path}/store")

    def test_a_second_opening_finds_what_the_first_kept(self, store: Store, tmp_path: Path):
        digest, _ = store.put_blob(b"kept")
        assert LocalStore(tmp_path / "store").missing([digest]) == []


class TestChunkStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return open_store(f"file://{tmp_path}/store", key=MASTER)

    def test_a_second_opening_finds_what_the_first_kept(self, store: Store, tmp_path: Path):
        digest, _ = store.put_blob(b"kept")
        again = open_store(f"file://{tmp_path}/store", key=MASTER, options=Options(cache=tmp_path / "other"))
        assert again.missing([digest]) == []
        assert again.open_range(digest).read() == b"kept"

    def test_without_the_key_or_with_another_one_it_does_not_open(self, store: Store, tmp_path: Path):
        with pytest.raises(NotFound) as none:
            open_store(f"file://{tmp_path}/store")
        with pytest.raises(Denied) as wrong:
            open_store(f"file://{tmp_path}/store", key=b"x" * 32)
        assert (none.value.code, wrong.value.code) == ("key_missing", "key_wrong")


class TestChunkStoreInABucket(StoreContract):
    @pytest.fixture
    def store(self, s3_url: str, tmp_path: Path) -> Store:
        return open_store(s3_url, key=MASTER, options=Options(cache=tmp_path / "cache"))


class TestChunkStoreOverFormat0(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        open_store(f"file://{tmp_path}/store")
        return open_store(f"file://{tmp_path}/store", key=MASTER)

    def test_what_format_0_kept_is_read_as_before(self, tmp_path: Path):
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "a").write_bytes(b"old")
        old = open_store(f"file://{tmp_path}/store")
        digest = old.put_tree(tmp_path / "in").digest
        store = open_store(f"file://{tmp_path}/store", key=MASTER)
        assert store.has_tree(digest)
        store.get_tree(digest, tmp_path / "out")
        assert (tmp_path / "out" / "a").read_bytes() == b"old"
        assert store.put_tree(tmp_path / "in").digest == digest
