"""A store by its URL. The one place that knows the adapters.

file:///path               a folder; format 0 without a key, else the chunk store in its folder chunks/ (what format 0
                           holds beside it can still be read)
s3://bucket/prefix?…       the chunk store in a bucket (backends.s3); its index lies in a folder of this machine
"""

from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

from blake3 import blake3

from trackbed.base.errors import BadInput, NotFound, NotYet
from trackbed.storage.backends.folder import FolderBackend
from trackbed.storage.backends.keys import S3Keys
from trackbed.storage.backends.paced import PacedBackend, Takes
from trackbed.storage.backends.port import Backend
from trackbed.storage.chunks import ChunkStore
from trackbed.storage.index import ChunkIndex
from trackbed.storage.keys import Keys
from trackbed.storage.local import LocalStore
from trackbed.storage.refs_backend import BackendRefs
from trackbed.storage.ring import FORMAT, Opened, make_ring, read_rule
from trackbed.storage.store import Refs, Store

CHUNKS, CACHE = "chunks", "local"


@dataclass(frozen=True)
class DomainKeys:
    """What one store domain is opened with: in memory only, for the server's master file stays where it is."""

    store_id: bytes
    secrets: dict[int, bytes] = field(repr=False)
    s3: S3Keys | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Options:
    cache: Path | None = None  # where the index of a bucket lies
    refs: Refs | None = None  # pointers that live elsewhere; needed where a bucket keeps no conditions
    pace: Takes | None = None
    threads: int = 2
    level: int = 2  # of zstd; 1 for --fast
    old: bool = True  # read what format 0 holds in the same folder


def open_store(url: str, *, key: bytes | DomainKeys | None = None, options: Options | None = None) -> Store:
    """Open, and if it is new make, the store at a URL.

    `key` is the master key, or the keys of the domain that a grant gave; a folder opens in format 0 without one.

    Raises:
        NotYet: `storage_scheme_unknown`, another kind of address.
        BadInput: the folder is something else, or of another version.
        NotFound: `key_missing`, the store is sealed. Denied: `key_wrong`.
    """
    folder = _folder(url)
    if key is None:
        if folder is None or is_sealed(url):
            raise NotFound("key_missing", where=url)
        return LocalStore(folder)
    return open_chunks(url, key, options)


def is_sealed(url: str) -> bool:
    """Whether what lies at a URL needs a key to be opened."""
    folder = _folder(url)
    return folder is None or (folder / CHUNKS / FORMAT).exists()


def open_chunks(url: str, key: bytes | DomainKeys, options: Options | None = None) -> ChunkStore:
    """Open, and if it is new make, a chunk store."""
    chosen = options or Options()
    folder = _folder(url)
    backend = open_backend(url, key.s3 if isinstance(key, DomainKeys) else None)
    opened = make_ring(backend, key) if isinstance(key, bytes) else _granted(backend, key)
    sealer = _Sealer(opened.keys)
    old = LocalStore(folder) if chosen.old and folder and (folder / "FORMAT").exists() else None
    return ChunkStore(
        PacedBackend(backend, chosen.pace) if chosen.pace else backend,
        opened.keys,
        ChunkIndex.open(_index(url, folder, chosen)),
        refs=chosen.refs or BackendRefs(backend, sealer),
        old=old,
        threads=chosen.threads,
        level=chosen.level,
        rule=opened.rule,
    )


def open_backend(url: str, s3: S3Keys | None = None) -> Backend:
    """The place of a chunk store's objects, without any key."""
    folder = _folder(url)
    if folder is not None:
        return FolderBackend(folder / CHUNKS)
    made = import_module("trackbed.storage.backends.s3")  # the only part that needs obstore: the extra `s3`
    return made.S3Backend(url, s3)


def _granted(backend: Backend, key: DomainKeys) -> Opened:
    return Opened(Keys(key.store_id, key.secrets), read_rule(backend), "")


def _folder(url: str) -> Path | None:
    parts = urlsplit(url)
    if parts.scheme == "s3":
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise NotYet("storage_scheme_unknown", url=url)
    return Path(unquote(parts.path))


def _index(url: str, folder: Path | None, options: Options) -> Path:
    if options.cache is not None:
        return options.cache / f"{blake3(url.encode()).hexdigest()[:16]}.sqlite"
    if folder is None:
        raise BadInput("storage_cache_needed", url=url)
    return folder / CACHE / "index.sqlite"


class _Sealer:
    """Pointers under the domain's keys."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    def name(self, name: str) -> str:
        return self._keys.pointer_name(name)

    def seal(self, place: str, data: bytes) -> bytes:
        return self._keys.seal("pointer", place, data)

    def open(self, place: str, data: bytes) -> bytes:
        return self._keys.open("pointer", place, data)
