"""The port of a place for objects: six verbs, nothing about chunks, keys or trees.

Names are `/`-separated words of `[a-z0-9._-]`. An object is whole or absent: a reader never sees half of one. What `put` and
`put_if` return from is durable. All methods may be called from any thread and process.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    name: str
    size: int
    modified_us: int  # by the clock of the place, not ours
    version: str  # changes with every put of the name; what `put_if` compares


class Backend(Protocol):
    @property
    def url(self) -> str:
        """Where this is, without secrets: for messages and records."""
        ...

    def get(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        """Read a stretch of an object; one that ends behind the object's end is cut short.

        Raises:
            NotFound: `storage_object_missing`.
            Unavailable, Internal: the place does not answer, or refuses.
        """
        ...

    def stat(self, name: str) -> ObjectInfo | None:
        """What lies under a name; None if nothing does."""
        ...

    def put(self, name: str, source: bytes | Path) -> str:
        """Keep bytes, or a file's, under a name, replacing what is there; return the version.

        Raises:
            StorageFull: nothing was kept.
        """
        ...

    def put_if(self, name: str, data: bytes, *, version: str | None) -> str | None:
        """Keep bytes only if the name stands at `version` (None: only if it is absent).

        Return the new version, or None if it stands elsewhere: of many at once, exactly one wins.

        Raises:
            Unavailable: `storage_no_conditions`, this place ignores conditions: refs must live in the server.
        """
        ...

    def delete(self, name: str) -> bool:
        """Remove an object; return whether it was there. Durable on return."""
        ...

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Every object whose name starts with `prefix` (whole words: it ends with `/`, or is empty), sorted by name."""
        ...
