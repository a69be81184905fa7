"""One store domain a space: who writes where, who reads across, what an older installation keeps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from control_world import World
from control_world import world as open_world
from litestar.testing import TestClient

from trackbed import access
from trackbed.base.errors import NotFound
from trackbed.base.ids import Digest
from trackbed.domain.scope import SYSTEM
from trackbed.server.domains import Domains, SpaceStore
from trackbed.server.flows import upkeep
from trackbed.server.flows.collect import collect_store
from trackbed.server.main import build_app, open_sealed
from trackbed.storage.scan import scan
from trackbed.supervisor.reaching import Reaching
from trackbed.wire.data import CommitTree, DatasetCommit
from trackbed.wire.store import CollectRequest, StoreGrant


def with_domains(world: World) -> Domains:
    app = world.app
    first = open_sealed(app.settings)
    domains = Domains(app.db, first, lambda domain: open_sealed(app.settings, domain))
    app.store, app.domains = SpaceStore(domains, first), domains
    domains.prepare()
    return domains


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path) as world:
        with_domains(world)
        yield world


def new_space(world: World, name: str) -> str:
    return world.write(lambda tx: access.create_space(tx, SYSTEM, name=name, accepted=True).id, SYSTEM.actor)


def data(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rows.txt").write_bytes(b"".join(b"row %d\n" % number for number in range(60_000)))
    return folder


class Caller:
    """The API under one token."""

    def __init__(self, client: Any, token: str) -> None:
        self.client, self.headers = client, {"Authorization": f"Bearer {token}", "Host": "127.0.0.1"}

    def call(self, method: str, route: str, content: bytes = b"", *, status: int = 200, **query: str) -> Any:
        answer = self.client.request(
            method, "/api/v1" + route, content=content, headers={**self.headers, "Content-Type": "application/json"}, params=query
        )  # fmt: skip
        assert answer.status_code == status, answer.text
        return answer

    def add(self, name: str, folder: Path, space: str) -> str:
        """What `data add --space` does: send what is missing, commit the tree, make a version."""
        found = scan(folder)
        lacking = self.call("POST", "/blobs/has", msgspec.json.encode({"file_digests": list(found.files)}), space=space)
        for digest in lacking.json()["missing"]:
            self.call("PUT", f"/blobs/{digest}", found.files[digest].read_bytes(), status=204, space=space)
        tree = msgspec.json.encode(CommitTree(listing=found.listing))
        self.call("PUT", f"/trees/{found.info.digest}", tree, space=space)
        body = msgspec.json.encode(DatasetCommit(digest=found.info.digest, space=space))
        self.call("POST", f"/datasets/{name}/versions", body, status=201)
        return found.info.digest


def test_the_spaces_of_an_older_installation_keep_its_one_domain_and_new_ones_get_their_own(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        old = new_space(world, "old")
        domains = with_domains(world)
        assert domains.own(old) is domains.own(world.space_id) is domains.every()[""]
        fresh = new_space(world, "fresh")
        assert domains.own(fresh) is not domains.own(old)
        again = Domains(world.app.db, domains.own(old), lambda domain: open_sealed(world.app.settings, domain))
        assert again.id_of(fresh) == domains.id_of(fresh) != ""
        assert "store.domain_made" in [row.kind for row in world.app.db.events(0)]


def test_the_same_data_in_two_spaces_is_sent_and_sealed_twice_and_read_across(bed: World, tmp_path: Path) -> None:
    team = new_space(bed, "team")
    token = bed.write(
        lambda tx: access.issue_token(tx, SYSTEM, person_id=bed.ann.actor.id, label="t").secret, SYSTEM.actor
    )
    assert bed.app.domains is not None
    with TestClient(build_app(bed.app)) as client:
        ann = Caller(client, token)
        digest = ann.add("d", data(tmp_path / "in"), "default")
        assert not bed.app.domains.own(team).has_tree(Digest(digest))
        assert ann.add("d", tmp_path / "in", "team") == digest
        first, second = bed.app.domains.own(bed.space_id), bed.app.domains.own(team)
        assert first.has_tree(Digest(digest)) and second.has_tree(Digest(digest))
        names = [{info.name for info in store.backend.list("packs/")} for store in (first, second)]
        assert not names[0] & names[1]
        only = data(tmp_path / "only")
        (only / "more.txt").write_text("team only")
        digest = ann.add("t", only, "team")
        assert not first.has_tree(Digest(digest))
        answer = ann.call("GET", f"/trees/{digest}/content", path="more.txt")
        assert answer.content == b"team only", "the server opens what another domain holds"


def test_a_supervisor_gets_the_key_of_its_own_domain_only_and_reaches_what_it_pinned_elsewhere(
    bed: World, tmp_path: Path
) -> None:
    team = new_space(bed, "team")
    token = bed.write(
        lambda tx: access.issue_token(tx, SYSTEM, person_id=bed.ann.actor.id, label="t").secret, SYSTEM.actor
    )
    assert bed.app.domains is not None
    with TestClient(build_app(bed.app)) as client:
        digest = Caller(client, token).add("d", data(tmp_path / "in"), "team")
        from trackbed.wire.spec import DataPin

        run_id = bed.submit(data={"d": DataPin(ref="team/d@1")}).run_id
        bed.plan()
        attempt = bed.newest(run_id)
        mine = Caller(client, bed.engine.processes[attempt].assignment.token)
        grant = msgspec.json.decode(mine.call("GET", f"/attempts/{attempt}/grant").content, type=StoreGrant)
        own, other = bed.app.domains.own(bed.space_id), bed.app.domains.own(team)
        assert set(grant.secrets.values()) == {secret.hex() for secret in own.keys.secrets().values()}
        assert not set(grant.secrets.values()) & {secret.hex() for secret in other.keys.secrets().values()}

        class Server:
            """`supervisor.lease.Server`, without a socket; the first answer breaks off."""

            broken = False

            @contextmanager
            def stream(
                self, path: str, query: dict[str, str], *, headers: dict[str, str] | None = None
            ) -> Iterator[Any]:
                asked = {**mine.headers, **(headers or {})}
                with client.stream("GET", "/api/v1" + path, params=query, headers=asked) as answer:
                    yield answer

            def close(self) -> None: ...

        reach = Reaching(own, Server)  # type: ignore[arg-type]
        assert [entry.path for entry in reach.read_listing(Digest(digest))] == [b"rows.txt"]
        reach.get_tree(Digest(digest), tmp_path / "out", read_only=True)
        assert (tmp_path / "out" / "rows.txt").read_bytes() == (tmp_path / "in" / "rows.txt").read_bytes()
        unknown = Digest("b3:" + "0" * 64)
        with pytest.raises(NotFound):
            reach.get_tree(unknown, tmp_path / "no")


def test_collecting_and_measuring_cover_every_domain(bed: World, tmp_path: Path) -> None:
    team = new_space(bed, "team")
    assert bed.app.domains is not None
    kept = bed.app.store_of(team).put_tree(data(tmp_path / "in"))
    measured = upkeep.room_of(bed.app, bed.app.db.read(upkeep.settings))
    assert measured.stored > 1000
    for _ in range(3):
        collect_store(bed.app, CollectRequest(grace_s=0.0))
    assert not bed.app.domains.own(team).has_tree(kept.digest)
    assert not list(bed.app.domains.own(team).backend.list("packs/"))


def test_files_of_another_domain_are_sealed_anew_for_a_tree_of_this_one(bed: World, tmp_path: Path) -> None:
    team = new_space(bed, "team")
    assert bed.app.domains is not None
    digest = bed.app.store.put_tree(data(tmp_path / "in")).digest
    theirs = bed.app.store_of(team)
    assert theirs.has_tree(digest), "read through"
    theirs.put_listing(bed.app.store.listing(digest))
    assert bed.app.domains.own(team).has_tree(digest)
    bed.app.domains.own(team).get_tree(digest, tmp_path / "out")
