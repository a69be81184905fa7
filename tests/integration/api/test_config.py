"""Where the token lies: in a file that only its owner reads, in the form that the server writes too."""

import json
from pathlib import Path

import pytest

from trackbed.base.errors import Unauthenticated
from trackbed.client import config
from trackbed.client.config import Login


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRACKBED_HOME", str(tmp_path))
    monkeypatch.delenv("TRACKBED_URL", raising=False)
    monkeypatch.delenv("TRACKBED_TOKEN", raising=False)
    return tmp_path


def test_without_anything_the_way_out_is_told() -> None:
    assert config.find() is None
    with pytest.raises(Unauthenticated, match="trackbed up"):
        config.need()


def test_a_login_is_kept_for_its_server_and_is_the_default() -> None:
    config.remember(Login("http://a:1", "tbp_a"))
    config.remember(Login("http://b:2/", "tbp_b"))
    assert config.find() == Login("http://b:2", "tbp_b")
    assert config.find("a:1") == Login("http://a:1", "tbp_a")
    assert config.find("http://c:3") == Login("http://c:3", "")


def test_only_its_owner_reads_the_file(home: Path) -> None:
    config.remember(Login("http://a:1", "tbp_a"))
    assert config.credentials_path().stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (home / "client").iterdir()] == ["credentials.json"]


def test_what_the_server_wrote_is_read() -> None:
    path = config.credentials_path()
    path.parent.mkdir()
    path.write_text(json.dumps({"url": "http://a:1", "token": "tbp_a"}))
    assert config.find() == Login("http://a:1", "tbp_a")


def test_the_environment_wins_and_lends_its_token_to_no_other_server(monkeypatch: pytest.MonkeyPatch) -> None:
    config.remember(Login("http://a:1", "tbp_a"))
    monkeypatch.setenv("TRACKBED_URL", "http://relay:9")
    monkeypatch.setenv("TRACKBED_TOKEN", "secret")
    assert config.find() == Login("http://relay:9", "secret")
    assert config.find("http://a:1") == Login("http://a:1", "tbp_a")


def test_forgetting_drops_the_token_only_of_that_server() -> None:
    config.remember(Login("http://a:1", "tbp_a"))
    config.remember(Login("http://b:2", "tbp_b"))
    assert config.forget("http://b:2") and not config.forget("http://b:2")
    assert config.find() is None
    assert config.find("http://a:1") == Login("http://a:1", "tbp_a")


@pytest.mark.parametrize("text", ["", "[]", "{", '{"url": 3, "servers": []}', '{"url": "http://a:1"}'])
def test_a_broken_file_is_no_login(text: str) -> None:
    path = config.credentials_path()
    path.parent.mkdir()
    path.write_text(text)
    assert config.find() in (None, Login("http://a:1", ""))
