"""What every store must do (`storage.store.Store`). A test module subclasses `StoreContract` and gives the fixture `store`."""

import io
import threading
from pathlib import Path

import pytest

from trackbed.base.errors import BadInput, Conflict, NotFound
from trackbed.base.ids import Digest, FileDigest
from trackbed.formats.tree import Entry, decode_listing, encode_listing, file_digest, tree_digest
from trackbed.storage import Refs, Store
from trackbed.testing.trees import Node, read_tree, write_tree

_ABSENT = FileDigest("0" * 64)
_BIG = bytes(range(256)) * 20_000  # 5 MiB: over what is verified in memory


class RefsContract:
    """What every keeper of pointers must do. Gives the fixture `refs`; a store's own are tested by `StoreContract`."""

    def test_a_pointer_moves_only_from_where_it_is(self, refs: Refs):
        assert refs.get("runs/x/current") is None
        refs.compare_and_set("runs/x/current", None, "one")
        with pytest.raises(Conflict) as moved:
            refs.compare_and_set("runs/x/current", None, "two")
        assert moved.value.code == "ref_moved"
        refs.compare_and_set("runs/x/current", "one", "two")
        value = refs.get("runs/x/current")
        assert value is not None and value.value == "two"

    def test_an_older_epoch_never_moves_a_pointer(self, refs: Refs):
        refs.compare_and_set("p", None, "one", epoch=2)
        with pytest.raises(Conflict) as late:
            refs.compare_and_set("p", "one", "two", epoch=1)
        assert late.value.code == "epoch_superseded"
        refs.compare_and_set("p", "one", "two", epoch=2)
        refs.compare_and_set("p", "two", "three", epoch=3)

    @pytest.mark.parametrize("name", ["", "a\nb", "x" * 501])
    def test_a_pointer_needs_a_printable_name(self, refs: Refs, name: str):
        with pytest.raises(BadInput) as refused:
            refs.compare_and_set(name, None, "x")
        assert refused.value.code == "ref_name_bad"

    def test_of_sixteen_that_move_a_pointer_at_once_one_wins(self, refs: Refs):
        won: list[int] = []

        def move(number: int) -> None:
            try:
                refs.compare_and_set("race/../损失", None, str(number))
            except Conflict:
                return
            won.append(number)

        threads = [threading.Thread(target=move, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        value = refs.get("race/../损失")
        assert value is not None and [value.value] == [str(number) for number in won]


class StoreContract(RefsContract):
    @pytest.fixture
    def refs(self, store: Store) -> Refs:
        return store.refs

    @pytest.mark.parametrize("data", [b"", b"x", b"\0\r\n\xff" * 1000, _BIG])
    def test_a_blob_is_read_back_as_it_was_put(self, store: Store, data: bytes):
        digest, size = store.put_blob(data)
        assert (digest, size) == (file_digest(data), len(data))
        with store.open_range(digest) as reader:
            assert (reader.size, reader.read()) == (len(data), data)

    @pytest.mark.parametrize("data", [b"small", _BIG])
    def test_a_blob_from_bytes_a_stream_and_a_file_is_the_same_blob(self, store: Store, tmp_path: Path, data: bytes):
        (tmp_path / "file").write_bytes(data)
        found = {store.put_blob(source)[0] for source in (io.BytesIO(data), tmp_path / "file", data)}
        assert found == {file_digest(data)}

    @pytest.mark.parametrize(("start", "length"), [(0, 0), (0, 3), (7, None), (100, 1_500_000), (5_119_999, 50)])
    @pytest.mark.parametrize("data", [b"0123456789" * 20, _BIG])
    def test_a_range_is_that_stretch_and_no_more(self, store: Store, data: bytes, start: int, length: int | None):
        digest, _ = store.put_blob(data)
        if start > len(data):
            with pytest.raises(BadInput) as refused:
                store.open_range(digest, start, length)
            assert refused.value.code == "storage_range_bad"
            return
        wanted = data[start:] if length is None else data[start : start + length]
        assert store.open_range(digest, start, length).length == len(wanted)
        assert b"".join(store.open_range(digest, start, length)) == wanted

    def test_what_is_missing_is_told_once_and_in_order(self, store: Store):
        here, _ = store.put_blob(b"here")
        also = FileDigest("1" * 64)
        assert store.missing([also, here, _ABSENT, also]) == [also, _ABSENT]

    @pytest.mark.parametrize("source", [b"other", io.BytesIO(b"other")])
    def test_bytes_that_are_not_what_was_said_are_refused(self, store: Store, source: bytes | io.BytesIO):
        with pytest.raises(BadInput) as refused:
            store.put_blob(source, expect=_ABSENT)
        assert refused.value.code == "storage_digest_mismatch"
        assert store.missing([_ABSENT, file_digest(b"other")]) == [_ABSENT, file_digest(b"other")]

    def test_one_wrong_blob_spoils_its_batch(self, store: Store):
        with pytest.raises(BadInput):
            store.put_blobs([(file_digest(b"a"), b"a"), (_ABSENT, b"b")])
        assert store.missing([file_digest(b"a")]) == [file_digest(b"a")]

    def test_a_batch_counts_what_was_new(self, store: Store):
        store.put_blob(b"0")
        items = [(file_digest(data), data) for data in (b"0", b"1", b"1", b"2")]
        assert store.put_blobs(items) == 2
        assert store.put_blobs(items) == 0

    @pytest.mark.parametrize("name", ["", "x", "../" * 21 + "x", "A" * 64, "g" * 64])
    def test_what_is_no_digest_is_refused(self, store: Store, name: str):
        for call in (store.open_range, lambda d: store.missing([d])):
            with pytest.raises(BadInput) as refused:
                call(FileDigest(name))
            assert refused.value.code == "storage_digest_bad"

    def test_an_unknown_blob_and_an_unknown_tree_are_told_by_name(self, store: Store):
        with pytest.raises(NotFound) as blob:
            store.open_range(_ABSENT)
        with pytest.raises(NotFound) as tree:
            store.read_listing(Digest("b3:" + _ABSENT))
        assert (blob.value.code, tree.value.code) == ("storage_blob_missing", "storage_tree_missing")

    def test_a_tree_comes_back_with_modes_links_and_empty_folders(self, store: Store, tmp_path: Path):
        tree: dict[bytes, Node] = {
            b"run.sh": (b"#!/bin/sh\n", True),
            b"\xff:\n": (b"odd", False),
            b"e": {},
            b"s": {b"up": b"../run.sh", b"no": b"x"},
        }
        write_tree(tmp_path / "in", tree)
        info = store.put_tree(tmp_path / "in")
        assert (info.files, info.size_bytes) == (2, 13)
        assert store.has_tree(info.digest)
        store.get_tree(info.digest, tmp_path / "out")
        assert read_tree(tmp_path / "out") == tree

    def test_one_file_is_a_tree_of_one_entry(self, store: Store, tmp_path: Path):
        (tmp_path / "data.jsonl").write_bytes(_BIG)
        info = store.put_tree(tmp_path / "data.jsonl")
        assert store.read_listing(info.digest) == [Entry(b"data.jsonl", "f", False, len(_BIG), file_digest(_BIG))]
        store.get_tree(info.digest, tmp_path / "out")
        assert (tmp_path / "out" / "data.jsonl").read_bytes() == _BIG

    def test_the_digest_is_that_of_the_canonical_listing(self, store: Store, tmp_path: Path):
        write_tree(tmp_path / "in", {b"a": (b"1", False)})
        listing = encode_listing([Entry(b"a", "f", False, 1, file_digest(b"1"))])
        digest = store.put_tree(tmp_path / "in").digest
        assert digest == tree_digest(listing) == store.put_listing(listing)
        assert store.listing(digest) == listing

    def test_a_tree_without_all_its_blobs_is_refused(self, store: Store):
        listing = encode_listing([Entry(b"a", "f", False, 1, _ABSENT)])
        with pytest.raises(NotFound) as refused:
            store.put_listing(listing)
        assert refused.value.code == "storage_blobs_missing"
        assert not store.has_tree(tree_digest(listing))

    def test_a_listing_that_lies_about_a_size_is_refused(self, store: Store):
        digest, _ = store.put_blob(b"four")
        with pytest.raises(BadInput, match="has 4 bytes, not 5"):
            store.put_listing(encode_listing([Entry(b"a", "f", False, 5, digest)]))

    def test_a_tree_is_not_written_over_something(self, store: Store, tmp_path: Path):
        write_tree(tmp_path / "in", {b"a": (b"1", False)})
        digest = store.put_tree(tmp_path / "in").digest
        (tmp_path / "file").touch()
        (tmp_path / "link").symlink_to("nowhere")
        for target in (tmp_path / "in", tmp_path / "file", tmp_path / "link"):
            with pytest.raises(Conflict) as refused:
                store.get_tree(digest, target)
            assert refused.value.code == "storage_target_taken"
        (tmp_path / "empty").mkdir()
        store.get_tree(digest, tmp_path / "empty")
        assert (tmp_path / "empty" / "a").read_bytes() == b"1"

    def test_a_read_only_tree_has_no_write_bits(self, store: Store, tmp_path: Path):
        write_tree(tmp_path / "in", {b"d": {b"x": (b"1", True)}, b"a": (b"1", False)})
        store.get_tree(store.put_tree(tmp_path / "in").digest, tmp_path / "out", read_only=True)
        modes = [(tmp_path / "out" / part).stat().st_mode & 0o777 for part in (".", "d", "d/x", "a")]
        assert modes == [0o555, 0o555, 0o555, 0o444]

    def test_progress_ends_at_the_whole(self, store: Store, tmp_path: Path):
        write_tree(tmp_path / "in", {b"a": (b"12", False), b"b": (b"345", False)})
        seen: list[tuple[int, int]] = []
        info = store.put_tree(tmp_path / "in", on_progress=lambda done, total: seen.append((done, total)))
        assert seen[-1] == (5, 5)
        store.get_tree(info.digest, tmp_path / "out", on_progress=lambda done, total: seen.append((done, total)))
        assert seen[-1] == (5, 5)

    def test_eight_that_put_the_same_tree_at_once_agree(self, store: Store, tmp_path: Path):
        write_tree(tmp_path / "in", {b"%d" % number: (b"%d" % (number % 20), False) for number in range(60)})
        found: list[Digest] = []
        threads = [
            threading.Thread(target=lambda: found.append(store.put_tree(tmp_path / "in").digest)) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 8
        assert len(set(found)) == 1
        assert len(decode_listing(store.listing(found[0]))) == 60
