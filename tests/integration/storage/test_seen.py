"""Status of an unchanged folder reads no content, and never takes an old digest for a changed file."""

import os
import time
from pathlib import Path

import pytest

from trackbed.storage import scan as scanning
from trackbed.storage.scan import find, scan
from trackbed.storage.seen import Seen


def _later() -> int:
    return time.time_ns() + 10_000_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "in"
    (root / "sub").mkdir(parents=True)
    for number in range(50):
        (root / "sub" / f"{number}").write_bytes(b"%d" % number)
    return root


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    read: list[bytes] = []
    real = scanning.hash_file

    def watched(path: bytes, **rest: object):
        read.append(path)
        return real(path, **rest)

    monkeypatch.setattr(scanning, "hash_file", watched)
    return read


def test_an_unchanged_folder_is_not_read_again(folder: Path, cache: Path, reads: list[bytes]):
    first = scan(folder, seen=Seen(cache, folder, clock_ns=_later))
    assert len(reads) == 50
    seen = Seen(cache, folder)
    assert scan(folder, seen=seen).info == first.info
    assert (len(reads), seen.hits, seen.misses) == (50, 50, 0)
    assert Seen(cache, folder).changes({one.path: one.state for one in find(folder) if one.is_file}).none


def test_only_what_changed_is_read(folder: Path, cache: Path, reads: list[bytes]):
    scan(folder, seen=Seen(cache, folder, clock_ns=_later))
    (folder / "sub" / "7").write_bytes(b"x")
    (folder / "new").write_bytes(b"new")
    (folder / "sub" / "8").unlink()
    change = Seen(cache, folder).changes({one.path: one.state for one in find(folder) if one.is_file})
    assert (change.added, change.changed, change.removed) == ([b"new"], [b"sub/7"], [b"sub/8"])
    reads.clear()
    assert scan(folder, seen=Seen(cache, folder)).info == scan(folder).info
    assert reads[:2] == [os.fsencode(folder / "new"), os.fsencode(folder / "sub" / "7")]


def test_a_write_that_keeps_size_and_mtime_is_noticed_by_its_ctime(folder: Path, cache: Path):
    scan(folder, seen=Seen(cache, folder, clock_ns=_later))
    place = folder / "sub" / "7"
    info = place.stat()
    place.write_bytes(b"8")
    os.utime(place, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert scan(folder, seen=Seen(cache, folder)).info == scan(folder).info


def test_a_file_put_in_place_of_another_is_noticed_by_its_inode(folder: Path, cache: Path):
    scan(folder, seen=Seen(cache, folder, clock_ns=_later))
    (folder / "sub" / "other").write_bytes(b"8")
    (folder / "sub" / "other").replace(folder / "sub" / "7")
    assert scan(folder, seen=Seen(cache, folder)).info == scan(folder).info


def test_what_was_written_just_before_it_was_read_is_read_again(folder: Path, cache: Path, reads: list[bytes]):
    scan(folder, seen=Seen(cache, folder))
    reads.clear()
    seen = Seen(cache, folder)
    scan(folder, seen=seen)
    assert (len(reads), seen.hits) == (50, 0)


@pytest.mark.parametrize("spoil", ["cut", "flip", "empty", "another folder's"])
def test_a_spoiled_table_means_reading_everything(folder: Path, cache: Path, spoil: str, reads: list[bytes]):
    info = scan(folder, seen=Seen(cache, folder, clock_ns=_later)).info
    (table,) = cache.glob("*.seen")
    data = bytearray(table.read_bytes())
    if spoil == "flip":
        data[len(data) // 2] ^= 1
    table.write_bytes({"cut": bytes(data[:-1]), "flip": bytes(data), "empty": b""}.get(spoil, b"x" * 100))
    reads.clear()
    assert scan(folder, seen=Seen(cache, folder)).info == info
    assert len(reads) == 50
