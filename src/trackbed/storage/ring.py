"""Where the secrets of a store are kept: wrapped by the master key, in the store itself. Page: docs/formats/packs.md, "Keys".

    master key   32 bytes in a file of its own (0600), or in TRACKBED_MASTER_KEY; never in the store
    format       plain header of the store: which version, which algorithms, how files are cut
    keys/ring    the domain's secrets, each wrapped by the master key; the header is bound to them

Store and master key together open everything. Rotation wraps again and moves the ring by compare-and-set: a kill leaves the
old ring or the new one, never half of one.
"""

import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
from blake3 import blake3
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from trackbed.base import faults
from trackbed.base.errors import BadInput, Conflict, Damaged, Denied, NotFound, Unavailable
from trackbed.formats.cut import CutRule
from trackbed.storage.backends.port import Backend
from trackbed.storage.files import disk, write_durably
from trackbed.storage.keys import Keys

FORMAT, RING = "format", "keys/ring"
MASTER_VARIABLE = "TRACKBED_MASTER_KEY"
_MASTER_LINE = "trackbed master key 1"
_KIT_LINE = "trackbed recovery kit 1"
_ALGORITHMS = {"cut": "gear32", "ids": "blake3-keyed", "seal": "aes-256-gcm", "derive": "hkdf-sha256"}


class _Cut(msgspec.Struct, frozen=True):
    min: int
    avg: int
    max: int
    strict_bits: int
    loose_bits: int


class StoreHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The plain header. A reader refuses another version and algorithms it does not know."""

    format: str = "trackbed.store"
    version: int = 1
    store: str  # 32 hex digits, random
    algorithms: dict[str, str]
    cut: _Cut

    @property
    def rule(self) -> CutRule:
        return CutRule(self.cut.min, self.cut.avg, self.cut.max, self.cut.strict_bits, self.cut.loose_bits)


class _Wrapped(msgspec.Struct, frozen=True):
    generation: int
    nonce: str
    key: str


class _Ring(msgspec.Struct, frozen=True, kw_only=True):
    format: str = "trackbed.ring"
    version: int = 1
    store: str
    master: str  # fingerprint of the master key that opens it
    wrapped: list[_Wrapped]


@dataclass(frozen=True)
class Opened:
    keys: Keys
    rule: CutRule
    master: str  # fingerprint


def fingerprint(master: bytes) -> str:
    """Sixteen digits that tell master keys apart and nothing about them."""
    return blake3(master, derive_key_context="trackbed 2026-12-01 master key fingerprint").hexdigest()[:16]


def read_master(path: Path) -> bytes:
    """Return the master key of `TRACKBED_MASTER_KEY`, else of a file.

    Raises:
        NotFound: `key_missing`.
        BadInput: `key_unreadable`, not a key file. Denied: `key_open_to_others`, its mode lets others read it.
    """
    if given := os.environ.get(MASTER_VARIABLE):
        return _parse(given, MASTER_VARIABLE)
    try:
        with disk(path):
            mode = path.stat().st_mode & 0o077
            text = path.read_text(encoding="ascii", errors="replace")
    except Exception as fault:
        if isinstance(fault.__cause__, FileNotFoundError):
            raise NotFound("key_missing", where=str(path)) from fault
        raise
    if mode:
        raise Denied("key_open_to_others", where=str(path))
    return _parse(text.removeprefix(_MASTER_LINE).strip(), str(path))


def make_master(path: Path) -> bytes:
    """Return the master key of a file; make it, durably and for its owner only, if there is none."""
    if os.environ.get(MASTER_VARIABLE):
        return read_master(path)
    try:
        return read_master(path)
    except NotFound:
        master = secrets.token_bytes(32)
    with disk(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        candidate = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
        write_durably(
            candidate, f"{_MASTER_LINE}\n{master.hex()}\n".encode(), aside=path.parent, mode=0o600, step="master"
        )
        try:
            os.link(candidate, path)  # never over one that another process made meanwhile
        except FileExistsError:
            pass
        finally:
            candidate.unlink()
    return read_master(path)


def write_master(path: Path, master: bytes) -> None:
    """Put a new master key in place of the old one, durably: the last step of a rotation."""
    with disk(path):
        write_durably(path, f"{_MASTER_LINE}\n{master.hex()}\n".encode(), aside=path.parent, mode=0o600, step="master")


def open_ring(backend: Backend, master: bytes) -> Opened:
    """Open the domain of a store.

    Raises:
        NotFound: `store_empty`, there is no store there.
        Denied: `key_wrong`, another master key is asked for.
        BadInput: `store_format_unknown`. Damaged: `storage_record_damaged`.
    """
    header, plain = _header(backend)
    ring = _ring(backend)[0]
    if ring.store != header.store:
        raise Damaged("storage_record_damaged", what="ring", name=RING)
    secrets_by_generation = {one.generation: _unwrap(master, ring, one, plain) for one in ring.wrapped}
    return Opened(Keys(bytes.fromhex(header.store), secrets_by_generation), header.rule, ring.master)


def sealed_with(backend: Backend) -> str:
    """Fingerprint of the master key that a store is sealed with; empty where there is no store yet."""
    return _ring(backend)[0].master if backend.read(RING) is not None else ""


def read_rule(backend: Backend) -> CutRule:
    """How a store cuts: told by its plain header, without any key."""
    return _header(backend)[0].rule


def make_ring(backend: Backend, master: bytes, *, rule: CutRule | None = None) -> Opened:
    """Open the domain of a store, made first if nothing is there. Of several makers at once, all get the same."""
    if backend.read(RING) is None:
        header = _make_header(backend, rule or CutRule())
        plain = msgspec.json.encode(header)
        wrapped = [_wrap(master, header.store, 1, secrets.token_bytes(32), plain)]
        ring = _Ring(store=header.store, master=fingerprint(master), wrapped=wrapped)
        _put_new(backend, RING, msgspec.json.encode(ring))
    return open_ring(backend, master)


def rotate(backend: Backend, old: bytes, new: bytes) -> None:
    """Wrap the domain's secrets under another master key. Done already: nothing happens.

    Raises:
        Denied: `key_wrong`, neither key opens the ring.
        Conflict: `ring_moved`, another rotation came between.
    """
    header, plain = _header(backend)
    ring, version = _ring(backend)
    if ring.master == fingerprint(new):
        open_ring(backend, new)
        return
    pairs = [(one.generation, _unwrap(old, ring, one, plain)) for one in ring.wrapped]
    wrapped = [_wrap(new, header.store, generation, secret, plain) for generation, secret in pairs]
    _replace(backend, _Ring(store=ring.store, master=fingerprint(new), wrapped=wrapped), version)
    open_ring(backend, new)


def renew(backend: Backend, master: bytes) -> int:
    """Give the domain a new secret: whatever is written from now on is sealed under it. Return its generation."""
    header, plain = _header(backend)
    ring, version = _ring(backend)
    for one in ring.wrapped:
        _unwrap(master, ring, one, plain)
    generation = max(one.generation for one in ring.wrapped) + 1
    fresh = _wrap(master, header.store, generation, secrets.token_bytes(32), plain)
    _replace(backend, _Ring(store=ring.store, master=ring.master, wrapped=[*ring.wrapped, fresh]), version)
    return generation


def recovery_kit(master: bytes, backend: Backend) -> str:
    """What a person keeps elsewhere: with it and the store, everything can be read again."""
    header, _ = _header(backend)
    return "\n".join(
        [
            _KIT_LINE,
            f"store {header.store} at {backend.url}",
            f"master {master.hex()}",
            f"fingerprint {fingerprint(master)}",
            "Keep this where the store is not. Whoever has both reads everything.",
            "",
        ]
    )


def read_kit(text: str) -> bytes:
    """The master key of a recovery kit."""
    lines = text.splitlines()
    if not lines or lines[0] != _KIT_LINE:
        raise BadInput("key_unreadable", where=_KIT_LINE)
    values = dict(line.split(" ", 1) for line in lines[1:] if " " in line)
    return _parse(values.get("master", ""), _KIT_LINE)


def planted(backend: Backend, markers: list[bytes]) -> Iterator[tuple[str, int]]:
    """Look for markers in every object of a store, as they are; give name and place of each find. None is the proof."""
    longest = max(len(marker) for marker in markers)
    step = 8 * 1024 * 1024
    for info in backend.list(""):
        for start in range(0, max(info.size, 1), step):
            data = backend.get(info.name, start, step + longest - 1)
            for marker in markers:
                found = data.find(marker)
                if found >= 0:
                    yield info.name, start + found


def _parse(text: str, where: str) -> bytes:
    try:
        master = bytes.fromhex(text.strip())
    except ValueError:
        master = b""
    if len(master) != 32:
        raise BadInput("key_unreadable", where=where)
    return master


def _make_header(backend: Backend, rule: CutRule) -> StoreHeader:
    cut = _Cut(rule.min, rule.avg, rule.max, rule.strict_bits, rule.loose_bits)
    header = StoreHeader(store=secrets.token_hex(16), algorithms=_ALGORITHMS, cut=cut)
    _put_new(backend, FORMAT, msgspec.json.encode(header))
    return _header(backend)[0]


def _header(backend: Backend) -> tuple[StoreHeader, bytes]:
    found = backend.read(FORMAT)
    if found is None:
        raise NotFound("store_empty", where=backend.url)
    try:
        header = msgspec.json.decode(found[0], type=StoreHeader)
    except msgspec.DecodeError as fault:
        raise Damaged("storage_record_damaged", what="header", name=FORMAT) from fault
    unknown = {key: name for key, name in header.algorithms.items() if _ALGORITHMS.get(key) != name}
    if header.format != "trackbed.store" or header.version != 1 or unknown:
        raise BadInput("store_format_unknown", where=backend.url, version=header.version, unknown=unknown or "-")
    return header, found[0]


def _ring(backend: Backend) -> tuple[_Ring, str]:
    found = backend.read(RING)
    if found is None:
        raise NotFound("store_empty", where=backend.url)
    try:
        ring = msgspec.json.decode(found[0], type=_Ring)
    except msgspec.DecodeError as fault:
        raise Damaged("storage_record_damaged", what="ring", name=RING) from fault
    if ring.version != 1 or not ring.wrapped:
        raise BadInput("store_format_unknown", where=backend.url, version=ring.version, unknown="-")
    return ring, found[1]


def _wrap(master: bytes, store: str, generation: int, secret: bytes, header: bytes) -> _Wrapped:
    nonce = secrets.token_bytes(12)
    key = AESGCM(master).encrypt(nonce, secret, _bound(store, generation, header))
    return _Wrapped(generation, nonce.hex(), key.hex())


def _unwrap(master: bytes, ring: _Ring, one: _Wrapped, header: bytes) -> bytes:
    if ring.master != fingerprint(master):
        raise Denied("key_wrong", wanted=ring.master, given=fingerprint(master))
    try:
        bound = _bound(ring.store, one.generation, header)
        return AESGCM(master).decrypt(bytes.fromhex(one.nonce), bytes.fromhex(one.key), bound)
    except (InvalidTag, ValueError) as fault:
        raise Damaged("storage_record_damaged", what="ring", name=RING) from fault


def _bound(store: str, generation: int, header: bytes) -> bytes:
    return b"\0".join([b"trackbed ring 1", store.encode(), str(generation).encode(), header])


def _replace(backend: Backend, ring: _Ring, version: str) -> None:
    faults.point("ring.ready")
    try:
        moved = backend.put_if(RING, msgspec.json.encode(ring), version=version)
    except Unavailable as fault:
        if fault.code != "storage_no_conditions":
            raise
        backend.put(RING, msgspec.json.encode(ring))
        moved = True
    if not moved:
        raise Conflict("ring_moved", where=backend.url)
    faults.point("ring.moved")


def _put_new(backend: Backend, name: str, data: bytes) -> None:
    try:
        backend.put_if(name, data, version=None)
    except Unavailable as fault:
        if fault.code != "storage_no_conditions":
            raise
        if backend.stat(name) is None:
            backend.put(name, data)
