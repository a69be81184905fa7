"""Objects in a bucket of any S3-compatible store, by obstore. Retries, multipart and signing are its; conditions are probed.

`s3://bucket/prefix?endpoint=https://host&region=r&style=path|virtual`; the keys come from `AWS_ACCESS_KEY_ID`,
`AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`, or are given: never from the URL, which stands on records.
"""

import os
import secrets
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import S3Store

from trackbed.base.errors import BadInput, Denied, NotFound, StorageFull, TrackbedError, Unavailable
from trackbed.storage.backends.keys import S3Keys
from trackbed.storage.backends.port import ObjectInfo, checked
from trackbed.storage.files import open_source, unchanged

MIB = 1024 * 1024
_PART = 8 * MIB
_PARTS_MOST = 9_000  # of the 10,000 that S3 allows
_PARTS_AT_ONCE = 4  # with parts of 8 MiB: 32 MiB in memory
_CONDITION_FAILED = (AlreadyExistsError, PreconditionError, FileNotFoundError)  # obstore tells "not found" so


class S3Backend:
    """Adapter of `Backend` for a bucket, or what lies below a prefix of one."""

    def __init__(self, url: str, keys: S3Keys | None = None, *, retries: int = 6, retry_s: float = 120.0) -> None:
        place = _place(url)
        keys = keys or S3Keys.from_environment()
        if keys is None:
            raise BadInput("storage_s3_keys", url=place.shown)
        config: dict[str, str] = {
            "aws_access_key_id": keys.key_id, "aws_secret_access_key": keys.secret, "aws_region": place.region,
            "aws_virtual_hosted_style_request": str(place.virtual).lower(), "aws_conditional_put": "etag",
        }  # fmt: skip
        if place.endpoint:
            config["aws_endpoint"] = place.endpoint
        if keys.token:
            config["aws_session_token"] = keys.token
        self._url = place.shown
        self._prefix = place.prefix
        self._store = S3Store(
            place.bucket,
            config=config,  # pyright: ignore[reportArgumentType] - names as the environment spells them
            client_options={
                "allow_http": place.endpoint.startswith("http://"),
                "connect_timeout": timedelta(seconds=10),
                "timeout": timedelta(seconds=300),
            },
            retry_config={"max_retries": retries, "retry_timeout": timedelta(seconds=retry_s)},
        )
        self._conditions: bool | None = None
        self._probing = threading.Lock()

    @property
    def url(self) -> str:
        return self._url

    @property
    def spool(self) -> None:
        return None

    @property
    def conditions(self) -> bool:
        """Whether this place keeps the promise of conditional puts; probed once, by trying."""
        with self._probing:
            if self._conditions is None:
                self._conditions = self._probe()
        return self._conditions

    def get(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        if length == 0:
            if self.stat(name) is None:
                raise NotFound("storage_object_missing", name=name, where=self._url)
            return b""
        try:
            with self._place(name):
                if start == 0 and length is None:
                    return bytes(obstore.get(self._store, self._key(name)).bytes())
                end = None if length is None else start + length
                found = obstore.head(self._store, self._key(name))["size"] if end is None else end
                if found <= start:
                    return b""
                return bytes(obstore.get_range(self._store, self._key(name), start=start, end=found))
        except _Absent as absent:
            raise NotFound("storage_object_missing", name=name, where=self._url) from absent.__cause__
        except Unavailable:
            info = self.stat(name)
            if info is None or start < info.size:
                raise
            return b""  # a stretch behind the end, which a bucket refuses

    def read(self, name: str) -> tuple[bytes, str] | None:
        try:
            with self._place(name):
                found = obstore.get(self._store, self._key(name))
                return bytes(found.bytes()), found.meta["e_tag"] or ""
        except _Absent:
            return None

    def stat(self, name: str) -> ObjectInfo | None:
        try:
            with self._place(name):
                found = obstore.head(self._store, self._key(name))
                return ObjectInfo(name, found["size"], int(found["last_modified"].timestamp() * 1_000_000))
        except _Absent:
            return None

    def put(self, name: str, source: bytes | Path) -> None:
        with self._place(name):
            if isinstance(source, bytes):
                self._send(name, source, len(source))
                return
            fd = open_source(source)
            with os.fdopen(fd, "rb") as stream, unchanged(fd, source):
                self._send(name, stream, os.fstat(fd).st_size)

    def put_if(self, name: str, data: bytes, *, version: str | None) -> bool:
        if not self.conditions:
            raise Unavailable("storage_no_conditions", where=self._url)
        return self._put_if(name, data, version)

    def delete(self, name: str) -> bool:
        if self.stat(name) is None:
            return False
        try:
            with self._place(name):
                obstore.delete(self._store, self._key(name))
        except _Absent:
            return False
        return True

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        if prefix:
            checked(prefix.rstrip("/"))
        found: list[ObjectInfo] = []
        with self._place(prefix):
            for page in obstore.list(self._store, prefix=self._prefix + prefix or None, chunk_size=1000):
                for one in page:
                    name = one["path"][len(self._prefix) :]
                    found.append(ObjectInfo(name, one["size"], int(one["last_modified"].timestamp() * 1_000_000)))
        yield from sorted(found, key=lambda one: one.name)

    def _send(self, name: str, source: object, size: int) -> None:
        part = part_size(size)
        obstore.put(
            self._store, self._key(name), source,  # pyright: ignore[reportArgumentType] - bytes or an open file
            chunk_size=part, max_concurrency=_PARTS_AT_ONCE, use_multipart=size > part,
        )  # fmt: skip

    def _put_if(self, name: str, data: bytes, version: str | None) -> bool:
        with self._place(name):
            try:
                mode = "create" if version is None else {"e_tag": version}
                obstore.put(self._store, self._key(name), data, mode=mode, use_multipart=False)  # pyright: ignore[reportArgumentType]
            except _CONDITION_FAILED:
                return False
        return True

    def _probe(self) -> bool:
        """Try each promise on a scratch object: a store that ignores a condition answers as if it had kept it."""
        name = f"probe/{secrets.token_hex(8)}"
        try:
            if not self._put_if(name, b"1", None) or self._put_if(name, b"2", None):
                return False
            now = self.read(name)
            if now is None or now[0] != b"1" or self._put_if(name, b"3", '"0123456789abcdef0123456789abcdef"'):
                return False
            if not self._put_if(name, b"4", now[1]) or self._put_if(name, b"5", now[1]):
                return False
            self.delete(name)
            return not self._put_if(name, b"6", now[1]) and self.stat(name) is None  # minio/minio#21526
        except (NotFound, Denied):
            raise
        except TrackbedError:
            return False
        finally:
            with suppress(TrackbedError):  # a place that cannot even delete shows so later, by name
                self.delete(name)

    def _key(self, name: str) -> str:
        return self._prefix + checked(name)

    @contextmanager
    def _place(self, name: str) -> Generator[None]:
        """Turn what the store answers inside the block into errors of ours."""
        try:
            yield
        except FileNotFoundError as fault:
            if "NoSuchBucket" in str(fault):
                raise NotFound("storage_bucket_missing", where=self._url) from fault
            raise _Absent from fault
        except (PermissionDeniedError, UnauthenticatedError) as fault:
            raise Denied("storage_s3_denied", where=self._url) from fault
        except (BaseError, OSError) as fault:
            why = _short(fault)
            if "InsufficientStorage" in why or "QuotaExceeded" in why or " 507" in why:
                raise StorageFull("storage_full", where=self._url) from fault
            raise Unavailable("storage_s3_away", where=self._url, name=name, why=why) from fault


class _Absent(Exception):
    """The object is not there."""


def part_size(size: int) -> int:
    """Bytes of a part, a whole number of MiB: grows with the file so that no upload needs more parts than S3 allows."""
    return max(_PART, -(-size // (_PARTS_MOST * MIB)) * MIB)


@dataclass(frozen=True)
class _Place:
    bucket: str
    prefix: str
    endpoint: str
    region: str
    virtual: bool
    shown: str


def _place(url: str) -> _Place:
    parts = urlsplit(url)
    asked = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    unknown = sorted(asked.keys() - {"endpoint", "region", "style"})
    if parts.scheme != "s3" or not parts.netloc or "@" in parts.netloc or unknown or parts.fragment:
        raise BadInput("storage_s3_url", url=parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl())
    prefix = unquote(parts.path).strip("/")
    if prefix:
        checked(prefix)
    endpoint = asked.get("endpoint", "") or os.environ.get(
        "AWS_ENDPOINT_URL_S3", os.environ.get("AWS_ENDPOINT_URL", "")
    )
    region = asked.get("region", "") or os.environ.get("AWS_REGION", "us-east-1")
    style = asked.get("style", "path" if endpoint else "virtual")
    if style not in ("path", "virtual"):
        raise BadInput("storage_s3_url", url=url)
    return _Place(parts.netloc, prefix and prefix + "/", endpoint, region, style == "virtual", url)


def _short(fault: Exception) -> str:
    return " ".join(str(fault).split())[:300]
