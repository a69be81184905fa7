"""What a laptop or a hook needs of reviews: which paths a rule means, and the digests of what is in a folder."""

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from trackbed.formats.tree import decode_listing, show
from trackbed.sources.capture import capture
from trackbed.wire.reviews import ProtectionView


def matches(rule: ProtectionView, kind: str, subject: str) -> bool:
    """Whether a rule holds for a thing. `*` of a path crosses folders; a folder's name stands for all below it."""
    if rule.kind != kind:
        return False
    folder = rule.pattern.rstrip("/") + "/"
    return fnmatchcase(subject, rule.pattern) or (kind == "path" and subject.startswith(folder))


def working_files(folder: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
    """Yield path and digest of the wanted files of a working folder, as a run would find them."""
    for entry in decode_listing(capture(folder).listing):
        if entry.kind == "f" and wanted(show(entry.path)):
            yield show(entry.path), entry.digest
