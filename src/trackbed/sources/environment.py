"""The environment of an interpreter, pinned: its version and every package by the digest of its list of files.

`current` of the design: good on this machine only, and checked again before a run uses it. Runs on a laptop.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec
from blake3 import blake3

from trackbed.base.errors import BadInput
from trackbed.sources.git import plain_remote
from trackbed.sources.installed import modified_on
from trackbed.sources.locks import parse
from trackbed.wire.runs import EnvironmentRecord, Package

# What another interpreter is asked. It has none of our packages, so it tells where to look and we read.
_ASK = """
import json, platform, site, sys, sysconfig
path = [part for part in sys.path if part]
if sys.prefix == sys.base_prefix and sys.flags.no_user_site and site.getusersitepackages() not in path:
    at = next((at for at, part in enumerate(path) if part.endswith(("site-packages", "dist-packages"))), len(path))
    path.insert(at, site.getusersitepackages())  # -I leaves it out, a plain start does not
print(json.dumps([platform.python_implementation(), platform.python_version(), sysconfig.get_platform(), path]))
"""
_HEAD_BYTES = 8192


def record_current(executable: str | Path | None = None) -> EnvironmentRecord:
    """Return the environment of this interpreter, or of another, as one that is started afresh sees it.

    PYTHONPATH and the folder of a script do not count: they are no installed packages.

    Raises:
        BadInput: `sources_interpreter_refused`.
    """
    return record_of(executable or sys.executable)


def record_of(executable: str | Path) -> EnvironmentRecord:
    """As `record_current`, of the interpreter named."""
    python, where, path = _asked(executable)
    record = EnvironmentRecord(
        python=python,
        platform=where,
        executable=str(executable),
        packages=packages_on(path),
        modified=modified_on(path),
    )
    record.digest = digest_of(record)
    return record


def identity(executable: str | Path) -> tuple[str, str]:
    """Return what an interpreter is and what it runs on: `CPython 3.11.7`, `linux-x86_64`.

    Raises:
        BadInput: `sources_interpreter_refused`.
    """
    return _asked(executable)[:2]


def _asked(executable: str | Path) -> tuple[str, str, list[str]]:
    try:
        done = subprocess.run([str(executable), "-I", "-c", _ASK], capture_output=True, check=True, timeout=60)
        implementation, version, where, path = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as fault:
        said = getattr(fault, "stderr", None)
        reason = said.decode("utf-8", "replace").strip()[-500:] if said else str(fault)
        raise BadInput("sources_interpreter_refused", executable=str(executable), reason=reason) from fault
    return f"{implementation} {version}", where, path


def packages_on(path: Iterable[str]) -> list[Package]:
    """Return the packages of an import path, by name; of two with one name the first counts, as for import."""
    found: dict[str, Package] = {}
    for folder in dict.fromkeys(path):
        for package in _packages_of(folder):
            found.setdefault(package.name, package)
    return [found[name] for name in sorted(found)]


def digest_of(record: EnvironmentRecord) -> str:
    """Return `b3:` + BLAKE3 of the canonical JSON of everything but `digest` and `executable`; of a lock, its own.

    Canonical: keys sorted, no spaces, UTF-8; packages are [name, version, digest, source]; `modified` only where there is any.

    Raises:
        BadInput: `lock_wrong`.
    """
    if record.kind == "lock":
        return parse(record.lock).digest
    document: dict[str, object] = {
        "kind": record.kind, "python": record.python, "platform": record.platform,
        "packages": [[one.name, one.version, one.digest, one.source] for one in record.packages],
    }  # fmt: skip
    if record.modified:
        document["modified"] = record.modified
    if record.image:
        document["image"] = record.image
    return "b3:" + blake3(msgspec.json.encode(document, order="sorted")).hexdigest()


def differences(before: EnvironmentRecord, after: EnvironmentRecord) -> list[tuple[str, str, str]]:
    """Return (name, before, after) for all that is not equal; an empty text where a package is not there.

    A package of the same version with other files shows a piece of both digests. A lock and an installation are compared by
    versions: they hash different things.
    """
    alike = before.kind == after.kind
    found: list[tuple[str, str, str]] = []
    if not _same_python(before.python, after.python, exact=alike):
        found.append(("python", before.python, after.python))
    if not (before.platform == after.platform if alike else set(before.platform.split()) & set(after.platform.split())):
        found.append(("platform", before.platform, after.platform))
    old_packages = {one.name: one for one in before.packages}
    new_packages = {one.name: one for one in after.packages}
    for name in sorted(old_packages.keys() | new_packages.keys()):
        old, new = old_packages.get(name), new_packages.get(name)
        if old is None or new is None or old.version != new.version or (alike and old != new):
            exact = old is not None and new is not None and old.version == new.version
            found.append((name, _shown(old, exact=exact), _shown(new, exact=exact)))
    was, now = dict(map(_split, before.modified)), dict(map(_split, after.modified))
    found += [(name, was.get(name, ""), now.get(name, "")) for name in sorted(was.keys() | now.keys())
              if was.get(name) != now.get(name)]  # fmt: skip
    return found


def _same_python(before: str, after: str, *, exact: bool) -> bool:
    if exact:
        return before == after
    return before.split(".")[:2] == after.split(".")[:2]


def _split(modified: str) -> tuple[str, str]:
    """`numpy: numpy/core.py sha256=…` → the file, what it holds."""
    name, _, value = modified.rpartition(" ")
    return name, value


def _shown(package: Package | None, *, exact: bool) -> str:
    if package is None:
        return ""
    source = f" from {package.source}" if package.source else ""
    return package.version + (f" ({package.digest[:12] or 'no digest'}{source})" if exact else source)


def _packages_of(folder: str) -> Iterable[Package]:
    try:
        with os.scandir(folder) as scan:
            names = sorted(entry.path for entry in scan if entry.name.endswith((".dist-info", ".egg-info")))
    except OSError:
        return  # a zip, or nothing there
    for name in names:
        place = Path(name)
        head = (
            _read(place / "METADATA", _HEAD_BYTES)
            or _read(place / "PKG-INFO", _HEAD_BYTES)
            or _read(place, _HEAD_BYTES)
        )
        fields = _head(head)
        if fields.get("name") and fields.get("version"):
            yield Package(
                name=_normal(fields["name"]), version=fields["version"], digest=_digest(place, head), source=_source(place)
            )  # fmt: skip


def _head(metadata: bytes) -> dict[str, str]:
    """The first fields of an e-mail-like header, which name and version are by the standard."""
    fields: dict[str, str] = {}
    for line in metadata.decode("utf-8", "replace").splitlines():
        name, colon, value = line.partition(":")
        if not line.strip() or len(fields) > 20:
            break
        if colon and not line[0].isspace():
            fields.setdefault(name.lower(), value.strip())
    return fields


def _digest(place: Path, head: bytes) -> str:
    """BLAKE3 of the list of installed files; of the metadata where an installer kept no list."""
    data = _read(place / "RECORD") or _read(place / "installed-files.txt") or _read(place / "METADATA") or head
    return blake3(data).hexdigest()


def _source(place: Path) -> str:
    data = _read(place / "direct_url.json")
    if not data:
        return ""
    try:
        document = json.loads(data)
        url = plain_remote(str(document["url"]))
        if document.get("dir_info", {}).get("editable"):
            return f"editable {unquote(url) if urlsplit(url).scheme == 'file' else url}"
        commit = document.get("vcs_info", {}).get("commit_id", "")
        return f"{url}@{commit}" if commit else url
    except (ValueError, KeyError, AttributeError):
        return "unreadable direct_url.json"


def _normal(name: str) -> str:
    for mark in "_.":
        name = name.replace(mark, "-")
    while "--" in name:
        name = name.replace("--", "-")
    return name.lower()


def _read(path: Path, size: int = -1) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError:
        return b""
