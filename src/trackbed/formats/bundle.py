"""Bundles: runs in one zip file. Its manifest names every member with its size and BLAKE3; nothing else is in it.

    bundle.json                     the manifest, last in the file
    runs/<run id>/run.json          the record          runs/<run id>/events.jsonl   what happened to it
    runs/<run id>/points.tbs        metric frames       runs/<run id>/log.tbs        log frames (docs/formats/spool.md)
    blobs/<BLAKE3>                  files, each once

The digest of a bundle is the BLAKE3 of its manifest. A reader trusts nothing: names, sizes and ratios are judged before a
byte is unpacked, and every byte is checked against the manifest as it is read.

Source: docs/formats/bundle.md
"""

import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from typing import IO, Any

import msgspec
from blake3 import blake3

from trackbed.base.errors import BadInput, Damaged, TooLarge

FORMAT, VERSION = "trackbed-bundle", 1
MANIFEST = "bundle.json"
RECORD, POINTS, LOG, EVENTS = "run.json", "points.tbs", "log.tbs", "events.jsonl"
MOST_MEMBERS = 1_000_000
MOST_MANIFEST_BYTES = 512 * 2**20
MOST_BYTES = 256 * 2**30  # unpacked
MOST_RATIO = 250  # of what is larger than a mebibyte; deflate itself ends at about 1,030
_BLOCK = 2**20
_NAME = re.compile(r"runs/run_[0-9a-z]{6,40}/(run\.json|points\.tbs|log\.tbs|events\.jsonl)|blobs/[0-9a-f]{64}")
_TIME = (1980, 1, 1, 0, 0, 0)  # of members: when it was made stands in the manifest
# All that the standard library raises on bytes that are no zip, or no longer one.
_BROKEN = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError,
    OverflowError, LookupError,
)  # fmt: skip
_PACKED = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})


class Member(msgspec.Struct, kw_only=True):
    size: int
    blake3: str


class Manifest(msgspec.Struct, kw_only=True):
    """`origin`: which installation made it; `filter`: what was asked for; `runs`: id → reference there."""

    format: str = FORMAT
    version: int = VERSION
    made_us: int = 0
    origin: dict[str, str] = {}
    filter: str = ""
    artifacts: bool = True  # whether the files of the runs are in it
    runs: dict[str, str] = {}
    members: dict[str, Member] = {}


class Writer:
    """Writes a bundle member by member into a file that need not be seekable."""

    def __init__(self, target: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(target, "w", allowZip64=True)
        self._members: dict[str, Member] = {}

    def has(self, name: str) -> bool:
        return name in self._members

    def add(self, name: str, blocks: Iterable[bytes]) -> Member:
        """Add a member. Blobs are stored as they are, text and frames are deflated."""
        if not _NAME.fullmatch(name) or name in self._members:
            raise ValueError(f"no name of a member, or one twice: {name!r}")
        hasher, size = blake3(), 0
        with self._zip.open(_info(name, deflate=not name.startswith("blobs/")), "w", force_zip64=True) as member:
            for block in blocks:
                hasher.update(block)
                size += len(block)
                member.write(block)
        self._members[name] = Member(size=size, blake3=hasher.hexdigest())
        return self._members[name]

    def close(self, manifest: Manifest) -> str:
        """Write the manifest and return the digest of the bundle."""
        data = msgspec.json.encode(msgspec.structs.replace(manifest, members=self._members))
        self._zip.writestr(_info(MANIFEST, deflate=True), data)
        self._zip.close()
        return blake3(data).hexdigest()


class Reader:
    """Opens a bundle and judges all that can be judged without unpacking.

    Raises:
        BadInput: `bundle_not_one`, `bundle_version`, `bundle_path`, `bundle_odd`.
        TooLarge: `bundle_large`.
        Damaged: `bundle_damaged`.
    """

    def __init__(self, source: IO[bytes], *, most_bytes: int = MOST_BYTES) -> None:
        try:
            self._zip = zipfile.ZipFile(source)
        except _BROKEN as broken:
            raise BadInput("bundle_not_one", what=str(broken)[:200]) from None
        self._infos = _judged(self._zip.infolist(), most_bytes)
        if MANIFEST not in self._infos:
            raise BadInput("bundle_not_one", what=MANIFEST)
        data = b"".join(self._blocks(MANIFEST))
        self.digest = blake3(data).hexdigest()
        self.manifest = _manifest(data)
        self._agree()

    def read(self, name: str) -> bytes:
        """Return a member; for records, not for blobs."""
        return b"".join(self.blocks(name))

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yield a member's bytes; after the last one it has been checked.

        Raises:
            Damaged: `bundle_damaged`.
        """
        member, hasher, size = self.manifest.members[name], blake3(), 0
        for block in self._blocks(name):
            hasher.update(block)
            size += len(block)
            yield block
        if size != member.size or hasher.hexdigest() != member.blake3:
            raise Damaged("bundle_damaged", member=name, expected=member.blake3[:16], found=hasher.hexdigest()[:16])

    def has(self, name: str) -> bool:
        return name in self.manifest.members

    def verify(self) -> None:
        """Read everything once."""
        for name in self.manifest.members:
            for _ in self.blocks(name):
                pass

    def _blocks(self, name: str) -> Iterator[bytes]:
        try:
            with self._zip.open(self._infos[name]) as member:
                while block := member.read(_BLOCK):
                    yield block
        except _BROKEN as broken:
            raise Damaged("bundle_damaged", member=name, expected="-", found=str(broken)[:100]) from None

    def _agree(self) -> None:
        named, there = self.manifest.members, self._infos.keys() - {MANIFEST}
        for name in sorted(there ^ named.keys()):
            raise Damaged("bundle_damaged", member=name[:200], expected="-", found="-")
        for name, member in named.items():
            if self._infos[name].file_size != member.size:
                size = self._infos[name].file_size
                raise Damaged("bundle_damaged", member=name, expected=str(member.size), found=str(size))
            if name.startswith("blobs/") and name != f"blobs/{member.blake3}":
                raise Damaged("bundle_damaged", member=name, expected=name[6:22], found=member.blake3[:16])
        for ident in self.manifest.runs:
            if f"runs/{ident}/{RECORD}" not in named:
                raise Damaged("bundle_damaged", member=f"runs/{ident}/{RECORD}"[:200], expected="-", found="-")


def _judged(infos: list[zipfile.ZipInfo], most_bytes: int) -> dict[str, zipfile.ZipInfo]:
    if len(infos) > MOST_MEMBERS:
        raise TooLarge("bundle_large", bytes=len(infos), most=MOST_MEMBERS)
    found: dict[str, zipfile.ZipInfo] = {}
    total = 0
    for info in infos:
        name = info.filename
        if name != MANIFEST and not _NAME.fullmatch(name):
            raise BadInput("bundle_path", member=ascii(name)[:200])
        if name in found or info.flag_bits & 1 or info.compress_type not in _PACKED:
            raise BadInput("bundle_odd", member=name)
        found[name] = info
        total += info.file_size
        bomb = info.file_size > _BLOCK and info.file_size > MOST_RATIO * max(info.compress_size, 1)
        most = MOST_MANIFEST_BYTES if name == MANIFEST else most_bytes
        if bomb or info.file_size > most or total > most_bytes:
            raise TooLarge("bundle_large", bytes=max(total, info.file_size), most=min(most, most_bytes))
    return found


def _manifest(data: bytes) -> Manifest:
    try:
        head: Any = msgspec.json.decode(data)
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise BadInput("bundle_not_one", what=MANIFEST)
        if head.get("version") != VERSION:
            raise BadInput("bundle_version", version=str(head.get("version"))[:20], known=VERSION)
        return msgspec.convert(head, Manifest)
    except msgspec.MsgspecError as broken:
        raise BadInput("bundle_not_one", what=str(broken)[:200]) from None


def _info(name: str, *, deflate: bool) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _TIME)
    info.compress_type = zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED
    info.external_attr = 0o600 << 16
    return info
