"""A place behind a pace: whatever goes in or comes out waits for its turn."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from trackbed.storage.backends.port import Backend, ObjectInfo


class Takes(Protocol):
    def take(self, count: int) -> None:
        """Wait until so many bytes may go."""
        ...


class PacedBackend:
    """Adapter of `Backend` around another one."""

    def __init__(self, inner: Backend, pace: Takes) -> None:
        self._inner, self._pace = inner, pace

    @property
    def url(self) -> str:
        return self._inner.url

    @property
    def spool(self) -> Path | None:
        return self._inner.spool

    def get(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        data = self._inner.get(name, start, length)
        self._pace.take(len(data))
        return data

    def read(self, name: str) -> tuple[bytes, str] | None:
        return self._inner.read(name)

    def stat(self, name: str) -> ObjectInfo | None:
        return self._inner.stat(name)

    def put(self, name: str, source: bytes | Path) -> None:
        self._pace.take(len(source) if isinstance(source, bytes) else source.stat().st_size)
        self._inner.put(name, source)

    def put_if(self, name: str, data: bytes, *, version: str | None) -> bool:
        return self._inner.put_if(name, data, version=version)

    def delete(self, name: str) -> bool:
        return self._inner.delete(name)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        return self._inner.list(prefix)
