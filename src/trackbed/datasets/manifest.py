"""What a folder or file would be as a dataset version, known on a laptop before anything is sent."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trackbed.storage.scan import Scan
from trackbed.storage.scan import scan as scan_tree
from trackbed.storage.store import Progress


@dataclass(frozen=True)
class Manifest:
    """Sorted listing with a digest for each file, the digest of all, and where the bytes lie (`scan.files`)."""

    kind: Literal["folder", "file"]
    scan: Scan


def scan(place: Path, *, keep: Callable[[str], bool] | None = None, on_progress: Progress | None = None) -> Manifest:
    """Read a folder, or one file (a version of kind `file`), and return its manifest.

    `keep` chooses by relative path; folders are asked with a `/` at the end and not entered if refused.

    Raises:
        BadInput: `storage_path_missing`; links that leave, special and unreadable files, all at once.
        Conflict: `storage_file_changed`.
    """
    found = scan_tree(place, keep=keep, on_progress=on_progress)
    return Manifest("file" if place.is_file() else "folder", found)
