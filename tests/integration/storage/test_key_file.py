"""The master key on disk: made once, never replaced by accident, changed without a moment in which nothing opens the store."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trackbed.base.errors import Denied, NotFound
from trackbed.storage.key_file import KeyFile
from trackbed.storage.open import Options, open_backend, open_chunks
from trackbed.storage.ring import read_kit

_ROTATE = """
import sys
from pathlib import Path
from trackbed.storage.key_file import KeyFile
from trackbed.storage.open import open_backend
KeyFile(Path(sys.argv[1])).rotate(open_backend(sys.argv[2]))
"""


def put(keys: KeyFile, url: str) -> str:
    store = open_chunks(url, keys.master(open_backend(url)))
    digest, _ = store.put_blob(b"kept through it all")
    store.close()
    return digest


def read(keys: KeyFile, url: str, digest: str, cache: Path) -> bytes:
    store = open_chunks(url, keys.master(open_backend(url)), Options(cache=cache))
    try:
        return store.open_range(digest).read()  # type: ignore[arg-type]
    finally:
        store.close()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return (tmp_path / "store").as_uri()


@pytest.fixture
def keys(tmp_path: Path) -> KeyFile:
    return KeyFile(tmp_path / "keys")


def test_the_first_start_makes_a_key_that_only_its_owner_reads(keys: KeyFile, url: str):
    put(keys, url)
    assert keys.path.stat().st_mode & 0o777 == 0o600
    assert keys.path.parent.stat().st_mode & 0o777 == 0o700


def test_a_lost_key_is_never_replaced_by_a_new_one(keys: KeyFile, url: str):
    put(keys, url)
    keys.path.unlink()
    with pytest.raises(NotFound) as lost:
        keys.master(open_backend(url))
    assert lost.value.code == "key_missing"
    assert not keys.path.exists()


def test_a_key_that_others_can_read_is_refused(keys: KeyFile, url: str):
    put(keys, url)
    keys.path.chmod(0o644)
    with pytest.raises(Denied):
        keys.master(open_backend(url))


def test_after_a_rotation_the_old_key_opens_nothing_and_the_data_is_there(keys: KeyFile, url: str, tmp_path: Path):
    digest = put(keys, url)
    old = keys.master(open_backend(url))
    first, second = keys.rotate(open_backend(url))
    assert first != second
    with pytest.raises(Denied):
        open_chunks(url, old)
    assert read(keys, url, digest, tmp_path / "c") == b"kept through it all"


def test_a_rotation_killed_at_any_step_leaves_a_key_that_opens(tmp_path: Path):
    step = 1
    while True:
        home = tmp_path / str(step)
        keys, url = KeyFile(home / "keys"), (home / "store").as_uri()
        digest = put(keys, url)
        done = subprocess.run(
            [sys.executable, "-c", _ROTATE, home / "keys", url],
            env={**os.environ, "TRACKBED_FAULT": f"any@{step}=kill"},
        )
        assert read(keys, url, digest, home / "c") == b"kept through it all", step
        keys.rotate(open_backend(url))
        assert read(keys, url, digest, home / "d") == b"kept through it all", step
        assert not keys.path.with_name("master.key.next").exists()
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
        step += 1
    assert step > 10


def test_the_recovery_kit_and_the_store_are_enough(keys: KeyFile, url: str, tmp_path: Path):
    digest = put(keys, url)
    backend = open_backend(url)
    assert not keys.exported
    kit = keys.kit(backend)
    keys.note_export(backend)
    assert keys.exported
    store = open_chunks(url, read_kit(kit), Options(cache=tmp_path / "elsewhere"))
    assert store.open_range(digest).read() == b"kept through it all"  # type: ignore[arg-type]
    store.close()
    keys.rotate(backend)
    assert not keys.exported
