"""Locks: every package of an environment with its version and hashes. Pure. The form on disk: `docs/formats/lock.md`.

The canonical text is a requirements file that pip and uv read too; its BLAKE3 is the digest of the environment.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from blake3 import blake3

from trackbed.base.errors import BadInput, Fault

PLATFORMS = ("linux-x86_64", "linux-aarch64")
_HEAD = re.compile(r"#\s*trackbed lock (\d+)\s*$")
_PYTHON = re.compile(r"#\s*python (\d+\.\d+)\s*$")
_FOR = re.compile(r"#\s*platforms ([\w\- ]+)$")
_MADE_WITH = re.compile(r"#.*(?:with Python |--python-version[ =])(\d+\.\d+)")
_PIN = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*==\s*(?P<version>[^\s;,*]+)\s*(?:;\s*(?P<marker>.+))?$"
)
_HASH = re.compile(r"--hash[= ](\S+)")
_SHA256 = re.compile(r"sha256:[0-9a-f]{64}")
_INDEX = (
    "--index-url",
    "-i",
    "--extra-index-url",
    "--find-links",
    "-f",
    "--no-index",
    "--trusted-host",
    "--index-strategy",
)
_HARMLESS = ("--only-binary", "--no-binary", "--prefer-binary", "--require-hashes")  # fmt: skip


@dataclass(frozen=True, order=True)
class Locked:
    """One package. `marker` says for which of the platforms; empty: for all."""

    name: str
    version: str
    marker: str = ""
    hashes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lock:
    """`python` is the minor version, `3.11`. `notes`: what was read over, as faults without weight; not part of the lock."""

    python: str
    platforms: tuple[str, ...]
    packages: tuple[Locked, ...] = ()
    notes: tuple[Fault, ...] = field(default=(), compare=False)

    @property
    def digest(self) -> str:
        return "b3:" + blake3(render(self).encode()).hexdigest()

    def names(self) -> set[str]:
        return {one.name for one in self.packages}


def render(lock: Lock) -> str:
    """Return the canonical text: packages by name, hashes sorted, one form for one lock."""
    lines = ["# trackbed lock 1", f"# python {lock.python}", f"# platforms {' '.join(sorted(lock.platforms))}"]
    for one in sorted(lock.packages):
        head = f"{one.name}=={one.version}" + (f" ; {one.marker}" if one.marker else "")
        lines.append(" \\\n    ".join([head, *(f"--hash={each}" for each in sorted(set(one.hashes)))]))
    return "\n".join(lines) + "\n"


def parse(text: str, *, python: str = "", platforms: Iterable[str] = ()) -> Lock:
    """Read a lock of ours, of pip-compile or of uv: every package pinned, every one with a sha256.

    `python` and `platforms` hold where the text does not say.

    Raises:
        BadInput: `lock_wrong` with every fault by line.
    """
    said, faults, notes, packages = _said(text), list[Fault](), list[Fault](), list[Locked]()
    for number, line in _logical(text):
        option = line.split("=", 1)[0].split(" ", 1)[0]
        if option in _INDEX:
            notes.append(Fault("lock_index_left_out", "", number, {"option": option}))
        elif option in _HARMLESS:
            continue
        elif line.startswith("-"):
            faults.append(Fault("lock_option", "", number, {"option": option}))
        else:
            packages += _package(line, number, faults)
    for name in sorted(_twice(packages)):
        faults.append(Fault("lock_twice", "", None, {"name": name}))
    minor, found = said.get("python") or python, tuple(said.get("platforms", "").split()) or tuple(platforms)
    faults += [Fault("lock_platform", "", None, {"platform": one, "known": ", ".join(PLATFORMS)})
               for one in found if one not in PLATFORMS]  # fmt: skip
    if not minor or not found:
        faults.append(Fault("lock_for_what"))
    if faults:
        raise BadInput("lock_wrong", faults=faults, count=len(faults))
    return Lock(minor, tuple(sorted(set(found))), tuple(sorted(packages)), tuple(notes))


def merge(per_platform: dict[str, Lock], python: str) -> Lock:
    """Return one lock of locks of single platforms: what differs gets a marker of the machine."""
    seen: dict[Locked, list[str]] = {}
    for platform, lock in per_platform.items():
        for one in lock.packages:
            seen.setdefault(one, []).append(platform)
    packages: list[Locked] = []
    for one, where in seen.items():
        if len(where) == len(per_platform):
            packages.append(one)
            continue
        machines = [f"platform_machine == '{platform.partition('-')[2]}'" for platform in sorted(where)]
        also = f"({one.marker}) and " if one.marker else ""
        marker = also + (machines[0] if len(machines) == 1 else f"({' or '.join(machines)})")
        packages.append(Locked(one.name, one.version, marker, one.hashes))
    notes = dict.fromkeys((note.code, note.text()) for lock in per_platform.values() for note in lock.notes)
    kept = {(note.code, note.text()): note for lock in per_platform.values() for note in lock.notes}
    return Lock(python, tuple(sorted(per_platform)), tuple(sorted(packages)), tuple(kept[key] for key in notes))


def normal(name: str) -> str:
    """`Foo_Bar.baz` → `foo-bar-baz`, as package indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _said(text: str) -> dict[str, str]:
    """What the comments at the head say. Of others' locks only the Python they were made with."""
    found: dict[str, str] = {}
    for line in text.splitlines()[:20]:
        if not line.startswith("#"):
            break
        for name, pattern in (("version", _HEAD), ("python", _PYTHON), ("platforms", _FOR), ("made", _MADE_WITH)):
            match = pattern.match(line)
            if match:
                found.setdefault(name, match[1])
    if found.get("version", "1") != "1":
        raise BadInput("lock_newer", version=found["version"])
    if "version" not in found:
        return {"python": found["made"]} if "made" in found else {}
    return found


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations, without comments; the number is that of the first."""
    held, first = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = re.sub(r"(^|\s)#.*$", "", raw).rstrip()
        first = first if held else number
        if line.endswith("\\"):
            held += line[:-1] + " "
            continue
        whole = (held + line).strip()
        held = ""
        if whole:
            yield first, whole
    if held.strip():
        yield first, held.strip()


def _package(line: str, number: int, faults: list[Fault]) -> Iterator[Locked]:
    head, hashes = line.partition(" --hash")[0].strip(), tuple(_HASH.findall(line))
    pin = _PIN.match(head)
    if pin is None:
        faults.append(Fault("lock_not_pinned", "", number, {"line": head[:120]}))
        return
    name = normal(pin["name"])
    good = tuple(sorted({one for one in hashes if _SHA256.fullmatch(one)}))
    if not good:
        faults.append(Fault("lock_no_hash", "", number, {"name": name, "version": pin["version"]}))
        return
    yield Locked(name, pin["version"], _marker(pin["marker"] or ""), good)


def _marker(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace('"', "'")).strip()


def _twice(packages: Iterable[Locked]) -> set[str]:
    """Names that stand there more than once for the same platforms."""
    seen: set[tuple[str, str]] = set()
    twice: set[str] = set()
    for one in packages:
        key = (one.name, one.marker)
        if key in seen:
            twice.add(one.name)
        seen.add(key)
    return twice
