"""Blobs, trees, datasets and models over the real application: possession, walls, ranges, limits."""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
import pytest
from sqlalchemy import update

from trackbed import access
from trackbed.base import faults
from trackbed.base.ids import Digest, FileDigest
from trackbed.domain.scope import SYSTEM
from trackbed.formats.tree import Entry, encode_listing, file_digest, tree_digest
from trackbed.registry import service as registry
from trackbed.server import main
from trackbed.server.app import Settings
from trackbed.server.installation import first_admin
from trackbed.tracking.runs_tables import run as run_table

BIG = bytes(range(256)) * 10_000


class House:
    def __init__(self, home: Path) -> None:
        self.app = main.open_app(Settings(home=home, loops=False, cards=1))
        self.loop = asyncio.new_event_loop()
        transport = httpx.ASGITransport(main.build_app(self.app))  # pyright: ignore[reportArgumentType]
        self.client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")
        self.admin = self.app.db.write(
            lambda tx: access.issue_token(tx, SYSTEM, person_id=first_admin(tx)), actor=SYSTEM.actor
        ).secret
        self.json("POST", "/api/v1/spaces", self.admin, {"name": "vision", "accept_one_trust_domain": True})
        self.ada = self.person("ada", default="member")
        self.bob = self.person("bob", vision="member", default="")
        self.eve = self.person("eve", default="viewer")

    def person(self, name: str, **roles: str) -> str:
        self.json("POST", "/api/v1/people", self.admin, {"name": name})
        for space, role in roles.items():
            self.json("PUT", f"/api/v1/spaces/{space}/members", self.admin, {"person": name, "role": role})
        return self.json("POST", "/api/v1/tokens", self.admin, {"person": name})["secret"]

    def ask(self, method: str, path: str, token: str, **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}", **more.pop("headers", {})}
        return self.loop.run_until_complete(self.client.request(method, path, headers=headers, **more))

    def json(self, method: str, path: str, token: str, body: Any = None) -> Any:
        content = msgspec.json.encode(body) if body is not None else None
        answer = self.ask(method, path, token, content=content)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def code(self, method: str, path: str, token: str, **more: Any) -> tuple[int, str]:
        answer = self.ask(method, path, token, **more)
        return answer.status_code, answer.json()["code"]

    def send(self, token: str, files: dict[bytes, bytes]) -> Digest:
        """Blobs and listing, as a client does it."""
        self.json_batch(token, *files.values())
        listing = encode_listing(
            [Entry(path, "f", False, len(data), file_digest(data)) for path, data in files.items()]
        )
        digest = tree_digest(listing)
        self.json("PUT", f"/api/v1/trees/{digest}", token, {"listing": base64.b64encode(listing).decode()})
        return digest

    def json_batch(self, token: str, *blobs: bytes) -> Any:
        answer = self.ask("POST", "/api/v1/blobs", token, content=batch(*blobs))
        assert answer.is_success, answer.text
        return answer.json()

    def add(self, token: str, name: str, files: dict[bytes, bytes], space: str = "default") -> Digest:
        digest = self.send(token, files)
        self.json("POST", f"/api/v1/datasets/{name}/versions", token, {"digest": digest, "space": space})
        return digest


def batch(*blobs: bytes) -> bytes:
    return b"".join(bytes.fromhex(file_digest(data)) + len(data).to_bytes(8, "little") + data for data in blobs)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    made = House(tmp_path_factory.mktemp("home"))
    yield made
    made.loop.run_until_complete(made.client.aclose())
    made.loop.close()
    made.app.db.close()


def test_a_dataset_goes_in_and_comes_out_byte_for_byte(house: House):
    files = {b"a": b"one", b"d/\xff:\n": BIG[:5000], "d/损失 &?.txt".encode(): b"\0\r\n", b"e": b""}
    digest = house.add(house.ada, "round", files)
    got = house.ask("GET", f"/api/v1/trees/{digest}/listing", house.eve)
    assert tree_digest(got.content) == digest
    for path, data in files.items():
        for query in (f"path={quote(path)}", f"path_hex={path.hex()}"):
            answer = house.ask("GET", f"/api/v1/trees/{digest}/content?{query}", house.eve)
            assert (answer.status_code, answer.content) == (200, data)
            assert answer.headers["content-disposition"].startswith("attachment")
            assert "sandbox" in answer.headers["content-security-policy"]


def test_only_what_is_missing_is_asked_for(house: House):
    known, fresh = file_digest(b"known to ada"), file_digest(b"fresh")
    assert house.json_batch(house.ada, b"known to ada") == {"stored": 1}
    assert house.json_batch(house.ada, b"known to ada") == {"stored": 0}
    body = {"file_digests": [fresh, known, fresh]}
    assert house.json("POST", "/api/v1/blobs/has", house.ada, body) == {"missing": [fresh]}


def test_a_blob_of_any_size_streams_in(house: House):
    data = BIG * 8
    digest = file_digest(data)

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(data), 100_000):
            yield data[at : at + 100_000]

    for _ in range(2):
        assert house.ask("PUT", f"/api/v1/blobs/{digest}", house.ada, content=pieces()).status_code == 204
    assert house.app.store.open_range(digest).read() == data


@pytest.mark.parametrize("data", [b"other", BIG * 2])
def test_bytes_that_are_not_what_was_said_are_refused(house: House, data: bytes):
    house.json_batch(house.ada, b"said")
    for said in (file_digest(b"said"), "0" * 64):
        assert house.code("PUT", f"/api/v1/blobs/{said}", house.ada, content=data) == (400, "storage_digest_mismatch")
    assert house.app.store.missing([FileDigest("0" * 64)])
    wrong = bytes(32) + len(data).to_bytes(8, "little") + data
    assert house.code("POST", "/api/v1/blobs", house.ada, content=batch(b"good one") + wrong) == (
        400,
        "storage_digest_mismatch",
    )
    assert house.app.store.missing([file_digest(b"good one")]), "all or nothing"


@pytest.mark.parametrize("cut", [1, 31, 39, 41])
def test_a_torn_batch_is_refused(house: House, cut: int):
    assert house.code("POST", "/api/v1/blobs", house.ada, content=batch(b"whole", b"torn")[: 45 + cut]) == (
        400,
        "blobs_batch_torn",
    )


def test_a_batch_over_the_limit_is_refused(house: House):
    assert house.ask("POST", "/api/v1/blobs", house.ada, content=batch(b"\0" * (17 << 20))).status_code == 413


def test_a_full_disk_is_507_and_nothing_is_kept(house: House):
    faults.arm("object.written=ENOSPC")
    try:
        assert house.code("POST", "/api/v1/blobs", house.ada, content=batch(b"no room")) == (507, "storage_full")
    finally:
        faults.arm("")
    assert house.app.store.missing([file_digest(b"no room")])


@pytest.mark.parametrize(
    ("asked", "status", "start", "end"),
    [("bytes=0-9", 206, 0, 10), ("bytes=5-", 206, 5, 2_560_000), ("bytes=-7", 206, 2_559_993, 2_560_000),
     ("bytes=2559999-9999999", 206, 2_559_999, 2_560_000), ("bytes=0-1,5-6", 200, 0, 2_560_000), ("lines=1-2", 200, 0, 2_560_000), ("bytes=-", 200, 0, 2_560_000)],
)  # fmt: skip
def test_a_range_is_that_stretch(house: House, asked: str, status: int, start: int, end: int):
    digest = house.add(house.ada, "ranges", {b"big": BIG})
    answer = house.ask("GET", f"/api/v1/trees/{digest}/content?path=big", house.ada, headers={"Range": asked})
    assert (answer.status_code, answer.content) == (status, BIG[start:end])
    if status == 206:
        assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/{len(BIG)}"
    stale = {"Range": asked, "If-Range": '"other"'}
    assert house.ask("GET", f"/api/v1/trees/{digest}/content?path=big", house.ada, headers=stale).content == BIG


@pytest.mark.parametrize("asked", ["bytes=2560000-", "bytes=9999999-9999999", "bytes=5-3"])
def test_a_range_behind_the_end_is_416(house: House, asked: str):
    digest = house.add(house.ada, "ranges", {b"big": BIG})
    got = house.code("GET", f"/api/v1/trees/{digest}/content?path=big", house.ada, headers={"Range": asked})
    assert got == (416, "storage_range_bad")


def test_pages_of_a_tree_join_to_the_whole(house: House):
    digest = house.add(house.ada, "pages", {b"%03d" % n: b"%d" % n for n in range(25)} | {b"\xff": b"x"})
    seen: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = house.json("GET", f"/api/v1/trees/{digest}?limit=10&cursor={cursor}", house.ada)
        assert (page["files"], page["size_bytes"]) == (26, 41)
        seen += page["entries"]
        cursor = page.get("next", "")
        if not cursor:
            break
    assert len(seen) == 26
    assert seen[0] == {"path": "000", "size_bytes": 1, "file_digest": file_digest(b"0")}
    assert seen[-1]["path_hex"] == "ff"


def test_a_bare_digest_opens_nothing(house: House):
    digest = house.send(house.ada, {b"loose": b"loose"})
    for token in (house.ada, house.eve, house.bob, house.admin):
        for rest in ("", "/listing", "/content?path=loose"):
            assert house.code("GET", f"/api/v1/trees/{digest}{rest}", token) == (404, "not_found")
    house.json("POST", "/api/v1/datasets/loose/versions", house.ada, {"digest": digest})
    for token, status in ((house.ada, 200), (house.eve, 200), (house.admin, 200), (house.bob, 404)):
        assert house.ask("GET", f"/api/v1/trees/{digest}/content?path=loose", token).status_code == status


def test_what_another_space_has_cannot_be_claimed_by_its_digest(house: House):
    secret = b"the secret of space default"
    tree = house.add(house.ada, "secret", {b"s": secret})
    stolen = file_digest(secret)
    assert house.json("POST", "/api/v1/blobs/has", house.bob, {"file_digests": [stolen]}) == {"missing": [stolen]}
    listing = encode_listing([Entry(b"mine", "f", False, len(secret), stolen)])
    body = msgspec.json.encode({"listing": base64.b64encode(listing).decode()})
    assert house.code("PUT", f"/api/v1/trees/{tree_digest(listing)}", house.bob, content=body) == (
        404,
        "storage_blobs_missing",
    )
    body = msgspec.json.encode({"digest": tree, "space": "vision"})
    assert house.code("POST", "/api/v1/datasets/mine/versions", house.bob, content=body) == (
        404,
        "storage_tree_missing",
    )
    house.add(house.bob, "mine", {b"mine": secret}, "vision")  # who has the bytes may add them


@pytest.mark.parametrize("path", ["../../FORMAT", "/etc/passwd", "a/../a", "", "..", "d"])
def test_a_path_is_looked_up_in_the_listing_and_nowhere_else(house: House, path: str):
    digest = house.add(house.ada, "paths", {b"a": b"1", b"d/x": b"2"})
    assert house.code("GET", f"/api/v1/trees/{digest}/content?path={quote(path, safe='')}", house.ada) == (
        404,
        "tree_path_unknown",
    )


@pytest.mark.parametrize("digest", ["b3:" + "A" * 64, "b3:..", "x" * 67, "0" * 64])
def test_what_is_no_digest_is_refused(house: House, digest: str):
    assert house.code("GET", f"/api/v1/trees/{digest}", house.ada) == (400, "storage_digest_bad")


def test_a_listing_that_leads_out_is_refused(house: House):
    house.json_batch(house.ada, b"x")
    for evil in (
        b"l\x01\0\0\0l\x04\0\0\0/etc",
        b"f\x04\0\0\0../x" + (1).to_bytes(8, "little") + bytes.fromhex(file_digest(b"x")),
    ):
        listing = b"trackbed tree 1\n" + evil
        body = msgspec.json.encode({"listing": base64.b64encode(listing).decode()})
        status, code = house.code("PUT", f"/api/v1/trees/{tree_digest(listing)}", house.ada, content=body)
        assert (status, code in ("storage_link_outside", "tree_path_bad")) == (400, True)


def test_datasets_are_listed_shown_and_resolved(house: House):
    house.add(house.ada, "steps", {b"a": b"1"})
    house.add(house.ada, "steps", {b"a": b"2"})
    again = house.json(
        "POST", "/api/v1/datasets/steps/versions", house.ada, {"digest": house.send(house.ada, {b"a": b"2"})}
    )
    assert (again["version"], again["unchanged"]) == (2, True)
    shown = house.json("GET", "/api/v1/datasets/steps", house.eve)
    assert (shown["latest"], [one["version"] for one in shown["versions"]]) == (2, [2, 1])
    assert house.json("GET", "/api/v1/datasets/steps/resolve?ref=steps@1", house.eve)["version"] == 1
    assert house.json("GET", "/api/v1/datasets/steps/resolve", house.eve)["version"] == 2
    assert "steps" in {one["name"] for one in house.json("GET", "/api/v1/datasets", house.eve)}
    assert {one["space"] for one in house.json("GET", "/api/v1/datasets", house.bob)} <= {"vision"}
    assert house.code("GET", "/api/v1/datasets/steps", house.bob)[0] == 404


def test_a_dataset_needs_files_and_one_of_kind_file_has_one(house: House):
    def commit(digest: str, kind: str) -> tuple[int, str]:
        body = msgspec.json.encode({"digest": digest, "kind": kind})
        return house.code("POST", "/api/v1/datasets/odd/versions", house.ada, content=body)

    assert commit(house.send(house.ada, {}), "folder") == (400, "dataset_empty")
    assert commit(house.send(house.ada, {b"a": b"1", b"b": b"2"}), "file") == (400, "dataset_not_one_file")
    assert commit("b3:" + "9" * 64, "folder") == (404, "storage_tree_missing")


def test_a_viewer_writes_nothing(house: House):
    assert house.code("POST", "/api/v1/blobs", house.eve, content=batch(b"x"))[0] == 403
    assert house.code("PUT", f"/api/v1/blobs/{file_digest(b'x')}", house.eve, content=b"x")[0] == 403


def test_an_attempt_reads_what_its_run_pinned_and_no_other_space(house: House):
    pinned = house.add(house.bob, "pinned", {b"p": b"pinned"}, "vision")
    other = house.add(house.bob, "other", {b"o": b"other"}, "vision")
    made = house.json("POST", "/api/v1/outside-runs", house.ada, {"project": "demo", "name": "job"})
    spec = house.json("GET", f"/api/v1/runs/{made['id']}", house.ada)["spec"]
    spec["data"] = {"corpus": {"ref": "vision/pinned@1", "digest": pinned}}

    def pin(tx: Any) -> str:
        tx.execute(
            update(run_table).where(run_table.c.id == made["id"]).values(spec=msgspec.json.encode(spec).decode())
        )
        return access.issue_attempt_token(tx, "att_x", made["id"], access.space_named(tx, SYSTEM).id)

    token = house.app.db.write(pin, actor=SYSTEM.actor)
    assert house.ask("GET", f"/api/v1/trees/{pinned}/content?path=p", token).content == b"pinned"
    assert house.code("GET", f"/api/v1/trees/{other}/content?path=o", token) == (404, "not_found")


def test_models_are_shown_and_their_aliases_move_by_compare_and_set(house: House):
    digest = house.send(house.ada, {b"model.safetensors": b"weights"})
    house.app.db.write(
        lambda tx: registry.register(tx, SYSTEM, "gpt", digest, size_bytes=7, run_id="run_x", provenance={"seed": 17}),
        actor=SYSTEM.actor,
    )
    assert house.json("GET", "/api/v1/models/gpt", house.eve)["versions"][0]["provenance"] == {"seed": 17}
    assert house.ask("GET", f"/api/v1/trees/{digest}/content?path=model.safetensors", house.eve).content == b"weights"
    moved = house.json("PUT", "/api/v1/models/gpt/aliases/prod", house.admin, {"version": 1, "expected": None})
    assert moved["aliases"] == {"prod": 1}
    body = msgspec.json.encode({"version": 1, "expected": None})
    assert house.code("PUT", "/api/v1/models/gpt/aliases/prod", house.admin, content=body) == (409, "model_alias_moved")
    assert house.code("PUT", "/api/v1/models/gpt/aliases/prod", house.ada, content=body)[0] == 403
    assert [one["name"] for one in house.json("GET", "/api/v1/models", house.eve)] == ["gpt"]
    assert house.json("GET", "/api/v1/models", house.bob) == []
    assert house.code("GET", "/api/v1/models/gpt", house.bob)[0] == 404
