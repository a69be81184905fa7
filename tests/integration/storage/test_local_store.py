"""A local folder under damage, changes, full disks and kills."""

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from trackbed.base import faults
from trackbed.base.errors import BadInput, Conflict, Damaged, Internal, NotYet, StorageFull
from trackbed.base.ids import Digest
from trackbed.formats.tree import file_digest
from trackbed.storage import LocalStore, NodeCache, open_store
from trackbed.storage.files import remove_tree
from trackbed.testing.trees import Node, read_tree, trees, write_tree

BIG = os.urandom(3 * 1024 * 1024)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store")


@pytest.fixture(autouse=True)
def _no_faults_left() -> Iterator[None]:
    yield
    faults.arm("")


def blob(store: LocalStore, data: bytes) -> Path:
    digest = file_digest(data)
    return store.root / "blobs" / digest[:2] / digest


def flip(path: Path) -> None:
    """One bit, without a trace in size or times."""
    info = path.stat()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def test_what_is_put_is_got_back_whatever_the_tree(store: LocalStore):
    @settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(trees())
    def holds(tree: dict[bytes, Node]) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_tree(folder / "in", tree)
            info = store.put_tree(folder / "in")
            store.get_tree(info.digest, folder / "out")
            assert read_tree(folder / "out") == tree
            assert store.put_tree(folder / "out") == info

    holds()


@pytest.mark.parametrize("data", [b"small", BIG])
def test_a_flipped_bit_is_refused_by_name_and_put_aside(store: LocalStore, tmp_path: Path, data: bytes):
    write_tree(tmp_path / "in", {b"a": (data, False), b"b": (b"sound", False)})
    info = store.put_tree(tmp_path / "in")
    flip(blob(store, data))
    with pytest.raises(Damaged, match=file_digest(data)):
        store.get_tree(info.digest, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")]
    assert store.missing([file_digest(data)]) == [file_digest(data)]
    assert len(list((store.root / "quarantine").iterdir())) == 1
    assert store.put_tree(tmp_path / "in") == info, "the same data heals it"
    store.get_tree(info.digest, tmp_path / "out")


@pytest.mark.parametrize("data", [b"small", BIG])
def test_a_range_of_a_damaged_blob_is_never_given_out(store: LocalStore, data: bytes):
    digest, _ = store.put_blob(data)
    store.open_range(digest, 0, 1).close()
    flip(blob(store, data))
    with pytest.raises(Damaged):
        store.open_range(digest, 2, 1)


def test_a_damaged_listing_is_refused_and_put_aside(store: LocalStore, tmp_path: Path):
    write_tree(tmp_path / "in", {b"a": (b"1", False)})
    digest = store.put_tree(tmp_path / "in").digest
    flip(store.root / "trees" / digest[3:5] / digest[3:])
    with pytest.raises(Damaged, match=digest):
        store.read_listing(digest)
    assert not store.has_tree(digest)


@pytest.mark.parametrize("size", [0, 3, 7])
def test_a_blob_cut_short_is_not_taken_for_the_whole(store: LocalStore, size: int):
    store.put_blob(b"seven b")
    path = blob(store, b"seven b")
    path.chmod(0o644)
    path.write_bytes(b"seven b"[:size])
    store.put_blob(b"seven b")
    with store.open_range(file_digest(b"seven b")) as reader:
        assert reader.read() == b"seven b"


def test_every_fault_of_a_folder_is_named_at_once(store: LocalStore, tmp_path: Path):
    root = tmp_path / "in"
    write_tree(root, {b"ok": (b"1", False), b"out": b"../secret", b"abs": b"/etc/passwd", b"d": {}})
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "d" / "s"))
        with pytest.raises(BadInput) as refused:
            store.put_tree(root)
    text = str(refused.value)
    for part in (
        "The link abs points outside its folder (to /etc/passwd)",
        "The link out",
        "pipe is a pipe",
        "d/s is a socket",
    ):
        assert part in text
    assert not any((store.root / "trees").glob("*/*"))


def test_a_file_that_grows_while_it_is_read_is_noticed(store: LocalStore, tmp_path: Path):
    path = tmp_path / "log"
    path.write_bytes(BIG * 20)
    stop = threading.Event()

    def grow() -> None:
        with path.open("ab", buffering=0) as file:
            while not stop.is_set():
                file.write(b"more")
                time.sleep(0.002)

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        with pytest.raises(Conflict, match="changed while it was read"):
            store.put_tree(path)
    finally:
        stop.set()
        writer.join()
    assert not any((store.root / "tmp").iterdir())


POINTS = ["blob.written", "blob.synced", "blob.renamed", "listing.written", "listing.synced", "listing.renamed"]


@pytest.mark.parametrize("point", POINTS)
def test_a_full_disk_says_so_and_leaves_nothing_aside(store: LocalStore, tmp_path: Path, point: str):
    write_tree(tmp_path / "in", {b"a": (b"1", False), b"b": (BIG, False)})
    faults.arm(f"{point}=ENOSPC")
    with pytest.raises(StorageFull) as full:
        store.put_tree(tmp_path / "in")
    assert str(tmp_path) in str(full.value)
    assert not any((store.root / "tmp").iterdir())
    faults.arm("")
    info = store.put_tree(tmp_path / "in")
    store.get_tree(info.digest, tmp_path / "out")


def test_a_disk_that_refuses_to_sync_is_no_success(store: LocalStore, tmp_path: Path):
    write_tree(tmp_path / "in", {b"a": (b"1", False)})
    faults.arm("blob.written=EIO")
    with pytest.raises(Internal, match="refused an operation"):
        store.put_tree(tmp_path / "in")
    assert store.missing([file_digest(b"1")])


PUT = """
import sys
from pathlib import Path
from trackbed.storage import LocalStore
store = LocalStore(Path(sys.argv[1]) / "store")
info = store.put_tree(Path(sys.argv[1]) / "in")
store.refs.compare_and_set("head", None, info.digest)
store.get_tree(info.digest, Path(sys.argv[1]) / "copy")
print(info.digest)
"""


def test_killed_at_every_step_it_leaves_nothing_half_published(tmp_path: Path):
    write_tree(tmp_path / "in", {b"a": (b"1", True), b"b": (BIG, False), b"d": {b"c": (b"22", False), b"l": b"../a"}})
    whole = read_tree(tmp_path / "in")
    steps = 0
    while True:
        steps += 1
        folder = tmp_path / str(steps)
        folder.mkdir()
        (folder / "in").symlink_to(tmp_path / "in")
        env = {**os.environ, "TRACKBED_FAULT": f"any@{steps}=kill"}
        ended = subprocess.run([sys.executable, "-c", PUT, str(folder)], env=env, capture_output=True, text=True)
        assert ended.returncode in (0, -9), ended.stderr
        store = LocalStore(folder / "store")
        for path in (store.root / "trees").glob("*/*"):
            store.get_tree(Digest(f"b3:{path.name}"), folder / "check" / path.name)
            assert read_tree(folder / "check" / path.name) == whole
        for path in (store.root / "blobs").glob("*/*"):
            assert file_digest(path.read_bytes()) == path.name
        head = store.refs.get("head")
        assert head is None or store.has_tree(Digest(head.value))
        assert not (folder / "copy").exists() or read_tree(folder / "copy") == whole
        if ended.returncode == 0:
            break
        assert store.put_tree(folder / "in").files == 3, "the next one succeeds on what is left"
    assert steps > 12


def test_what_a_killed_writer_left_aside_is_swept_after_a_day(store: LocalStore):
    old, new = store.root / "tmp" / "old.part", store.root / "tmp" / "new.part"
    old.touch()
    new.touch()
    os.utime(old, (0, 0))
    LocalStore(store.root)
    assert (old.exists(), new.exists()) == (False, True)


def test_a_folder_with_other_things_is_no_store(tmp_path: Path):
    (tmp_path / "photo.jpg").touch()
    with pytest.raises(BadInput, match="not a store"):
        LocalStore(tmp_path)


def test_a_store_of_another_version_is_refused(store: LocalStore):
    (store.root / "FORMAT").chmod(0o644)
    (store.root / "FORMAT").write_bytes(b"trackbed store 9\n")
    with pytest.raises(BadInput, match="trackbed store 9"):
        LocalStore(store.root)


@pytest.mark.parametrize("url", ["gs://bucket/x", "/tmp/x", "file://host/x", "file:x"])
def test_another_kind_of_store_is_not_built_yet(url: str):
    with pytest.raises(NotYet):
        open_store(url)


def test_a_url_with_escapes_names_that_folder(tmp_path: Path):
    open_store(f"file://{tmp_path}/a%20b")
    assert (tmp_path / "a b" / "FORMAT").exists()


def test_others_on_the_machine_cannot_look_into_a_store(store: LocalStore):
    assert store.root.stat().st_mode & 0o077 == 0


FETCH = """
import sys
from pathlib import Path
from trackbed.storage import LocalStore, NodeCache
folder = Path(sys.argv[1])
print(NodeCache(folder / "cache", LocalStore(folder / "store")).path_of(sys.argv[2]).stat().st_ino)
"""


class TestNodeCache:
    @pytest.fixture
    def digest(self, store: LocalStore, tmp_path: Path) -> Digest:
        write_tree(tmp_path / "in", {b"a": (b"1", False), b"d": {b"x": (b"2", True), b"l": b"../a"}})
        return store.put_tree(tmp_path / "in").digest

    def test_a_tree_is_fetched_once_and_read_only(self, store: LocalStore, tmp_path: Path, digest: Digest):
        cache = NodeCache(tmp_path / "cache", store)
        assert not cache.has(digest)
        path = cache.path_of(digest)
        assert read_tree(path) == read_tree(tmp_path / "in")
        assert path.stat().st_mode & 0o222 == 0
        remove_tree(store.root)
        assert NodeCache(tmp_path / "cache", store).path_of(digest) == path

    def test_processes_that_ask_at_once_fetch_once(self, store: LocalStore, tmp_path: Path, digest: Digest):
        command = [sys.executable, "-c", FETCH, str(tmp_path), digest]
        children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
        inodes = {child.communicate()[0] for child in children}
        assert len(inodes) == 1
        assert inodes != {""}

    def test_after_a_restart_a_torn_tree_is_fetched_again(self, store: LocalStore, tmp_path: Path, digest: Digest):
        cache = NodeCache(tmp_path / "cache", store)
        path = cache.path_of(digest)
        (path / "a").chmod(0o644)
        (path / "a").write_bytes(b"")
        mark = path.with_suffix(".json")
        mark.write_bytes(b'{"boot_id":"another"}')
        assert read_tree(cache.path_of(digest)) == read_tree(tmp_path / "in")
        inode = path.stat().st_ino
        mark.write_bytes(b'{"boot_id":"another"}')
        assert cache.path_of(digest).stat().st_ino == inode, "a whole one stays"

    def test_a_dataset_of_one_file_is_that_file(self, store: LocalStore, tmp_path: Path, digest: Digest):
        (tmp_path / "data.bin").write_bytes(b"1")
        cache = NodeCache(tmp_path / "cache", store)
        assert cache.file_of(store.put_tree(tmp_path / "data.bin").digest).name == "data.bin"
        with pytest.raises(BadInput, match="holds 2 entries"):
            cache.file_of(digest)
