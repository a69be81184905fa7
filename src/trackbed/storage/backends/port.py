"""The port of a place for objects: seven verbs, nothing about chunks, keys or trees.

Names are `/`-separated words of `[a-z0-9._-]`. An object is whole or absent: a reader never sees half of one. What `put` and
`put_if` return from is durable. All methods may be called from any thread and process.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from trackbed.base.errors import BadInput

_NAME = re.compile(r"[a-z0-9_-][a-z0-9._-]*(/[a-z0-9_-][a-z0-9._-]*)*")


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    name: str
    size: int
    modified_us: int  # by the clock of the place, not ours


class Backend(Protocol):
    @property
    def url(self) -> str:
        """Where this is, without secrets: for messages and records."""
        ...

    @property
    def spool(self) -> Path | None:
        """A folder from which `put` of a `.part` file takes the file itself, without a copy; None where there is none."""
        ...

    def get(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        """Read a stretch of an object; one that ends behind the object's end is cut short.

        Raises:
            NotFound: `storage_object_missing`.
            Unavailable, Internal: the place does not answer, or refuses.
        """
        ...

    def read(self, name: str) -> tuple[bytes, str] | None:
        """Read a small object whole, with the version that `put_if` compares; None if it is absent."""
        ...

    def stat(self, name: str) -> ObjectInfo | None:
        """What lies under a name; None if nothing does."""
        ...

    def put(self, name: str, source: bytes | Path) -> None:
        """Keep bytes, or a file's, under a name, replacing what is there.

        Raises:
            StorageFull: nothing was kept.
        """
        ...

    def put_if(self, name: str, data: bytes, *, version: str | None) -> bool:
        """Keep a few bytes only if the name stands at `version` (None: only if it is absent); tell whether they were kept.

        Of many at once, exactly one wins.

        Raises:
            Unavailable: `storage_no_conditions`, this place ignores conditions: pointers must live in the server.
        """
        ...

    def delete(self, name: str) -> bool:
        """Remove an object, durably; tell whether it was there."""
        ...

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Every object below a prefix (whole words: it ends with `/`, or is empty), sorted by name."""
        ...


def checked(name: str) -> str:
    """Return a name that every place takes as it is.

    Raises:
        BadInput: `storage_object_name`.
    """
    if len(name) > 500 or not _NAME.fullmatch(name):
        raise BadInput("storage_object_name", name=name[:100])
    return name
