"""The chunk store keeps the contract of all stores, on a folder."""

from collections.abc import Generator
from pathlib import Path

import pytest

from trackbed.storage.chunks import ChunkStore
from trackbed.testing.chunks import open_chunks
from trackbed.testing.store import StoreContract


class TestChunkStoreOnAFolder(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Generator[ChunkStore]:
        store = open_chunks(tmp_path / "store")
        yield store
        store.close()
