"""Keys of a domain: frozen, bound to what they seal, strangers to those of another domain."""

import pytest
from cryptography.exceptions import InvalidTag
from hypothesis import given
from hypothesis import strategies as st

from trackbed.base.errors import Damaged, NotFound
from trackbed.base.ids import Digest, FileDigest
from trackbed.formats.tree import file_digest
from trackbed.storage.keys import Keys

STORE, SECRET = bytes(range(16)), bytes(range(32))
SOME = FileDigest("ab" * 32)


@pytest.fixture(scope="module")
def keys() -> Keys:
    return Keys(STORE, {1: SECRET})


def test_ids_of_this_version_are_frozen(keys: Keys):
    assert keys.chunk_id(b"").hex() == "1e419edfa8325d07c49ac3c3dc58dd10c6943558c6dd871114466d805af17f76"
    assert keys.cut_key.hex() == "352abadf1d722e5b5a7745d56ecb95f7a8ed36717d7b6cee3202d408321cc320"
    assert keys.file_id(SOME).hex() == "0917ab9be820a78fb23f6f42d511aecb06380672abb5c25d6221445f2304a362"
    assert keys.tree_name(Digest(f"b3:{SOME}")) == "6d0d3b648c94c199abcd827847430c50527c6c2040f74363d79021b21269096b"


def test_the_id_of_a_file_of_one_chunk_follows_from_its_digest(keys: Keys):
    assert keys.content_id(file_digest(b"small")) == keys.chunk_id(b"small")


@given(data=st.binary(max_size=200), at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_a_record_opens_as_it_was_sealed_and_not_with_a_bit_flipped(data: bytes, at: int, bit: int):
    keys = Keys(STORE, {1: SECRET})
    sealed = keys.seal("tree", "name", data)
    assert keys.open("tree", "name", sealed) == data
    spoiled = bytearray(sealed)
    spoiled[at % len(sealed)] ^= 1 << bit
    with pytest.raises((Damaged, NotFound)):
        keys.open("tree", "name", bytes(spoiled))


@pytest.mark.parametrize(("purpose", "name"), [("footer", "name"), ("tree", "other"), ("tree\0name", "")])
def test_a_record_is_bound_to_what_it_is_and_how_it_is_called(keys: Keys, purpose: str, name: str):
    with pytest.raises(Damaged):
        keys.open(purpose, name, keys.seal("tree", "name", b"x"))


def test_the_same_record_never_looks_the_same(keys: Keys):
    assert keys.seal("tree", "name", b"x") != keys.seal("tree", "name", b"x")


def test_a_frame_is_bound_to_its_header(keys: Keys):
    sealed = keys.seal_frame(b"f" * 16, b"header", b"x")
    assert keys.open_frame(1, b"f" * 16, b"header", sealed) == b"x"
    for frame_id, header in ((b"g" * 16, b"header"), (b"f" * 16, b"headeR")):
        with pytest.raises(InvalidTag):
            keys.open_frame(1, frame_id, header, sealed)


@pytest.mark.parametrize("other", [Keys(STORE, {1: bytes(32)}), Keys(bytes(16), {1: SECRET})])
def test_another_secret_or_another_store_shares_nothing(keys: Keys, other: Keys):
    assert other.chunk_id(b"x") != keys.chunk_id(b"x")
    assert other.cut_key != keys.cut_key
    with pytest.raises(Damaged):
        other.open("tree", "name", keys.seal("tree", "name", b"x"))


def test_a_new_generation_seals_and_the_oldest_names(keys: Keys):
    renewed = Keys(STORE, {1: SECRET, 2: bytes(32)})
    assert renewed.generation == 2
    assert (renewed.chunk_id(b"x"), renewed.cut_key) == (keys.chunk_id(b"x"), keys.cut_key)
    assert renewed.open("tree", "name", keys.seal("tree", "name", b"x")) == b"x"
    with pytest.raises(NotFound, match="generation 2"):
        keys.open("tree", "name", renewed.seal("tree", "name", b"x"))


def test_keys_are_never_shown(keys: Keys):
    assert SECRET.hex() not in repr(keys) and "Keys(store=" in repr(keys)
