"""Collecting, verifying and repairing a real chunk store: what is reached stays, what is damaged is named, nothing else moves."""

import random
import threading
import time
from pathlib import Path

import pytest

from trackbed.base.errors import Conflict, Damaged, TrackbedError, Unavailable
from trackbed.base.ids import Digest
from trackbed.storage.backends.folder import FolderBackend
from trackbed.storage.chunks import ChunkStore
from trackbed.storage.gc import Alive, GcReport, collect
from trackbed.storage.index import ChunkIndex, throw_away
from trackbed.storage.open import Options, open_chunks
from trackbed.storage.repair import repair
from trackbed.storage.verify import verify
from trackbed.testing.backends import FaultyBackend

MASTER = bytes(range(32))


def text(seed: int, lines: int = 6000) -> list[bytes]:
    dice = random.Random(seed)
    words = [b"%x" % dice.getrandbits(40) for _ in range(400)]
    return [b" ".join(dice.choices(words, k=12)) + b"\n" for _ in range(lines)]


def opened(root: Path, cache: str = "") -> ChunkStore:
    options = Options(cache=root.parent / cache) if cache else Options()
    return open_chunks(root.as_uri(), MASTER, options)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def versions(tmp_path: Path) -> list[Path]:
    """Three versions of a file of half a MiB with scattered edits, beside 30 small files that stay."""
    lines, dice, made = text(1), random.Random(2), list[Path]()
    for number in range(3):
        folder = tmp_path / f"v{number}"
        (folder / "small").mkdir(parents=True)
        (folder / "data.jsonl").write_bytes(b"".join(lines))
        for small in range(30):
            (folder / "small" / f"{small}").write_bytes(b"%d" % small * 300)
        for _ in range(60):
            lines.insert(dice.randrange(len(lines)), b"%x\n" % dice.getrandbits(900))
        made.append(folder)
    return made


def same(store: ChunkStore, digest: Digest, want: Path, into: Path) -> None:
    store.get_tree(digest, into)
    for path in want.rglob("*"):
        if path.is_file():
            assert (into / path.relative_to(want)).read_bytes() == path.read_bytes()


def step(store: ChunkStore, *alive: Digest, **rest: bool) -> GcReport:
    time.sleep(0.01)
    return collect(store, lambda: Alive(frozenset(alive)), grace_s=0, **rest)


def settle(store: ChunkStore, *alive: Digest) -> list[GcReport]:
    """Run until nothing changes any more."""
    done: list[GcReport] = []
    for _ in range(8):
        done.append(step(store, *alive))
        now = done[-1]
        if not (now.trees_marked or now.trees_dropped or now.packs_marked or now.packs_swept or now.packs_compacted):
            return done
    raise AssertionError(done)


def test_what_nobody_names_goes_and_the_rest_is_read_as_before(root: Path, versions: list[Path], tmp_path: Path):
    store = opened(root)
    digests = [store.put_tree(folder).digest for folder in versions]
    before = sum(info.size for info in store.backend.list("packs/"))
    settle(store, digests[2])
    assert [store.has_tree(digest) for digest in digests] == [False, False, True]
    assert sum(info.size for info in store.backend.list("packs/")) <= before
    same(opened(root, "fresh"), digests[2], versions[2], tmp_path / "out")
    assert verify(store).clean
    settle(store)
    assert list(store.backend.list("packs/")) == list(store.backend.list("trees/")) == []
    assert list(store.backend.list("tombs/")) == []


def test_the_base_of_a_difference_stays_although_its_own_version_is_gone(
    root: Path, versions: list[Path], tmp_path: Path
):
    store = opened(root)
    first = store.put_tree(versions[0]).digest
    second = store.put_tree(versions[1]).digest
    assert any(frame.depth for pack in store.index.packs() for frame in store.index.frames(pack))
    settle(store, second)
    assert not store.has_tree(first)
    same(opened(root, "fresh"), second, versions[1], tmp_path / "out")


def test_many_small_packs_become_one_and_everything_is_read_as_before(root: Path, tmp_path: Path):
    store = opened(root)
    kept: list[Digest] = []
    for number in range(9):
        folder = tmp_path / f"in{number}"
        folder.mkdir()
        (folder / "a").write_bytes(random.Random(number).randbytes(20_000))
        kept.append(store.put_tree(folder).digest)
    assert len(store.index.packs()) >= 9
    settle(store, *kept)
    assert len(list(store.backend.list("packs/"))) == 1
    fresh = opened(root, "fresh")
    for number, digest in enumerate(kept):
        same(fresh, digest, tmp_path / f"in{number}", tmp_path / f"out{number}")
    assert verify(fresh).clean


def test_a_difference_and_its_base_move_together_when_small_packs_become_one(
    root: Path, versions: list[Path], tmp_path: Path
):
    store = opened(root)
    kept = [store.put_tree(folder).digest for folder in versions]
    for number in range(4):
        (tmp_path / f"x{number}").mkdir()
        (tmp_path / f"x{number}" / "a").write_bytes(random.Random(number).randbytes(9_000))
        kept.append(store.put_tree(tmp_path / f"x{number}").digest)
    before = sum(info.size for info in store.backend.list("packs/"))
    settle(store, *kept)
    assert len(list(store.backend.list("packs/"))) == 1
    assert sum(info.size for info in store.backend.list("packs/")) <= before
    same(opened(root, "fresh"), kept[2], versions[2], tmp_path / "out")
    assert verify(opened(root, "last")).clean


def test_a_dry_run_tells_and_touches_nothing(root: Path, versions: list[Path]):
    store = opened(root)
    store.put_tree(versions[0])
    before = [(info.name, info.size) for info in store.backend.list("")]
    time.sleep(0.01)
    report = collect(store, lambda: Alive(frozenset()), grace_s=0, dry_run=True)
    assert report.dry_run and report.trees_marked == 1
    assert [(info.name, info.size) for info in store.backend.list("")] == before


def test_what_is_young_stays(root: Path, versions: list[Path]):
    store = opened(root)
    digest = store.put_tree(versions[0]).digest
    for _ in range(3):
        report = collect(store, lambda: Alive(frozenset()), grace_s=3600)
        assert (report.trees_marked, report.packs_marked) == (0, 0)
    assert store.has_tree(digest)


def test_a_tree_that_is_wanted_again_between_the_steps_is_kept(root: Path, versions: list[Path], tmp_path: Path):
    store = opened(root)
    digest = store.put_tree(versions[0]).digest
    assert step(store).trees_marked == 1
    assert not store.has_tree(digest)
    report = step(store, digest)
    assert (report.trees_lifted, report.trees_dropped) == (1, 0)
    assert store.has_tree(digest)
    same(store, digest, versions[0], tmp_path / "out")


def test_a_tree_that_is_added_again_between_the_steps_is_kept(root: Path, versions: list[Path], tmp_path: Path):
    store = opened(root)
    digest = store.put_tree(versions[0]).digest
    for _ in range(4):
        step(store)
        again = opened(root, "other")
        assert again.put_tree(versions[0]).digest == digest
        assert again.has_tree(digest)
        same(again, digest, versions[0], tmp_path / f"out{_}")


def test_a_commit_that_relies_on_a_collected_pack_sends_it_again(
    root: Path, versions: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The collector runs between a writer's look-up and its commit, both steps of it."""
    store = opened(root)
    store.put_tree(versions[0])
    writer = opened(root, "writer")
    real, ran = writer.tombs.refuse, list[int]()

    def late(packs: set[bytes]) -> None:
        if not ran:
            ran.append(1)
            for _ in range(4):
                step(store)
        real(packs)

    monkeypatch.setattr(writer.tombs, "refuse", late)
    digest = writer.put_tree(versions[0]).digest
    assert ran
    same(opened(root, "fresh"), digest, versions[0], tmp_path / "out")
    assert verify(store).clean


def test_uploads_and_collections_beside_each_other_lose_nothing(root: Path, tmp_path: Path):
    kept: dict[Digest, Path] = {}
    faults: list[BaseException] = []
    ended = threading.Event()

    def write(number: int) -> None:
        try:
            store = opened(root, f"w{number}")
            for turn in range(6):
                folder = tmp_path / f"in{number}-{turn}"
                folder.mkdir()
                (folder / "a").write_bytes(b"".join(text(turn % 3, 800)))
                (folder / "b").write_bytes(b"%d %d" % (number, turn))
                kept[store.put_tree(folder).digest] = folder
        except BaseException as fault:
            faults.append(fault)

    def collect_all() -> None:
        store = opened(root, "gc")
        while not ended.is_set():
            try:
                # a grace that is short, but longer than any commit here takes
                collect(store, lambda: Alive(frozenset(kept)), grace_s=1.0)
            except TrackbedError as fault:
                faults.append(fault)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    collector = threading.Thread(target=collect_all)
    opened(root).close()
    for thread in (*writers, collector):
        thread.start()
    for thread in writers:
        thread.join()
    ended.set()
    collector.join()
    assert faults == []
    store = opened(root, "fresh")
    for number, (digest, folder) in enumerate(kept.items()):
        same(store, digest, folder, tmp_path / f"out{number}")
    assert verify(store).broken == []


def test_two_collections_do_not_run_at_once(root: Path, versions: list[Path]):
    store = opened(root)
    store.put_tree(versions[0])

    def nested() -> Alive:
        with pytest.raises(Conflict) as second:
            collect(opened(root, "other"), lambda: Alive(frozenset()))
        assert second.value.code == "storage_gc_running"
        return Alive(frozenset())

    collect(store, nested)
    collect(store, lambda: Alive(frozenset()))


def test_nothing_is_collected_while_something_cannot_be_read(root: Path, versions: list[Path]):
    store = opened(root)
    for folder in versions[:2]:
        store.put_tree(folder)
    (name,) = [info.name for info in store.backend.list("trees/")][:1]
    data = bytearray(store.backend.get(name))
    data[-1] ^= 1
    store.backend.put(name, bytes(data))
    with pytest.raises(Damaged) as refused:
        step(store)
    assert refused.value.code == "storage_gc_refused"
    assert list(store.backend.list("tombs/")) == []


@pytest.mark.parametrize("kind", ["refused", "dead"])
def test_a_collection_that_is_cut_off_anywhere_loses_nothing(
    root: Path, versions: list[Path], tmp_path: Path, kind: str
):
    first = opened(root)
    digests = [first.put_tree(folder).digest for folder in versions]
    at, fired = 1, True
    while fired and at < 400:
        inner = FolderBackend(root / "chunks")
        faulty = FaultyBackend(inner, at=at, kind=kind)
        store = ChunkStore(
            faulty, first.keys, ChunkIndex.open(tmp_path / f"c{at}" / "i"), refs=first.refs, rule=first._rule
        )
        try:
            step(store, digests[2])
        except (Unavailable, Conflict):
            inner.delete("locks/gc")  # what six hours would do
        fired = faulty.fired
        store.close()
        at += 7
    store = opened(root, "after")
    same(store, digests[2], versions[2], tmp_path / "out")
    settle(store, digests[2])
    assert verify(store).clean
    same(opened(root, "fresh"), digests[2], versions[2], tmp_path / "again")


# ---- verify and repair


def flip(store: ChunkStore, name: str, at: int) -> None:
    data = bytearray(store.backend.get(name))
    data[at] ^= 1 << (at % 8)
    store.backend.put(name, bytes(data))


def test_a_sound_store_is_clean_and_a_sample_reads_less(root: Path, versions: list[Path]):
    store = opened(root)
    for folder in versions:
        store.put_tree(folder)
    full, none = verify(store), verify(store, share=0.0)
    assert full.clean and none.clean
    assert (full.trees, full.frames_read) == (3, full.frames)
    assert none.frames_read == 0 and none.frames == full.frames


@pytest.mark.parametrize("seed", range(25))
def test_a_flipped_bit_is_found_and_no_wrong_byte_is_read(root: Path, versions: list[Path], tmp_path: Path, seed: int):
    store = opened(root)
    digests = [store.put_tree(folder).digest for folder in versions[:2]]
    dice = random.Random(seed)
    every = [info for info in store.backend.list("") if not info.name.startswith("locks")]
    info = dice.choices(every, [one.size for one in every])[0] if seed % 5 else dice.choice(every)
    flip(store, info.name, dice.randrange(info.size))
    try:
        fresh = opened(root, "fresh")
    except TrackbedError:  # the header or the ring itself: nothing opens, said so
        if info.name not in ("format", "keys/ring"):
            raise
        return
    found = [one.what for one in verify(fresh).broken]
    assert found or info.name == "keys/ring", info.name  # hex digits in another case are the same key
    for number, digest in enumerate(digests):
        try:
            same(fresh, digest, versions[number], tmp_path / f"out{number}")
        except TrackbedError:
            assert not (tmp_path / f"out{number}").exists()


def test_a_pack_that_is_gone_cut_short_or_swapped_is_found(root: Path, versions: list[Path], tmp_path: Path):
    for number, harm in enumerate(("gone", "short", "swapped")):
        place = tmp_path / f"s{number}"
        store = opened(place)
        for folder in versions[:2]:
            store.put_tree(folder)
        one, two = [info.name for info in store.backend.list("packs/")][:2]
        if harm == "gone":
            store.backend.delete(one)
        elif harm == "short":
            store.backend.put(one, store.backend.get(one)[:-100])
        else:
            first, second = store.backend.get(one), store.backend.get(two)
            store.backend.put(one, second)
            store.backend.put(two, first)
        assert verify(opened(place, f"fresh{number}")).broken, harm


def test_a_lost_index_is_rebuilt_from_the_packs(root: Path, versions: list[Path], tmp_path: Path):
    store = opened(root)
    digest = store.put_tree(versions[0]).digest
    path = store.index.path
    store.index.close()
    throw_away(path)
    again = opened(root)
    same(again, digest, versions[0], tmp_path / "out")
    assert again.index.counts()[0] > 0


def test_repair_puts_aside_and_adding_the_same_data_again_mends(root: Path, versions: list[Path], tmp_path: Path):
    store = opened(root)
    digests = [store.put_tree(folder).digest for folder in versions]
    name = max(store.backend.list("packs/"), key=lambda info: info.size).name
    damaged = store.backend.get(name)
    frames = store.index.frames(bytes.fromhex(name.rpartition("/")[2]))
    flip(store, name, frames[0].offset + 5)
    damaged = store.backend.get(name)
    report = repair(store, verify(store).broken)
    assert name in report.quarantined
    assert report.frames_lost >= 1  # and the differences that rested on it
    assert store.backend.get("quarantine/" + name) == damaged
    assert report.broken_trees
    fresh = opened(root, "fresh")
    for folder in versions:
        fresh.put_tree(folder)
    assert verify(opened(root, "last")).clean
    for number, digest in enumerate(digests):
        same(opened(root, "last"), digest, versions[number], tmp_path / f"out{number}")


def test_a_spoiled_footer_loses_nothing(root: Path, versions: list[Path], tmp_path: Path):
    store = opened(root)
    digest = store.put_tree(versions[0]).digest
    for info in list(store.backend.list("packs/")):
        flip(store, info.name, info.size - 40)
    fresh = opened(root, "fresh")
    same(fresh, digest, versions[0], tmp_path / "out")
    report = verify(fresh)
    assert not report.clean
    assert repair(fresh, report.broken).frames_lost == 0
    assert verify(opened(root, "last")).clean
    same(opened(root, "last"), digest, versions[0], tmp_path / "again")


# ---- an upload that breaks


def test_an_upload_that_broke_anywhere_sends_only_the_rest(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Cut off at the n-th call, for every n: nothing is published, and the next try does not send again what is there."""
    monkeypatch.setattr("trackbed.storage.packs.PACK_BYTES", 2_000_000)
    folder = tmp_path / "in"
    folder.mkdir()
    dice = random.Random(4)
    for number in range(12):
        (folder / str(number)).write_bytes(dice.randbytes(1_000_000))
    whole = opened(root)
    total = _sent(whole, folder)
    at, fired, resumed = 1, True, 0
    while fired:
        place = FolderBackend(tmp_path / f"s{at}" / "chunks")
        keys = open_chunks((tmp_path / f"s{at}").as_uri(), MASTER)  # makes the store itself
        faulty = FaultyBackend(place, at=at, kind="dead")
        first = ChunkStore(faulty, keys.keys, ChunkIndex.open(tmp_path / f"a{at}"), refs=keys.refs, rule=keys._rule)
        try:
            digest = first.put_tree(folder).digest
        except TrackbedError:
            for number, _ in enumerate(
                place.list("trees/")
            ):  # published, and only the answer was lost: it is whole then
                assert verify(opened(tmp_path / f"s{at}", f"v{at}{number}")).clean
        before = sum(info.size for info in place.list("packs/"))
        again = opened(tmp_path / f"s{at}", f"b{at}")
        digest = again.put_tree(folder).digest
        after = sum(info.size for info in place.list("packs/"))
        assert after <= total * 1.02 + 200_000, (at, before, after)
        resumed += before > 2_000_000
        same(again, digest, folder, tmp_path / f"o{at}")
        fired = faulty.fired
        at += 1
    assert resumed >= 3


def _sent(store: ChunkStore, folder: Path) -> int:
    store.put_tree(folder)
    return sum(info.size for info in store.backend.list("packs/"))
