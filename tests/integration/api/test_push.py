"""Trees by proxy: only what is missing is sent, blobs before the listing, and what comes back is checked."""

import os
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from blake3 import blake3

from trackbed.base.errors import BadInput, Conflict, Damaged, NotFound
from trackbed.base.ids import FileDigest
from trackbed.client import push as module
from trackbed.client.api import Client
from trackbed.client.config import Login
from trackbed.client.connection import Connection
from trackbed.client.pull import pull
from trackbed.formats.tree import decode_listing, tree_digest
from trackbed.storage.scan import scan
from trackbed.wire.data import CommitTree, HasReply, HasRequest, ModelVersionView, ModelView, TreeView
from trackbed.wire.runs import ArtifactView


class Server:
    """Blobs and trees in memory, as the routes have them; `spoil` changes what is read."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.trees: dict[str, bytes] = {}
        self.calls: list[str] = []
        self.spoil: bytes = b""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        self.calls.append(f"{request.method} {path.split('b3:')[0]}")
        body = request.read()
        if path == "/api/v1/blobs/has":
            asked = msgspec.json.decode(body, type=HasRequest)
            return self.json(HasReply(missing=[digest for digest in asked.file_digests if digest not in self.blobs]))
        if path == "/api/v1/blobs":
            while body:
                size = int.from_bytes(body[32:40], "little")
                self.keep(body[:32].hex(), body[40 : 40 + size])
                body = body[40 + size :]
            return httpx.Response(200, content=b"{}")
        if request.method == "PUT" and path.startswith("/api/v1/blobs/"):
            self.keep(path.rpartition("/")[2], body)
            return httpx.Response(204)
        if path.startswith("/api/v1/trees/"):
            return self.tree(request, body)
        if path.startswith("/api/v1/runs/"):
            return httpx.Response(200, content=self.blobs["artifact"] + self.spoil)
        raise AssertionError(path)

    def keep(self, digest: str, data: bytes) -> None:
        assert blake3(data).hexdigest() == digest
        self.blobs[digest] = data

    def tree(self, request: httpx.Request, body: bytes) -> httpx.Response:
        digest = "b3:" + request.url.path.split("b3:")[1].partition("/")[0]
        if request.method == "PUT":
            listing = msgspec.json.decode(body, type=CommitTree).listing
            assert tree_digest(listing) == digest
            assert all(entry.digest in self.blobs for entry in decode_listing(listing) if entry.kind == "f")
            self.trees[digest] = listing
            return self.json(TreeView(digest=digest, files=0, size_bytes=0))
        if request.url.path.endswith("/listing"):
            return httpx.Response(200, content=self.trees[digest])
        asked = request.url.params
        wanted = bytes.fromhex(asked["path_hex"]) if "path_hex" in asked else asked["path"].encode()
        entry = next(one for one in decode_listing(self.trees[digest]) if one.path == wanted)
        return httpx.Response(200, content=self.blobs[entry.digest] + self.spoil)

    @staticmethod
    def json(record: Any) -> httpx.Response:
        return httpx.Response(200, content=msgspec.json.encode(record))


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def connection(server: Server) -> Connection:
    return Connection(Login("http://127.0.0.1:1", "t"), transport=httpx.MockTransport(server))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "src"
    (root / "deep").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "a.txt").write_bytes(b"same")
    (root / "deep" / "b.txt").write_bytes(b"same")
    (root / "run.sh").write_bytes(b"#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "nothing").write_bytes(b"")
    (root / "large.bin").write_bytes(os.urandom(module.SMALL_BYTES + 1))
    (root / "损失 #?&%.txt").write_bytes(b"name")
    (root / os.fsdecode(b"no text \xff\xfe")).write_bytes(b"bytes")
    (root / "link").symlink_to("deep/b.txt")
    return root


def test_a_folder_goes_there_and_back_byte_for_byte(
    server: Server, connection: Connection, folder: Path, tmp_path: Path
) -> None:
    seen: list[tuple[int, int]] = []
    digest = module.push(connection, scan(folder), on_progress=lambda done, total: seen.append((done, total)))
    pull(connection, digest, tmp_path / "back")
    assert scan(tmp_path / "back").info.digest == digest
    assert (tmp_path / "back" / "run.sh").stat().st_mode & 0o111
    assert seen[0][0] == 0 and seen[-1][0] == seen[-1][1] > 0


@pytest.mark.parametrize("name", ["../x", "a/b", "", "a#b", "-x", "\udcff"])
def test_a_name_that_none_can_have_is_refused_before_anything_is_sent(
    server: Server, folder: Path, tmp_path: Path, name: str
) -> None:
    client = Client("http://127.0.0.1:1", token="t", transport=httpx.MockTransport(server))
    with pytest.raises(BadInput, match="cannot be the name of a dataset"):
        client.data.add(name, folder)
    with pytest.raises(BadInput, match="cannot be the name of a model"):
        client.models.register(name, "demo#1")
    assert server.calls == []


def test_what_the_store_has_is_not_sent_again(server: Server, connection: Connection, folder: Path) -> None:
    module.push(connection, scan(folder))
    server.calls.clear()
    (folder / "new").write_bytes(b"new")
    module.push(connection, scan(folder))
    assert server.calls == ["POST /api/v1/blobs/has", "POST /api/v1/blobs", "PUT /api/v1/trees/"]
    server.calls.clear()
    module.push(connection, scan(folder))
    assert "POST /api/v1/blobs" not in server.calls


def test_small_files_travel_in_bounded_batches(
    server: Server, connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH_BYTES", 1000)
    for number in range(50):
        (tmp_path / str(number)).write_bytes(number.to_bytes(2, "little") * 50)
    module.push(connection, scan(tmp_path))
    assert 5 <= server.calls.count("POST /api/v1/blobs") <= 10


def test_a_file_that_changes_meanwhile_is_named(server: Server, connection: Connection, folder: Path) -> None:
    found = scan(folder)
    (folder / "a.txt").write_bytes(b"other")
    (folder / "deep" / "b.txt").write_bytes(b"other")
    with pytest.raises(Conflict, match="was changed"):
        module.push(connection, found)
    assert server.trees == {}


def test_a_damaged_file_leaves_nothing_behind(
    server: Server, connection: Connection, folder: Path, tmp_path: Path
) -> None:
    digest = module.push(connection, scan(folder))
    server.spoil = b"!"
    with pytest.raises(Damaged):
        pull(connection, digest, tmp_path / "back")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["src"]


def test_a_damaged_listing_is_not_believed(
    server: Server, connection: Connection, folder: Path, tmp_path: Path
) -> None:
    digest = module.push(connection, scan(folder))
    server.trees[digest] += b"x"
    with pytest.raises(Damaged):
        pull(connection, digest, tmp_path / "back")


def test_a_model_with_pickles_is_refused_unless_trusted(server: Server, folder: Path, tmp_path: Path) -> None:
    (folder / "model.pt").write_bytes(b"pickle")
    client = Client("http://127.0.0.1:1", "t", transport=httpx.MockTransport(server))
    digest = module.push(client.connection, scan(folder))
    version = ModelVersionView(model="m", version=1, digest=digest)
    client.models.show = lambda name: ModelView(name="m", space="default", latest=1, versions=[version])  # type: ignore[method-assign]
    with pytest.raises(BadInput, match=r"model\.pt"):
        client.models.pull("m@1", tmp_path / "m")
    assert not (tmp_path / "m").exists()
    client.models.pull("m@1", tmp_path / "m", trust=True)
    assert (tmp_path / "m" / "model.pt").exists()


def test_an_artifact_is_checked_against_the_record(server: Server, tmp_path: Path) -> None:
    server.blobs["artifact"] = b"hello"
    client = Client("http://127.0.0.1:1", "t", transport=httpx.MockTransport(server))
    known = [
        ArtifactView(
            path="a/report.txt", kind="text", size_bytes=5, file_digest=FileDigest(blake3(b"hello").hexdigest())
        )
    ]
    assert client.data.download_artifact("r", "a/report.txt", tmp_path, known).read_bytes() == b"hello"
    server.spoil = b"!"
    with pytest.raises(Damaged):
        client.data.download_artifact("r", "a/report.txt", tmp_path / "other.txt", known)
    with pytest.raises(NotFound):
        client.data.download_artifact("r", "nope", tmp_path, known)
    assert [path.name for path in tmp_path.iterdir()] == ["report.txt"]
