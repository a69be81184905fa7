"""Whether installed files are still as their packages say: by the hashes in each RECORD.

A file that the kernel has not touched since the RECORD was written (its change time, which no program sets) is as installed
and not read. What is newer is hashed: a copied or hard-linked environment costs one reading, an edited file is found by name.
"""

import base64
import csv
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

_PIECE = 1 << 20
_OWN = (".pyc", "/RECORD", "/INSTALLER", "/REQUESTED", "/direct_url.json", "/uv_cache.json")  # written by installers


def modified_on(path: Iterable[str]) -> list[str]:
    """Return `package: file sha256=…` for each installed file of an import path that differs from its RECORD, sorted.

    A file that is gone ends with `gone`. Packages without a RECORD say nothing.
    """
    found: list[str] = []
    for folder in dict.fromkeys(path):
        try:
            with os.scandir(folder) as scan:
                infos = sorted(entry.path for entry in scan if entry.name.endswith(".dist-info"))
        except OSError:
            continue
        for info in infos:
            found += _modified(Path(folder), Path(info))
    return sorted(found)


def _modified(folder: Path, info: Path) -> Iterator[str]:
    record = info / "RECORD"
    try:
        written_ns = record.stat().st_ctime_ns
        rows = list(csv.reader(record.read_text(encoding="utf-8").splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error):
        return
    package = info.name.removesuffix(".dist-info").partition("-")[0].replace("_", "-").lower()
    for row in rows:
        if len(row) < 2 or not row[1].startswith("sha256=") or row[0].endswith(_OWN):
            continue
        said = _changed(folder, row[0], row[1].removeprefix("sha256="), written_ns)
        if said:
            yield f"{package}: {row[0]} {said}"


def _changed(folder: Path, name: str, expected: str, written_ns: int) -> str:
    path = os.path.join(folder, name)  # noqa: PTH118 - tens of thousands of files
    try:
        info = os.stat(path)  # noqa: PTH116
        if info.st_ctime_ns <= written_ns:
            return ""
        actual = _sha256(path)
    except FileNotFoundError:
        return "gone"
    except OSError:
        return "unreadable"
    told = base64.urlsafe_b64encode(actual).decode().rstrip("=")
    return "" if told == expected.rstrip("=") else f"sha256={actual.hex()[:16]}"


def _sha256(path: str) -> bytes:
    hasher = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            hasher.update(piece)
    return hasher.digest()
