"""The store contract over every adapter."""

from pathlib import Path

import pytest

from trackbed.storage import LocalStore, Store, open_store
from trackbed.testing.store import StoreContract


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"file://{tmp_path}/store")


class TestLocalStore(StoreContract):
    def test_a_second_opening_finds_what_the_first_kept(self, store: Store, tmp_path: Path):
        digest, _ = store.put_blob(b"kept")
        assert LocalStore(tmp_path / "store").missing([digest]) == []
