"""A store moved to another place is the same store; a move that is cut off goes on."""

import random
from pathlib import Path

import pytest

from trackbed.base.errors import Damaged, NotFound, Unavailable
from trackbed.storage.backends.folder import FolderBackend
from trackbed.storage.backends.port import Backend
from trackbed.storage.move import move
from trackbed.storage.open import Options, open_chunks
from trackbed.storage.ring import open_ring
from trackbed.storage.verify import verify
from trackbed.testing.backends import FaultyBackend

MASTER = bytes(range(32))


@pytest.fixture
def source(tmp_path: Path) -> tuple[Backend, str]:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(40):
        (folder / str(number)).write_bytes(random.Random(number).randbytes(3000))
    store = open_chunks((tmp_path / "old").as_uri(), MASTER)
    digest = store.put_tree(folder).digest
    store.refs.compare_and_set("runs/x", None, digest)
    store.close()
    return store.backend, digest


def test_everything_is_there_and_verifies_with_the_same_key(source: tuple[Backend, str], tmp_path: Path):
    backend, digest = source
    target = FolderBackend(tmp_path / "new" / "chunks")
    done: list[tuple[int, int]] = []
    report = move(backend, target, on_progress=lambda now, total: done.append((now, total)))
    assert (report.copied, report.already, report.kept_back) == (report.objects, 0, [])
    store = open_chunks((tmp_path / "new").as_uri(), MASTER, Options(cache=tmp_path / "c"))
    store.get_tree(digest, tmp_path / "out")  # type: ignore[arg-type]
    assert (tmp_path / "out" / "7").read_bytes() == (tmp_path / "in" / "7").read_bytes()
    value = store.refs.get("runs/x")
    assert value is not None and value.value == digest
    assert verify(store).clean
    assert move(backend, target).copied == 0


@pytest.mark.parametrize("kind", ["refused", "torn", "lost", "dead", "full"])
def test_a_move_that_is_cut_off_anywhere_is_no_store_yet_and_goes_on(
    source: tuple[Backend, str], tmp_path: Path, kind: str
):
    backend, digest = source
    at = 1
    while True:
        root = tmp_path / f"{kind}{at}"
        target = FolderBackend(root / "chunks")
        faulty = FaultyBackend(target, at=at, kind=kind)
        try:
            move(backend, faulty)
        except Exception:
            if target.stat("format") is None:
                with pytest.raises(NotFound):
                    open_ring(target, MASTER)
        move(backend, target)
        store = open_chunks(root.as_uri(), MASTER, Options(cache=root / "c"))
        assert store.has_tree(digest) and verify(store).clean  # type: ignore[arg-type]
        store.close()
        if not faulty.fired:
            break
        at += 3
    assert at > 5


def test_a_place_that_gives_back_other_bytes_is_found_out(source: tuple[Backend, str], tmp_path: Path):
    class Liar(FaultyBackend):
        def get(self, name: str, start: int = 0, length: int | None = None) -> bytes:
            return super().get(name, start, length)[:-1] + b"?"

    with pytest.raises((Damaged, Unavailable)) as found:
        move(source[0], Liar(FolderBackend(tmp_path / "new")))
    assert found.value.code == "storage_move_differs"
    assert source[0].stat("format") is not None
