"""The contract of a place for objects over every adapter, and what only one of them must do."""

import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from trackbed.base.errors import BadInput, Denied, Internal, NotFound, StorageFull, Unavailable
from trackbed.storage.backends.folder import FolderBackend
from trackbed.storage.backends.keys import S3Keys
from trackbed.storage.backends.port import Backend
from trackbed.storage.backends.s3 import MIB, S3Backend, part_size
from trackbed.storage.conform import conform
from trackbed.testing.backends import BackendContract, FaultyBackend
from trackbed.testing.s3 import S3Server


class TestFolder(BackendContract):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> Backend:
        return FolderBackend(tmp_path / "objects")

    def test_nothing_is_left_aside_and_nothing_of_it_is_listed(self, backend: Backend, tmp_path: Path):
        backend.put("a", b"1")
        with pytest.raises(BadInput):
            backend.put("b", tmp_path)
        assert [info.name for info in backend.list("")] == ["a"]
        assert list((tmp_path / "objects" / ".aside").iterdir()) == []

    @pytest.mark.skipif(os.geteuid() != 0, reason="needs a file system of two MiB")
    @pytest.mark.root
    def test_a_full_disk_keeps_nothing_and_what_was_there(self, tmp_path: Path):
        (tmp_path / "small").mkdir()
        if os.system(f"mount -t tmpfs -o size=2m tmpfs {tmp_path}/small 2>/dev/null"):
            pytest.skip("no tmpfs may be mounted here")
        try:
            backend = FolderBackend(tmp_path / "small" / "objects")
            backend.put("a", b"1" * 100)
            with pytest.raises(StorageFull):
                backend.put("a", b"2" * 4 * MIB)
            assert backend.get("a") == b"1" * 100
            assert [info.name for info in backend.list("")] == ["a"]
        finally:
            os.system(f"umount {tmp_path}/small")

    def test_a_disk_that_refuses_a_sync_publishes_nothing(self, backend: Backend, monkeypatch: pytest.MonkeyPatch):
        backend.put("a", b"old")

        def refuse(fd: int) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(os, "fsync", refuse)
        with pytest.raises(Internal) as fault:
            backend.put("a", b"new")
        assert fault.value.code == "storage_io"
        assert backend.get("a") == b"old"


class TestS3(BackendContract):
    @pytest.fixture
    def backend(self, s3_url: str) -> Backend:
        return S3Backend(s3_url)

    def test_the_probe_finds_conditions_and_leaves_nothing(self, backend: Backend):
        assert isinstance(backend, S3Backend) and backend.conditions
        assert list(backend.list("")) == []

    def test_more_than_a_page_is_listed(self, backend: Backend):
        for number in range(1_005):
            backend.put(f"n/{number:04d}", b"")
        assert len(list(backend.list("n/"))) == 1_005

    def test_a_wrong_secret_is_refused_by_name(self, s3: S3Server):
        backend = S3Backend(s3.url("contract"), S3Keys(s3.keys.key_id, "wrong"))
        with pytest.raises(Denied) as denied:
            backend.put("x", b"1")
        assert denied.value.code == "storage_s3_denied"

    def test_a_server_that_is_gone_is_unavailable_and_said_so(self):
        backend = S3Backend("s3://b?endpoint=http://127.0.0.1:9", S3Keys("a", "b"), retries=0)
        with pytest.raises(Unavailable) as gone:
            backend.get("x")
        assert gone.value.code == "storage_s3_away"


class TestFaulty(BackendContract):
    """The wrapper itself changes nothing until its fault is due."""

    @pytest.fixture
    def backend(self, tmp_path: Path) -> Backend:
        return FaultyBackend(FolderBackend(tmp_path / "objects"))


@pytest.mark.parametrize("size", [0, 1, 8 * MIB, 64 * MIB, 25 * 1024 * MIB, 5 * 1024 * 1024 * MIB])
def test_no_file_needs_more_parts_than_s3_allows(size: int):
    part = part_size(size)
    assert part >= 8 * MIB and part % MIB == 0
    assert -(-size // part) <= 9_000


@pytest.mark.parametrize(
    "url", ["s3://", "s3://key:secret@bucket", "s3://b?endpiont=x", "s3://b?style=odd", "http://b", "s3://b#x"]
)
def test_an_address_that_could_mean_something_else_is_refused(url: str):
    with pytest.raises(BadInput) as refused:
        S3Backend(url, S3Keys("a", "b"))
    assert refused.value.code == "storage_s3_url"
    assert "secret" not in refused.value.text("en")


def test_a_store_that_ignores_conditions_is_found_out():
    """A server that answers every put with 200: what an old gateway does with a header that it does not know."""

    class Careless(BaseHTTPRequestHandler):
        kept: dict[str, bytes] = {}

        def do_PUT(self):
            self.kept[self.path] = self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(200)
            self.send_header("ETag", f'"{len(self.kept[self.path])}"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _give(self, body: bool):
            data = self.kept.get(self.path)
            self.send_response(404 if data is None else 200)
            self.send_header("ETag", '"1"')
            self.send_header("Last-Modified", "Tue, 01 Dec 2026 00:00:00 GMT")
            self.send_header("Content-Length", str(len(data or b"")))
            self.end_headers()
            if body and data:
                self.wfile.write(data)

        def do_GET(self):
            self._give(True)

        def do_HEAD(self):
            self._give(False)

        def do_DELETE(self):
            self.kept.pop(self.path, None)
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Careless)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        backend = S3Backend(f"s3://b?endpoint=http://127.0.0.1:{server.server_port}", S3Keys("a", "b"), retries=0)
        assert backend.conditions is False
        with pytest.raises(Unavailable) as refused:
            backend.put_if("ref", b"1", version=None)
        assert refused.value.code == "storage_no_conditions"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_bucket_that_is_not_there_is_told(s3: S3Server):
    backend = S3Backend(s3.url("never-made"), s3.keys)
    with pytest.raises(NotFound):
        backend.get("x")


class TestConformance:
    def test_a_folder_and_a_real_server_keep_everything_and_nothing_stays(self, tmp_path: Path, s3_url: str):
        for backend in (FolderBackend(tmp_path / "objects"), S3Backend(s3_url)):
            trials = conform(backend)
            assert [one for one in trials if not one.holds] == []
            assert len(trials) == 7
            assert list(backend.list("probe/")) == []

    def test_what_a_place_does_not_keep_is_named(self, tmp_path: Path):
        class Careless(FaultyBackend):
            def put_if(self, name: str, data: bytes, *, version: str | None) -> bool:
                self.put(name, data)
                return True

            def get(self, name: str, start: int = 0, length: int | None = None) -> bytes:
                return super().get(name)

        failed = {one.name: one.needed for one in conform(Careless(FolderBackend(tmp_path / "o"))) if not one.holds}
        assert failed == {"range": True, "conditions": False}
