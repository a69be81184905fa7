"""The keys of one store domain: ids, sealing, opening. Everything hangs below one secret by HKDF. Page: docs/formats/packs.md.

    secret ─ HKDF ┬ ids      keyed BLAKE3: chunk, file, tree and pointer names
                  ├ cut      where files are cut
                  ├ frames   one key a frame, by the frame's random id; one message a key
                  └ seal     one key a sealed record, by its random id

Two domains with other secrets share no id, no boundary and no byte for equal content. Ids and cuts stay with the oldest
secret, so that content is found again after a renewal; new frames and records are sealed under the newest.
"""

import secrets
import struct
from collections.abc import Mapping
from functools import lru_cache

from blake3 import blake3
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from trackbed.base.errors import Damaged, NotFound
from trackbed.base.ids import Digest, FileDigest

SEALED = b"TBS1"
TAG_BYTES = 16
_NONCE = bytes(12)  # a key seals one message only
_HEAD = struct.Struct("<4sH16s")


class Keys:
    """The secrets of a domain by generation (1, 2, …), 32 bytes each. Safe for threads; never pickled, never shown."""

    def __init__(self, store_id: bytes, domain: Mapping[int, bytes]) -> None:
        self.store_id = store_id
        self.generation = max(domain)
        self._oldest = min(domain)
        self._domain = dict(domain)
        self._ids = self._below(self._oldest, "ids")
        self._sub = lru_cache(64)(self._below)

    def __repr__(self) -> str:
        return f"Keys(store={self.store_id.hex()}, generation={self.generation})"

    @property
    def cut_key(self) -> bytes:
        return self._sub(self._oldest, "cut")

    def secrets(self) -> dict[int, bytes]:
        """The secrets themselves: to hand to a process that may read the store, or to wrap."""
        return dict(self._domain)

    def chunk_id(self, data: bytes | memoryview) -> bytes:
        return blake3(b"c" + blake3(data).digest(), key=self._ids).digest()

    def content_id(self, digest: FileDigest) -> bytes:
        """The id of the chunk that is the whole file of this digest."""
        return blake3(b"c" + bytes.fromhex(digest), key=self._ids).digest()

    def file_id(self, digest: FileDigest) -> bytes:
        return self._name(b"f", bytes.fromhex(digest))

    def hint_id(self, what: bytes) -> bytes:
        return self._name(b"h", what)

    def owner_id(self, owner: str) -> bytes:
        return self._name(b"o", owner.encode("utf-8", "surrogatepass")) if owner else b""

    def tree_name(self, digest: Digest) -> str:
        """The hex name of a tree's record."""
        return self._name(b"t", bytes.fromhex(digest[3:])).hex()

    def pointer_name(self, name: str) -> str:
        return self._name(b"p", name.encode("utf-8", "surrogatepass")).hex()

    def seal(self, purpose: str, name: str, data: bytes) -> bytes:
        """Seal a small record under a key of its own, bound to what it is and how it is called."""
        record = secrets.token_bytes(16)
        head = _HEAD.pack(SEALED, self.generation, record)
        return head + self._cipher(self.generation, "seal", record).encrypt(_NONCE, data, _bind(head, purpose, name))

    def open(self, purpose: str, name: str, sealed: bytes) -> bytes:
        """Open what `seal` gave.

        Raises:
            Damaged: `storage_record_damaged`.
            NotFound: `key_generation_missing`.
        """
        try:
            magic, generation, record = _HEAD.unpack_from(sealed)
            if magic != SEALED:
                raise InvalidTag
            cipher = self._cipher(generation, "seal", record)
            return cipher.decrypt(_NONCE, sealed[_HEAD.size :], _bind(sealed[: _HEAD.size], purpose, name))
        except (InvalidTag, struct.error) as fault:
            raise Damaged("storage_record_damaged", what=purpose, name=name) from fault

    def seal_frame(self, frame_id: bytes, header: bytes, data: bytes) -> bytes:
        """Seal a frame under the newest generation. An id is used once in the life of the domain."""
        return self._cipher(self.generation, "frames", frame_id).encrypt(_NONCE, data, header)

    def open_frame(self, generation: int, frame_id: bytes, header: bytes, sealed: bytes) -> bytes:
        """Open a frame; InvalidTag if a bit of it or of its header is another."""
        return self._cipher(generation, "frames", frame_id).decrypt(_NONCE, sealed, header)

    def _name(self, kind: bytes, what: bytes) -> bytes:
        return blake3(kind + what, key=self._ids).digest()

    def _cipher(self, generation: int, purpose: str, one: bytes) -> AESGCM:
        return AESGCM(blake3(one, key=self._sub(generation, purpose)).digest())

    def _below(self, generation: int, purpose: str) -> bytes:
        if generation not in self._domain:
            raise NotFound("key_generation_missing", generation=generation, store=self.store_id.hex())
        info = f"trackbed store 1 {purpose}".encode()
        return HKDF(algorithm=SHA256(), length=32, salt=self.store_id, info=info).derive(self._domain[generation])


def _bind(head: bytes, purpose: str, name: str) -> bytes:
    return b"\0".join([head, purpose.encode(), name.encode()])
