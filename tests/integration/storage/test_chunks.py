"""The chunk store on a real folder: what comes out is what went in, whatever was edited, spoiled, killed or mixed up."""

import io
import json
import os
import random
import secrets
import shutil
import struct
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trackbed.base import faults
from trackbed.base.errors import Damaged, Denied, StorageFull, TrackbedError
from trackbed.base.ids import Digest, FileDigest
from trackbed.formats.footer import PRIVATE
from trackbed.formats.frame import PLANES, ROUNDED, XOR
from trackbed.formats.tensors import round_to_bf16
from trackbed.formats.tree import Entry, encode_listing, file_digest
from trackbed.storage import ring
from trackbed.storage.backends.folder import FolderBackend
from trackbed.storage.chunks import ChunkStore
from trackbed.storage.local import LocalStore
from trackbed.storage.scan import scan
from trackbed.testing.chunks import SMALL_CUTS, master_of, open_chunks
from trackbed.testing.trees import Node, read_tree, trees, write_tree


@pytest.fixture(autouse=True)
def _disarmed() -> Generator[None]:
    yield
    faults.arm("")


@pytest.fixture
def store(tmp_path: Path) -> Generator[ChunkStore]:
    store = open_chunks(tmp_path / "store", rule=SMALL_CUTS)
    yield store
    store.close()


def _text(lines: int, seed: int = 1) -> bytes:
    dice = random.Random(seed)
    words = [b"%x" % dice.getrandbits(32) for _ in range(500)]
    return b"".join(b" ".join(dice.choices(words, k=12)) + b"\n" for _ in range(lines))


def _edited(data: bytes, seed: int, edits: int) -> bytes:
    dice = random.Random(seed)
    lines = data.splitlines(keepends=True)
    for _ in range(edits):
        at = dice.randrange(len(lines))
        lines[at : at + dice.choice([0, 0, 1])] = [b"edit %x\n" % dice.getrandbits(64)]
    return b"".join(lines)


def _stored(root: Path) -> int:
    return sum(path.stat().st_size for path in (root / "chunks").rglob("*") if path.is_file())


@given(tree=trees(), data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_tree_comes_back_after_any_edit(
    store: ChunkStore, tmp_path: Path, tree: dict[bytes, Node], data: st.DataObject
):
    big = data.draw(st.integers(0, 60_000), label="big")
    text = _text(3000)
    for edit in range(3):
        folder = tmp_path / secrets.token_hex(8)
        text = _edited(text, data.draw(st.integers(0, 2**32)), edits=data.draw(st.integers(0, 30)))
        write_tree(folder, {**tree, b"zz-big": (text[big * edit :], False)})
        try:
            info = store.put_tree(folder)
        except TrackbedError as fault:
            if fault.code != "storage_link_outside":
                raise
            return
        assert info == scan(folder).info
        store.get_tree(info.digest, folder.with_suffix(".out"))
        assert read_tree(folder.with_suffix(".out")) == read_tree(folder)
        shutil.rmtree(folder)
        shutil.rmtree(folder.with_suffix(".out"))


def test_an_edit_costs_what_changed_through_many_generations(tmp_path: Path):
    store = open_chunks(tmp_path / "store")
    text = _text(40_000)
    sizes: list[int] = []
    versions: list[tuple[Digest, bytes]] = []
    for generation in range(12):
        (tmp_path / "data.txt").write_bytes(text)
        before = _stored(tmp_path / "store")
        versions.append((store.put_tree(tmp_path / "data.txt").digest, text))
        sizes.append(_stored(tmp_path / "store") - before)
        text = _edited(text, generation, edits=20)
    assert max(sizes[1:9]) < len(text) / 60
    assert max(frame.depth for pack in store.index.packs() for frame in store.index.frames(pack)) <= 8
    for number, (digest, wanted) in enumerate(versions):
        store.get_tree(digest, tmp_path / f"out{number}")
        assert (tmp_path / f"out{number}" / "data.txt").read_bytes() == wanted
    store.close()


def test_the_same_tree_again_stores_a_record_at_most(store: ChunkStore, tmp_path: Path):
    write_tree(tmp_path / "in", {b"big": (_text(20_000), False), b"small": (b"x", True)})
    store.put_tree(tmp_path / "in")
    before = _stored(tmp_path / "store")
    store.put_tree(tmp_path / "in")
    assert _stored(tmp_path / "store") - before < 4096


def test_many_small_files_are_a_few_objects(store: ChunkStore, tmp_path: Path):
    write_tree(tmp_path / "in", {b"%d" % n: (b"%d\n" % n * 30, False) for n in range(2000)})
    store.put_tree(tmp_path / "in")
    assert len(list(store.backend.list(""))) <= 5


def test_a_range_of_a_large_file_reads_only_its_frames(store: ChunkStore, tmp_path: Path):
    data = random.Random(1).randbytes(6_000_000)
    digest, _ = store.put_blob(data)
    asked: list[int] = []
    get = store.backend.get

    def counted(name: str, start: int = 0, length: int | None = None) -> bytes:
        found = get(name, start, length)
        asked.append(len(found))
        return found

    store.frames.forget()
    store.backend.get = counted  # pyright: ignore[reportAttributeAccessIssue]
    with store.open_range(digest, 3_000_000, 1000) as reader:
        assert reader.read() == data[3_000_000:3_001_000]
    assert sum(asked) < 2_500_000


def test_a_file_of_zeros_is_stored_once_and_read_back(store: ChunkStore, tmp_path: Path):
    (tmp_path / "zeros").write_bytes(bytes(30_000_000))
    info = store.put_tree(tmp_path / "zeros")
    assert _stored(tmp_path / "store") < 200_000
    store.get_tree(info.digest, tmp_path / "out")
    assert (tmp_path / "out" / "zeros").read_bytes() == bytes(30_000_000)


def test_two_domains_share_nothing_that_shows_equal_content(tmp_path: Path):
    data = _text(20_000)
    stores = [open_chunks(tmp_path / word, word=word) for word in ("one", "two")]
    write_tree(tmp_path / "in", {b"big": (data, False), b"small": (b"same", False)})
    names, ids, sizes, pieces = list[set[str]](), list[set[bytes]](), list[list[int]](), list[set[bytes]]()
    for store in stores:
        info = store.put_tree(tmp_path / "in")
        names.append({i.name for i in store.backend.list("") if i.name not in (ring.FORMAT, ring.RING)})
        rows = [store.read_rows(store.backend, i) for i in store.backend.list("packs/")]
        ids.append({chunk for row in rows for frame in row.frames for chunk, _ in frame.chunks})
        sizes.append([length for row in rows for frame in row.frames for _, length in frame.chunks])
        blob = b"".join(store.backend.get(name)[64:-32] for name in sorted(names[-1]))
        pieces.append({blob[at : at + 16] for at in range(len(blob) - 16)})  # 12 are the lengths in a frame header
        assert store.has_tree(info.digest)
        store.close()
    assert not names[0] & names[1]
    assert not ids[0] & ids[1]
    assert sizes[0] != sizes[1]
    assert not pieces[0] & pieces[1]


def test_nothing_of_the_content_is_readable_in_the_store(store: ChunkStore, tmp_path: Path):
    marker = b"PLANTED-" + secrets.token_hex(16).encode()
    write_tree(tmp_path / "in", {marker: (marker * 3, False), b"big": (_text(5000) + marker + _text(5000), False)})
    store.put_tree(tmp_path / "in")
    store.refs.compare_and_set("head", None, "x")
    assert list(ring.planted(store.backend, [marker, marker[8:]])) == []
    store.backend.put("packs/00/leak", b"x" * 100 + marker)
    assert list(ring.planted(store.backend, [marker])) == [("packs/00/leak", 100)]


def test_another_key_opens_nothing(store: ChunkStore, tmp_path: Path):
    with pytest.raises(Denied) as refused:
        ring.open_ring(store.backend, master_of("other"))
    assert refused.value.code == "key_wrong"


def test_after_a_rotation_only_the_new_key_opens_and_everything_is_there(store: ChunkStore, tmp_path: Path):
    write_tree(tmp_path / "in", {b"a": (b"1", False)})
    info = store.put_tree(tmp_path / "in")
    ring.rotate(store.backend, master_of("test"), master_of("new"))
    ring.rotate(store.backend, master_of("test"), master_of("new"))  # cut off behind the move: done already
    with pytest.raises(Denied):
        open_chunks(tmp_path / "store")
    again = open_chunks(tmp_path / "store", word="new")
    assert again.listing(info.digest) == store.listing(info.digest)
    again.close()


def test_a_renewed_secret_seals_what_is_new_and_the_old_stays_readable(store: ChunkStore, tmp_path: Path):
    first = store.put_blob(_text(5000))[0]
    assert ring.renew(store.backend, master_of("test")) == 2
    again = open_chunks(tmp_path / "store")
    assert again.missing([first]) == []
    second = again.put_blob(_text(5000, seed=2))[0]
    for digest in (first, second):
        assert file_digest(again.open_range(digest).read()) == digest
    with pytest.raises(Damaged):
        store.open_range(second).read()  # opened before: it lacks the secret
    again.close()


def test_the_recovery_kit_and_the_store_are_enough(store: ChunkStore, tmp_path: Path):
    digest = store.put_blob(b"precious")[0]
    master = ring.read_kit(ring.recovery_kit(master_of("test"), store.backend))
    opened = ring.open_ring(FolderBackend(tmp_path / "store" / "chunks"), master)
    assert opened.keys.content_id(digest) == store.keys.content_id(digest)


def test_a_master_key_is_made_once_and_for_its_owner_only(tmp_path: Path):
    path = tmp_path / "keys" / "master.key"
    master = ring.make_master(path)
    assert ring.make_master(path) == ring.read_master(path) == master
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with pytest.raises(Denied) as refused:
        ring.read_master(path)
    assert refused.value.code == "key_open_to_others"


def test_what_format_0_holds_is_read_beside_and_through_the_chunk_store(tmp_path: Path):
    write_tree(tmp_path / "in", {b"old": (b"in format 0", False), b"big": (_text(9000), True)})
    old = LocalStore(tmp_path / "store")
    before = old.put_tree(tmp_path / "in")
    store = open_chunks(tmp_path / "store", old=old)
    assert store.has_tree(before.digest)
    store.get_tree(before.digest, tmp_path / "out")
    assert read_tree(tmp_path / "out") == read_tree(tmp_path / "in")
    new, size = store.put_blob(b"new")
    mixed = encode_listing(
        [Entry(b"new", "f", False, size, new), *(one for one in old.read_listing(before.digest) if one.path == b"old")]
    )
    store.get_tree(store.put_listing(mixed), tmp_path / "mixed")
    assert (tmp_path / "mixed" / "old").read_bytes() == b"in format 0"
    store.close()


def test_a_spoiled_footer_loses_nothing(store: ChunkStore, tmp_path: Path):
    digests = [store.put_blob(text)[0] for text in (_text(9000), _edited(_text(9000), 1, 9), b"small")]
    truth = {info.name: store.read_rows(store.backend, info) for info in store.backend.list("packs/")}
    for info in store.backend.list("packs/"):
        path = tmp_path / "store" / "chunks" / info.name
        data = bytearray(path.read_bytes())
        data[-60:] = os.urandom(60)  # the end, and a part of the sealed footer
        path.write_bytes(data)
    again = open_chunks(tmp_path / "store", index=tmp_path / "new.sqlite")
    again.refresh()
    assert again.refresh() == []
    for info in again.backend.list("packs/"):
        assert again.read_rows(again.backend, info).frames == truth[info.name].frames
    for digest in digests:
        assert file_digest(again.open_range(digest).read()) == digest
    again.close()


def test_two_packs_that_were_swapped_are_refused_or_right(store: ChunkStore, tmp_path: Path):
    digests = [store.put_blob(_text(3000, seed=seed))[0] for seed in (1, 2)]
    one, two = (tmp_path / "store" / "chunks" / info.name for info in store.backend.list("packs/"))
    aside = one.with_name("aside")
    one.rename(aside), two.rename(one), aside.rename(two)
    again = open_chunks(tmp_path / "store", index=tmp_path / "new.sqlite")
    for digest in digests:
        with pytest.raises(TrackbedError):
            again.open_range(digest).read()
    again.close()


@pytest.mark.parametrize("seed", range(3))
def test_a_flipped_bit_anywhere_gives_the_right_bytes_or_a_clear_error(tmp_path: Path, seed: int):
    store = open_chunks(tmp_path / "store", rule=SMALL_CUTS)
    text = _text(6000)
    wanted: dict[Digest, Path] = {}
    for version in range(2):
        folder = tmp_path / f"v{version}"
        write_tree(folder, {b"big": (text, False), b"s": {b"%d" % n: (b"%d" % n * 40, False) for n in range(50)}})
        wanted[store.put_tree(folder).digest] = folder
        text = _edited(text, version, 15)
    store.refs.compare_and_set("head", None, "x")
    store.close()
    dice = random.Random(seed)
    outcomes = {"right": 0, "refused": 0}
    objects = [
        path for path in (tmp_path / "store" / "chunks").rglob("*") if path.is_file() and path.parts[-2][0] != "."
    ]
    kinds = {path.relative_to(tmp_path / "store" / "chunks").parts[0] for path in objects}
    assert {"format", "keys", "packs", "trees"} <= kinds
    for path in [one for one in objects for _ in range(8)]:
        if not path.read_bytes():
            continue  # a lock
        whole = path.read_bytes()
        spoiled = bytearray(whole)
        spoiled[dice.randrange(len(whole))] ^= 1 << dice.randrange(8)
        path.write_bytes(spoiled)
        for digest, folder in wanted.items():
            index = tmp_path / "fresh.sqlite" if dice.random() < 0.5 else None
            out = tmp_path / "out"
            try:
                again = open_chunks(tmp_path / "store", index=index)
                again.get_tree(digest, out)
                assert read_tree(out) == read_tree(folder), f"wrong bytes after a flip in {path}"
                outcomes["right"] += 1
            except TrackbedError as fault:
                if not str(fault) or out.exists():
                    pytest.fail(f"{fault.code} after a flip in {path}")
                outcomes["refused"] += 1
            shutil.rmtree(out, ignore_errors=True)
            (tmp_path / "fresh.sqlite").unlink(missing_ok=True)
        path.write_bytes(whole)
    assert min(outcomes.values()) > 0


_PUT = """
import sys
import threading
from pathlib import Path
from trackbed.testing.chunks import open_chunks, SMALL_CUTS
root = Path(sys.argv[1])
store = open_chunks(root / "store", rule=SMALL_CUTS)
for number in (1, 2):
    info = store.put_tree(root / f"in{number}")
    store.refs.compare_and_set(f"head{number}", None, info.digest)
store.get_tree(info.digest, root / "copy")
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_at_every_step_it_leaves_nothing_half_published(tmp_path: Path):
    text = _text(4000)
    for number, data in ((1, text), (2, _edited(text, 1, 5))):
        write_tree(tmp_path / f"in{number}", {b"big": (data, False), b"small": (b"%d" % number, True)})
    steps, ended = 0, 1
    while ended:
        steps += 1
        folder = tmp_path / str(steps)
        folder.mkdir()
        for number in (1, 2):
            (folder / f"in{number}").symlink_to(tmp_path / f"in{number}")
        env = {**os.environ, "TRACKBED_FAULT": f"any@{steps}=kill"}
        run = subprocess.run([sys.executable, "-c", _PUT, str(folder)], env=env, capture_output=True, text=True)
        ended = run.returncode
        assert ended in (0, -9), run.stderr
        assert not (folder / "copy").exists() or read_tree(folder / "copy") == read_tree(tmp_path / "in2")
        store = open_chunks(folder / "store", rule=SMALL_CUTS)
        for number in (1, 2):
            source = tmp_path / f"in{number}"
            digest = scan(source).info.digest
            head = store.refs.get(f"head{number}")
            assert head is None or (head.value == digest and store.has_tree(digest))
            if store.has_tree(digest):
                store.get_tree(digest, folder / f"was{number}")
                assert read_tree(folder / f"was{number}") == read_tree(source)
            assert store.put_tree(source).digest == digest, "the next one succeeds on what is left"
            store.get_tree(digest, folder / f"out{number}")
            assert read_tree(folder / f"out{number}") == read_tree(source)
        store.close()
        shutil.rmtree(folder)
    assert steps > 20


_ROTATE = """
import sys
from pathlib import Path
from trackbed.storage import ring
from trackbed.storage.backends.folder import FolderBackend
from trackbed.testing.chunks import master_of
ring.rotate(FolderBackend(Path(sys.argv[1]) / "chunks"), master_of("test"), master_of("new"))
"""


def test_killed_at_every_step_a_rotation_leaves_the_old_key_or_the_new_one(store: ChunkStore, tmp_path: Path):
    digest = store.put_blob(b"precious")[0]
    whole = (tmp_path / "store" / "chunks" / ring.RING).read_bytes()
    steps, ended, opened_by = 0, 1, list[str]()
    while ended:
        steps += 1
        (tmp_path / "store" / "chunks" / ring.RING).write_bytes(whole)
        env = {**os.environ, "TRACKBED_FAULT": f"any@{steps}=kill"}
        argv = [sys.executable, "-c", _ROTATE, str(tmp_path / "store")]
        run = subprocess.run(argv, env=env, capture_output=True, text=True)
        ended = run.returncode
        assert ended in (0, -9), run.stderr
        for word in ("test", "new"):
            try:
                keys = ring.open_ring(store.backend, master_of(word)).keys
            except Denied:
                continue
            opened_by.append(word)
            assert keys.content_id(digest) == store.keys.content_id(digest)
    assert len(opened_by) == steps
    assert set(opened_by) == {"test", "new"}


@pytest.mark.parametrize("point", ["pack.written", "object.written", "object.synced", "tree.ready"])
def test_a_full_disk_says_so_publishes_nothing_and_the_next_try_succeeds(store: ChunkStore, tmp_path: Path, point: str):
    write_tree(tmp_path / "in", {b"big": (_text(9000), False)})
    digest = scan(tmp_path / "in").info.digest
    faults.arm(f"{point}=ENOSPC")
    with pytest.raises((StorageFull, OSError)):
        store.put_tree(tmp_path / "in")
    faults.arm("")
    assert not store.has_tree(digest)
    assert store.put_tree(tmp_path / "in").digest == digest
    store.get_tree(digest, tmp_path / "out")
    assert read_tree(tmp_path / "out") == read_tree(tmp_path / "in")
    assert not list((tmp_path / "store" / "chunks").rglob("*.part"))


def test_what_was_sent_before_a_break_is_not_sent_again(
    store: ChunkStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("trackbed.storage.packs.PACK_BYTES", 200_000)
    write_tree(tmp_path / "in", {b"big": (random.Random(1).randbytes(2_000_000), False)})
    faults.arm("object.written@6=EIO")
    with pytest.raises(TrackbedError):
        store.put_tree(tmp_path / "in")
    faults.arm("")
    before = _stored(tmp_path / "store")
    assert before > 800_000
    store.put_tree(tmp_path / "in")
    assert _stored(tmp_path / "store") - before < 1_500_000


_GREEDY = """
import resource, sys
from pathlib import Path
from trackbed.testing.chunks import open_chunks
root = Path(sys.argv[1])
store = open_chunks(root / "store")
start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
info = store.put_tree(root / "big")
store.get_tree(info.digest, root / "out")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start) // 1024)
"""


@pytest.mark.slow
def test_a_file_of_400_mib_needs_less_than_256_mib_of_memory(tmp_path: Path):
    dice = random.Random(1)
    with (tmp_path / "big").open("wb") as file:
        for _ in range(400):
            file.write(dice.randbytes(512 * 1024) + bytes(512 * 1024))
    run = subprocess.run([sys.executable, "-c", _GREEDY, str(tmp_path)], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 256


def test_a_blob_that_lost_a_chunk_is_missing_and_is_healed_by_sending_it_again(store: ChunkStore, tmp_path: Path):
    text = _text(9000)
    store.put_blob(text)
    edited = _edited(text, 1, 3)
    digest, _ = store.put_blob(edited)  # relies on the first one's pack
    packs = list(store.backend.list("packs/"))
    biggest = max(packs, key=lambda info: info.size)
    store.backend.delete(biggest.name)
    assert store.missing([digest]) == [digest]
    store.put_blob(edited)
    assert store.open_range(digest).read() == edited


def test_writers_at_once_agree_and_all_restore(tmp_path: Path):
    text = _text(6000)
    done: list[tuple[Digest, bytes]] = []

    def write(number: int) -> None:
        store = open_chunks(tmp_path / "store", index=tmp_path / f"{number}.sqlite")
        data = _edited(text, number % 3, 5)
        (tmp_path / f"in{number}").mkdir()
        (tmp_path / f"in{number}" / "x").write_bytes(data)
        done.append((store.put_tree(tmp_path / f"in{number}").digest, data))
        store.close()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = open_chunks(tmp_path / "store")
    assert len(done) == 6 and len({digest for digest, _ in done}) == 3
    for digest, data in done:
        with store.open_range(FileDigest(store.read_listing(digest)[0].digest)) as reader:
            assert reader.read() == data
    store.close()


def _safetensors(tensors: dict[str, tuple[str, bytes]]) -> bytes:
    head: dict[str, object] = {"__metadata__": {"format": "pt"}}
    body = b""
    for name, (dtype, data) in tensors.items():
        head[name] = {"dtype": dtype, "shape": [len(data)], "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + body


def _weights(seed: int, count: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.02, count).astype(np.float32)


def test_a_checkpoint_is_stored_smaller_and_the_next_one_as_what_moved(tmp_path: Path):
    store = open_chunks(tmp_path / "store")
    weights, moment = _weights(1, 1_500_000), _weights(2, 700_001)
    wanted: dict[Digest, bytes] = {}
    grew: list[int] = []
    for step in range(7):
        moment = moment * np.float32(1 + 2**-20 * (step > 0))
        weights[step * 1000 : step * 1000 + 5000] *= np.float32(1.01)
        data = _safetensors(
            {"w": ("F32", weights.tobytes()), "m": ("F32", moment.tobytes()), "rng": ("U8", b"\7" * 5056)}
        )
        (tmp_path / "part.safetensors").write_bytes(data)
        before = _stored(tmp_path / "store")
        wanted[store.put_tree(tmp_path / "part.safetensors", owner="run_1").digest] = data
        grew.append(_stored(tmp_path / "store") - before)
    assert grew[0] < len(data) / 1.1
    assert max(grew[1:4]) < grew[0] / 2
    frames = [frame for pack in store.index.packs() for frame in store.index.frames(pack)]
    assert {frame.codec for frame in frames} >= {PLANES, XOR}
    assert max(frame.depth for frame in frames if frame.codec == XOR) <= 4
    for digest, data in wanted.items():
        store.get_tree(digest, tmp_path / digest[3:9])
        assert (tmp_path / digest[3:9] / "part.safetensors").read_bytes() == data
    store.close()


@pytest.mark.parametrize("spoiled", [False, True])
def test_weights_that_are_the_rounded_master_cost_nothing(tmp_path: Path, spoiled: bool):
    store = open_chunks(tmp_path / "store")
    wanted: dict[Digest, bytes] = {}
    for step in range(4):
        master = [_weights(10 * step + n, 700_000 + n) for n in range(2)]
        parts = {f"m{n}": ("F32", one.tobytes()) for n, one in enumerate(master)}
        weights = {f"w{n}": ("BF16", round_to_bf16(one.tobytes())) for n, one in enumerate(master)}
        if spoiled:  # like the master where a sample looks, not elsewhere
            weights["w0"] = ("BF16", b"\1\2" + weights["w0"][1][2:])
        data = _safetensors({**parts, **weights})
        (tmp_path / "part.safetensors").write_bytes(data)
        before = _stored(tmp_path / "store")
        wanted[store.put_tree(tmp_path / "part.safetensors").digest] = data
        grew = _stored(tmp_path / "store") - before
        assert grew < 0.9 * sum(one.nbytes for one in master) * (1.3 if spoiled else 1)
    for info in store.backend.list("packs/"):  # and without a footer
        path = tmp_path / "store" / "chunks" / info.name
        path.write_bytes(path.read_bytes()[:-20] + bytes(20))
    again = open_chunks(tmp_path / "store", index=tmp_path / "new.sqlite")
    assert again.refresh() == []
    codecs = [frame.codec for pack in again.index.packs() for frame in again.index.frames(pack)]
    assert codecs.count(ROUNDED) == 4 * (3 if spoiled else 4)
    for digest, data in wanted.items():
        for one in (store, again):
            with one.open_range(FileDigest(one.read_listing(digest)[0].digest)) as reader:
                assert reader.read() == data
    store.close(), again.close()


@pytest.mark.parametrize("spoil", ["short", "overlap", "noise", "empty"])
def test_what_only_looks_like_tensors_is_stored_as_any_file(store: ChunkStore, tmp_path: Path, spoil: str):
    data = _safetensors({"a": ("F32", bytes(400_000)), "b": ("F16", _text(2000))})
    data = {
        "short": data[:300_000],
        "overlap": data.replace(b"[0, 400000]", b"[9, 499999]"),
        "noise": data[:8] + b"{" + os.urandom(500_000),
        "empty": struct.pack("<Q", 2) + b"{}" + bytes(200_000),
    }[spoil]
    (tmp_path / "x").write_bytes(data)
    store.get_tree(store.put_tree(tmp_path / "x").digest, tmp_path / "out")
    assert (tmp_path / "out" / "x").read_bytes() == data


def test_a_run_keeps_its_checkpoints_in_packs_of_its_own(store: ChunkStore, tmp_path: Path):
    (tmp_path / "x").write_bytes(_text(9000))
    for owner in ("run_1", "run_2", ""):
        store.put_tree(tmp_path / "x", owner=owner)
    rows = [store.read_rows(store.backend, info) for info in store.backend.list("packs/")]
    assert [(row.kind, row.owner) for row in rows if row.kind == PRIVATE] == [
        (PRIVATE, row.owner) for row in rows if row.owner
    ]
    assert len({row.owner for row in rows}) == 3
    sizes = sorted(row.size for row in rows)
    assert sizes[0] > sizes[-1] / 2, "none of them leans on another's"


def test_a_checkpoint_sent_as_a_stream_is_cut_like_the_file(store: ChunkStore, tmp_path: Path):
    data = (
        _safetensors({"w": ("F32", _weights(1, 300_000).tobytes()), "b": ("BF16", _text(300)[:10_000])}) + b"tail" * 9
    )
    (tmp_path / "x").write_bytes(data)
    store.put_tree(tmp_path / "x")
    before = len(list(store.backend.list("packs/")))
    assert store.put_blob(io.BytesIO(data))[0] == file_digest(data)
    assert len(list(store.backend.list("packs/"))) == before, "every chunk was there"
    for short in (data[:-200_000], data[:400_000]):
        digest, size = store.put_blob(io.BytesIO(short))
        assert (digest, size, store.open_range(digest).read()) == (file_digest(short), len(short), short)
