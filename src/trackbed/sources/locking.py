"""Making a lock: of requirements, a project, uv's own lock, or what an interpreter has. Runs on a laptop, by `uv`."""

import platform
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from blake3 import blake3

from trackbed.base.errors import BadInput, Fault, NotFound
from trackbed.sources import uv
from trackbed.sources.environment import record_of
from trackbed.sources.locks import PLATFORMS, Lock, merge, parse, render
from trackbed.wire.runs import EnvironmentRecord, Package

CURRENT = "current"
# What uv calls them: any Linux with glibc 2.28 or newer.
_UV_PLATFORM = {"linux-x86_64": "x86_64-manylinux_2_28", "linux-aarch64": "aarch64-manylinux_2_28"}


def this_platform() -> str:
    """Return the platform of this machine, or that of most pools where this is no Linux."""
    here = sysconfig.get_platform()
    return here if here in PLATFORMS else PLATFORMS[0]


def this_python() -> str:
    return ".".join(platform.python_version_tuple()[:2])


def lock_of(
    source: str | Path, *, platforms: Sequence[str] = (), python: str = "", executable: str = sys.executable
) -> Lock:
    """Return the lock of a file, of a folder with `pyproject.toml`, or of `current`: the packages of `executable`.

    A file that is a lock already is only read; the others are solved for each platform with wheels alone.

    Raises:
        NotFound: `lock_source_missing`, `uv_missing`, `environment_package_missing`.
        BadInput: `lock_wrong`, `lock_platform`, and what `uv.refusal` knows.
        Unavailable: `environment_index_away`.
    """
    wanted, minor = tuple(platforms) or (this_platform(),), python or this_python()
    for one in wanted:
        if one not in PLATFORMS:
            raise BadInput("lock_platform", platform=one, known=", ".join(PLATFORMS))
    if source == CURRENT:
        return _lock_of_packages(executable, wanted, minor)
    path = Path(source)
    if path.is_dir():
        path /= "pyproject.toml"
    if not path.is_file():
        raise NotFound("lock_source_missing", path=str(path))
    if path.name == "uv.lock":
        return _of_uv_lock(path, wanted, minor)
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".lock" or "--hash=" in text:
        return parse(text, python=minor, platforms=wanted)
    return _solve(path, wanted, minor)


def record_of_lock(lock: Lock, platform: str = "") -> EnvironmentRecord:
    """Return the record of an environment that is made from a lock."""
    packages = [
        Package(
            name=one.name,
            version=one.version,
            digest=blake3(" ".join(one.hashes).encode()).hexdigest(),
            source=one.marker,
        )
        for one in lock.packages
    ]
    return EnvironmentRecord(
        digest=lock.digest, kind="lock", python=f"CPython {lock.python}", platform=platform or " ".join(lock.platforms),
        packages=packages, lock=render(lock),
    )  # fmt: skip


def _lock_of_packages(executable: str, platforms: tuple[str, ...], minor: str) -> Lock:
    found = record_of(executable)
    minor = ".".join(found.python.split()[-1].split(".")[:2]) or minor
    left_out = [one.name for one in found.packages if one.source.startswith("editable ")]
    pins = "".join(f"{one.name}=={one.version}\n" for one in found.packages if one.name not in left_out)
    with tempfile.TemporaryDirectory(prefix="trackbed-lock-") as folder:
        path = Path(folder) / "requirements.in"
        path.write_text(pins, encoding="utf-8")
        try:
            lock = _solve(path, platforms, minor, "--no-deps")  # what is installed may contradict itself
        except BadInput as fault:
            if fault.code != "lock_wrong":
                raise
            lock = _solve(path, platforms, minor)  # of plain folders of wheels uv tells hashes only when it solves
    notes = tuple(Fault("lock_editable_left_out", "", None, {"name": name}) for name in left_out)
    return replace(lock, notes=(*lock.notes, *notes))


def _of_uv_lock(path: Path, platforms: tuple[str, ...], minor: str) -> Lock:
    with tempfile.TemporaryDirectory(prefix="trackbed-lock-") as folder:
        out, log = Path(folder) / "out.txt", Path(folder) / "log"
        words = (
            "export",
            "--frozen",
            "--format",
            "requirements-txt",
            "--no-emit-project",
            "--no-header",
            "--no-annotate",
        )
        uv.run(
            (*words, "--no-dev", "--python", minor, "--no-python-downloads", "-o", str(out)), log=log, cwd=path.parent
        )
        return parse(out.read_text(encoding="utf-8"), python=minor, platforms=platforms)


def _solve(path: Path, platforms: tuple[str, ...], minor: str, *more: str) -> Lock:
    solved: dict[str, Lock] = {}
    with tempfile.TemporaryDirectory(prefix="trackbed-lock-") as folder:
        for one in platforms:
            out = Path(folder) / f"{one}.txt"
            said = uv.run(
                ("pip", "compile", str(path.absolute()), "--generate-hashes", "--only-binary", ":all:", "--no-header",
                 "--no-annotate", "--python-platform", _UV_PLATFORM[one], "--python-version", minor,
                 "--no-python-downloads", "-o", str(out), *more),
                log=Path(folder) / "log", cwd=path.parent,
            )  # fmt: skip
            lock = parse(out.read_text(encoding="utf-8"), python=minor, platforms=(one,))
            notes = tuple(
                Fault("lock_yanked", "", None, {"package": name, "why": why}) for name, why in uv.yanked(said)
            )
            solved[one] = replace(lock, notes=(*lock.notes, *notes))
    return merge(solved, minor)
