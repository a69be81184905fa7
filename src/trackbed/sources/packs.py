"""Packs: the packages of a lock, installed once, free of every absolute path, ready to be used read-only anywhere.

    lib/python3.11/site-packages/   packages, compiled (unchecked hashes: nothing in a pack ever changes)
    bin/                            console scripts; they start the `python` that lies beside them
    share/ …                        what wheels install besides
    trackbed-pack.json              `PackFacts`

A pack has no interpreter. `lay_out` makes one usable on a node: a folder of links, as a venv is.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from trackbed.base.errors import BadInput, NotFound
from trackbed.sources import uv
from trackbed.sources.environment import identity, packages_on
from trackbed.sources.locks import Lock, render
from trackbed.wire.runs import Package

FACTS = "trackbed-pack.json"
_OF_A_VENV = re.compile(r"(python[\d.]*|(de)?activate.*|pydoc\.bat)")
_SCRIPT_BYTES = 1 << 20
_PIECE = 1 << 20


class PackFacts(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a pack says of itself."""

    format: int = 1
    lock: str  # digest
    python: str  # "CPython 3.11.7" that it was built with
    platform: str
    packages: list[Package] = []
    notes: list[str] = []  # what the build warned of: yanked versions, missing dependencies


def build(
    lock: Lock, interpreter: Path, target: Path, *, log: Path, beat: Callable[[], None] | None = None
) -> PackFacts:
    """Install a lock for this machine into `target`, which is made, and return its facts; `log` tells all of it.

    Raises:
        BadInput: `environment_hash`, `environment_no_wheel`, `environment_not_relocatable`, `environment_platform`, …
        NotFound: `environment_package_missing`, `uv_missing`.
        Unavailable: `environment_index_away`.
    """
    python, platform = identity(interpreter)
    if platform not in lock.platforms:
        raise BadInput("environment_platform", platform=platform, platforms=", ".join(lock.platforms))
    pins = target.with_name(target.name + ".txt")
    pins.write_text(render(lock), encoding="utf-8")
    uv.run(("venv", "--relocatable", "--no-project", "--python", str(interpreter), str(target)), log=log, beat=beat)
    said, notes = _install(target, pins, log, beat)
    notes = [*(f"{package} was yanked: {why}" for package, why in uv.yanked(said)), *notes]
    packages = target / "lib" / f"python{lock.python}" / "site-packages"
    _strip(target)
    _refuse_absolute(target)
    _compile(interpreter, packages, log)
    facts = PackFacts(
        lock=lock.digest, python=python, platform=platform, packages=packages_on([str(packages)]), notes=notes
    )
    (target / FACTS).write_bytes(msgspec.json.format(msgspec.json.encode(facts)))
    return facts


def _install(
    target: Path, pins: Path, log: Path, beat: Callable[[], None] | None
) -> tuple[str, list[str]]:  # fmt: skip
    """Install what is pinned. A lock that lacks or contradicts a dependency (a live environment may) is installed as it is."""
    words = (
        "pip", "install", "--python", str(target / "bin" / "python"), "--require-hashes", "--no-build", "--link-mode", "copy",
        "-r", str(pins),
    )  # fmt: skip
    try:
        return uv.run(words, log=log, beat=beat), []
    except BadInput as fault:
        if fault.code not in ("environment_unsolvable", "environment_uv_refused"):
            raise
        note = str(fault.params.get("what", ""))
        return uv.run((*words, "--no-deps"), log=log, beat=beat), [f"dependencies do not fit: {note}"]


def facts_of(pack: Path) -> PackFacts:
    """Return what a pack says of itself.

    Raises:
        BadInput: `environment_no_pack`.
    """
    try:
        return msgspec.json.decode((pack / FACTS).read_bytes(), type=PackFacts)
    except (OSError, msgspec.MsgspecError) as fault:
        raise BadInput("environment_no_pack", what=str(fault)) from fault


def interpreter_for(minor: str) -> Path:
    """Return an interpreter of this minor version on this machine: that of this process first, then PATH.

    Raises:
        NotFound: `environment_interpreter`.
    """
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    if here == minor:
        base = Path(getattr(sys, "_base_executable", "") or sys.executable)
        return base if base.exists() else Path(sys.executable)
    found = shutil.which(f"python{minor}")
    if found is None:
        raise NotFound("environment_interpreter", python=minor, here=here)
    return Path(found).resolve()


def lay_out(pack: Path, target: Path, interpreter: Path) -> Path:
    """Make `target` an environment of links into a pack and return its `python`; what lies there already is kept."""
    minor = ".".join(facts_of(pack).python.split()[-1].split(".")[:2])
    bin_folder, packages = target / "bin", target / "lib" / f"python{minor}" / "site-packages"
    for folder in (bin_folder, packages.parent):
        folder.mkdir(parents=True, exist_ok=True)
    version = facts_of(pack).python.split()[-1]
    (target / "pyvenv.cfg").write_text(
        f"home = {interpreter.parent}\ninclude-system-site-packages = false\nversion = {version}\n", encoding="utf-8"
    )
    _link(packages, pack / "lib" / f"python{minor}" / "site-packages")
    _link(bin_folder / "python", interpreter)
    for name in ("python3", f"python{minor}"):
        _link(bin_folder / name, Path("python"))
    for script in _inside(pack / "bin"):
        place = bin_folder / script.name
        if _is_script(script):  # it looks for `python` beside its own file, so it must be a file of this folder
            place.unlink(missing_ok=True)
            shutil.copyfile(script, place)
            place.chmod(0o755)
        else:
            _link(place, script)
    for extra in _inside(pack):
        if extra.name not in ("bin", "lib", "lib64", FACTS):
            _link(target / extra.name, extra)
    return bin_folder / "python"


def _link(place: Path, to: Path) -> None:
    if place.is_symlink():
        place.unlink()
    place.symlink_to(to)


def _inside(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from sorted(folder.iterdir())


def _is_script(path: Path) -> bool:
    with path.open("rb") as file:
        return path.stat().st_size <= _SCRIPT_BYTES and file.read(2) == b"#!"


def _strip(target: Path) -> None:
    """Take away what belongs to the venv that it was built in."""
    for path in [*_inside(target / "bin")]:
        if _OF_A_VENV.fullmatch(path.name):
            path.unlink()
    for name in ("pyvenv.cfg", ".gitignore", ".lock", "CACHEDIR.TAG", "lib64"):
        (target / name).unlink(missing_ok=True)


def _refuse_absolute(target: Path) -> None:
    """Refuse a pack that names the folder it was built in, or links out of itself.

    Raises:
        BadInput: `environment_not_relocatable` with the file.
    """
    needle = os.fsencode(target)
    for folder, _, names in os.walk(target):
        for name in names:
            path = Path(folder) / name
            where = path.relative_to(target).as_posix()
            if path.is_symlink():
                if path.readlink().is_absolute():
                    raise BadInput("environment_not_relocatable", path=where, what=str(path.readlink()))
                continue
            if _holds(path, needle):
                raise BadInput("environment_not_relocatable", path=where, what=str(target))
            if path.suffix == ".pth":
                _refuse_path_file(path, where)


def _refuse_path_file(path: Path, where: str) -> None:
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("/"):
            raise BadInput("environment_not_relocatable", path=where, what=line[:200])


def _holds(path: Path, needle: bytes) -> bool:
    held = b""
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            if needle in held + piece:
                return True
            held = piece[-len(needle) :]
    return False


def _compile(interpreter: Path, packages: Path, log: Path) -> None:
    """Compile all that compiles: a read-only folder could not be compiled at the first import."""
    words = (
        "-m",
        "compileall",
        "-q",
        "--invalidation-mode",
        "unchecked-hash",
        "-s",
        str(packages),
        "-p",
        "/",
        str(packages),
    )
    with log.open("ab") as sink:
        subprocess.run(
            [str(interpreter), "-I", *words], stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, check=False
        )
