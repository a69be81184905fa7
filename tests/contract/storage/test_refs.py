"""The contract of pointers over a folder, a bucket and callbacks, and with answers that get lost."""

import threading
from pathlib import Path

import pytest
from blake3 import blake3

from trackbed.base.errors import Conflict, Damaged, Unavailable
from trackbed.storage import Refs
from trackbed.storage.backends.folder import FolderBackend
from trackbed.storage.backends.s3 import S3Backend
from trackbed.storage.refs_backend import BackendRefs, CallbackRefs
from trackbed.storage.store import RefValue
from trackbed.testing.backends import FaultyBackend
from trackbed.testing.store import RefsContract


class Plain:
    """A sealer that hides nothing but binds contents to their place."""

    def name(self, name: str) -> str:
        return blake3(name.encode("utf-8", "surrogatepass")).hexdigest()

    def seal(self, place: str, data: bytes) -> bytes:
        return place.encode() + data

    def open(self, place: str, data: bytes) -> bytes:
        if not data.startswith(place.encode()):
            raise Damaged("storage_record_damaged", what="pointer", name=place)
        return data[len(place) :]


class TestFolderRefs(RefsContract):
    @pytest.fixture
    def refs(self, tmp_path: Path) -> Refs:
        return BackendRefs(FolderBackend(tmp_path / "objects"), Plain())


class TestS3Refs(RefsContract):
    @pytest.fixture
    def refs(self, s3_url: str) -> Refs:
        return BackendRefs(S3Backend(s3_url), Plain())


class TestCallbackRefs(RefsContract):
    @pytest.fixture
    def refs(self) -> Refs:
        kept: dict[str, RefValue] = {}
        lock = threading.Lock()

        def move(name: str, expected: str | None, new: str, epoch: int) -> None:
            with lock:
                now = kept.get(name)
                if now and epoch < now.epoch:
                    raise Conflict("epoch_superseded", name=name, epoch=epoch, current=now.epoch)
                if (now.value if now else None) != expected:
                    raise Conflict("ref_moved", name=name, expected=expected or "-", actual="-")
                kept[name] = RefValue(new, epoch)

        return CallbackRefs(kept.get, move)


@pytest.mark.parametrize("kind", ["refused", "lost", "full", "torn", "dead"])
def test_a_move_that_met_a_fault_is_done_or_not_done_and_never_told_wrong(tmp_path: Path, kind: str):
    at = 1
    while True:
        inner = FolderBackend(tmp_path / f"{kind}-{at}")
        BackendRefs(inner, Plain()).compare_and_set("p", None, "one")
        faulty = FaultyBackend(inner, at=at, kind=kind)
        try:
            BackendRefs(faulty, Plain()).compare_and_set("p", "one", "two")
            told = True
        except Exception:
            told = False
        value = BackendRefs(inner, Plain()).get("p")
        assert value is not None and value.value in ("one", "two")
        assert not told or value.value == "two"
        if not faulty.fired:
            break
        at += 1
    assert at > 2


def test_a_lost_answer_is_no_lost_move(tmp_path: Path):
    refs = BackendRefs(FaultyBackend(FolderBackend(tmp_path / "o"), at=2, kind="lost"), Plain())
    refs.compare_and_set("p", None, "one")
    value = refs.get("p")
    assert value is not None and value.value == "one"


def test_two_pointers_whose_objects_were_swapped_are_noticed(tmp_path: Path):
    backend = FolderBackend(tmp_path / "o")
    refs = BackendRefs(backend, Plain())
    refs.compare_and_set("a", None, "1")
    refs.compare_and_set("b", None, "2")
    one, two = (info.name for info in backend.list("refs/"))
    first, second = backend.get(one), backend.get(two)
    backend.put(one, second)
    backend.put(two, first)
    with pytest.raises(Damaged):
        refs.get("a")


def test_all_pointers_can_be_listed_for_gc(tmp_path: Path):
    refs = BackendRefs(FolderBackend(tmp_path / "o"), Plain())
    refs.compare_and_set("a", None, "1")
    refs.compare_and_set("损失", None, "2", epoch=3)
    assert refs.values() == {"a": RefValue("1", 0), "损失": RefValue("2", 3)}


def test_a_place_without_conditions_refuses_to_move_a_pointer(tmp_path: Path):
    class Careless(FaultyBackend):
        def put_if(self, name: str, data: bytes, *, version: str | None) -> bool:
            raise Unavailable("storage_no_conditions", where=self.url)

    with pytest.raises(Unavailable) as refused:
        BackendRefs(Careless(FolderBackend(tmp_path / "o")), Plain()).compare_and_set("p", None, "1")
    assert refused.value.code == "storage_no_conditions"
