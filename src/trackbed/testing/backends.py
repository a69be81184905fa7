"""What every place for objects must do (`storage.backends.port.Backend`), and one that fails on purpose.

A test module subclasses `BackendContract` and gives the fixture `backend`.
"""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from trackbed.base.errors import BadInput, NotFound, StorageFull, Unavailable
from trackbed.storage.backends.port import Backend, ObjectInfo

_T = TypeVar("_T")
_BIG = bytes(range(251)) * 90_000  # 22 MiB: several parts


class BackendContract:
    @pytest.mark.parametrize("data", [b"", b"x", b"\0\r\n\xff" * 1000, _BIG], ids=["empty", "one", "odd", "big"])
    def test_an_object_is_read_back_as_it_was_put(self, backend: Backend, tmp_path: Path, data: bytes):
        (tmp_path / "source").write_bytes(data)
        backend.put("a/one", data)
        backend.put("a/two", tmp_path / "source")
        assert backend.get("a/one") == backend.get("a/two") == data
        info = backend.stat("a/two")
        assert info is not None and (info.name, info.size) == ("a/two", len(data))

    @pytest.mark.parametrize(("start", "length"), [(0, 0), (0, 3), (7, None), (2, 100), (10, 5), (50, None), (50, 1)])
    def test_a_range_is_that_stretch_cut_at_the_end(self, backend: Backend, start: int, length: int | None):
        data = b"0123456789"
        backend.put("r", data)
        assert backend.get("r", start, length) == (data[start:] if length is None else data[start : start + length])

    def test_what_is_absent_is_told_by_name(self, backend: Backend):
        for length in (None, 0, 5):
            with pytest.raises(NotFound) as absent:
                backend.get("no/such", 0, length)
            assert absent.value.code == "storage_object_missing"
        assert (backend.read("no/such"), backend.stat("no/such"), backend.delete("no/such")) == (None, None, False)

    @pytest.mark.parametrize("name", ["", "/a", "a/", "a//b", "../a", "a/../b", "A", "a b", ".lock", "x" * 501, "a\0"])
    def test_a_name_that_a_place_could_take_for_another_is_refused(self, backend: Backend, name: str):
        for call in (backend.get, backend.stat, backend.delete, lambda n: backend.put(n, b"")):
            with pytest.raises(BadInput) as refused:
                call(name)
            assert refused.value.code == "storage_object_name"

    def test_a_list_is_sorted_and_keeps_to_whole_words(self, backend: Backend):
        for name in ("p/b/2", "p/a/1", "p/b/1", "pp/x", "top"):
            backend.put(name, name.encode())
        assert [(info.name, info.size) for info in backend.list("p/")] == [("p/a/1", 5), ("p/b/1", 5), ("p/b/2", 5)]
        assert {info.name for info in backend.list("")} >= {"p/a/1", "pp/x", "top"}
        assert list(backend.list("none/")) == []

    def test_a_put_replaces_and_a_delete_removes(self, backend: Backend):
        backend.put("x", b"first, and longer")
        backend.put("x", b"second")
        assert backend.get("x") == b"second"
        assert backend.delete("x") is True
        assert backend.stat("x") is None

    def test_a_conditional_put_keeps_its_condition(self, backend: Backend):
        assert backend.put_if("c", b"1", version=None) is True
        assert backend.put_if("c", b"2", version=None) is False
        now = backend.read("c")
        assert now is not None and now[0] == b"1"
        assert backend.put_if("c", b"3", version=now[1]) is True
        assert backend.put_if("c", b"4", version=now[1]) is False
        assert backend.get("c") == b"3"

    def test_a_condition_on_an_absent_name_writes_nothing(self, backend: Backend):
        backend.put_if("gone", b"1", version=None)
        now = backend.read("gone")
        assert now is not None
        backend.delete("gone")
        assert backend.put_if("gone", b"2", version=now[1]) is False
        assert backend.stat("gone") is None

    def test_of_sixteen_conditional_puts_at_once_one_wins(self, backend: Backend):
        won: list[int] = []

        def put(number: int) -> None:
            if backend.put_if("race", b"%d" % number, version=None):
                won.append(number)

        threads = [threading.Thread(target=put, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [backend.get("race")] == [b"%d" % number for number in won]


class FaultyBackend:
    """A place that fails at one call.

    `at` counts calls from 1; `kind` is what happens there:
    `refused`  nothing is done, Unavailable
    `full`     nothing is done, StorageFull
    `lost`     it is done, but the answer is lost: Unavailable
    `torn`     a put leaves the first half under the name, as a place without the promise would; then Unavailable
    `dead`     this and every later call fail, as if the process had been cut off
    `flipped`  a read gives one wrong bit
    """

    def __init__(self, inner: Backend, *, at: int = 0, kind: str = "refused") -> None:
        self.inner = inner
        self.at = at
        self.kind = kind
        self.calls: list[str] = []
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return self.inner.url

    @property
    def spool(self) -> Path | None:
        return self.inner.spool

    @property
    def fired(self) -> bool:
        return 0 < self.at <= len(self.calls)

    def get(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        now = self._now("get", name)
        data = self.inner.get(name, start, length)
        if now == "flipped" and data:
            data = data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :]
        return self._answer(now, data)

    def read(self, name: str) -> tuple[bytes, str] | None:
        return self._answer(self._now("read", name), self.inner.read(name))

    def stat(self, name: str) -> ObjectInfo | None:
        return self._answer(self._now("stat", name), self.inner.stat(name))

    def put(self, name: str, source: bytes | Path) -> None:
        now = self._now("put", name)
        if now == "torn":
            data = source if isinstance(source, bytes) else source.read_bytes()
            self.inner.put(name, data[: len(data) // 2])
            raise _away()
        self._answer(now, self.inner.put(name, source))

    def put_if(self, name: str, data: bytes, *, version: str | None) -> bool:
        now = self._now("put_if", name)
        return self._answer(now, self.inner.put_if(name, data, version=version))

    def delete(self, name: str) -> bool:
        return self._answer(self._now("delete", name), self.inner.delete(name))

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        self._now("list", prefix)
        return self.inner.list(prefix)

    def _now(self, verb: str, name: str) -> str:
        with self._lock:
            self.calls.append(f"{verb} {name}")
            here = len(self.calls)
        if self.kind == "dead" and 0 < self.at <= here:
            raise _away()
        if here != self.at:
            return ""
        if self.kind == "full" and verb.startswith("put"):
            raise StorageFull("storage_full", where=self.url)
        if self.kind in ("refused", "full") or (self.kind == "torn" and verb != "put"):
            raise _away()
        return self.kind

    def _answer(self, now: str, answer: _T) -> _T:
        if now == "lost":
            raise _away()
        return answer


def _away() -> Unavailable:
    return Unavailable("storage_s3_away", where="here", name="-", why="a fault was asked for")
