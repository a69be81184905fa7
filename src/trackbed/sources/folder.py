"""What there is in a working folder: the list from git, the state of each file from the disk. Nothing is read here.

One walk of git (`status`) tells tracked changes, untracked and ignored paths; one walk of ours tells states and empty
folders. A repository inside is found as files, without its `.git`; outside of git a folder is found whole, but for
`DEFAULT_IGNORES`.
"""

# ruff: noqa: PTH112, PTH114, PTH118, PTH121 - paths are bytes, as the file system gives them

import os
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from trackbed.base.errors import BadInput
from trackbed.formats.tree import show
from trackbed.sources.git import Git, inside_repository
from trackbed.storage.scan import Found

DEFAULT_IGNORES = frozenset({b".git", b".venv", b"__pycache__", b"node_modules"})
MOST_NAMED = 100  # ignored paths that are named one by one
_COUNT_S = 1.0  # how long ignored files may be counted
_Walk = dict[bytes, "os.DirEntry[bytes]"]


@dataclass
class Seen:
    """What was found. Paths are bytes, relative to the captured folder."""

    found: dict[bytes, Found] = field(default_factory=dict[bytes, Found])
    ignored: int = 0
    ignored_paths: list[str] = field(default_factory=list[str])
    dirty: int = 0
    untracked: int = 0
    nested: list[str] = field(default_factory=list[str])
    missing_submodules: list[str] = field(default_factory=list[str])
    changed: list[bytes] = field(default_factory=list[bytes])  # of the outermost repository, as git names them

    @property
    def ignored_more(self) -> int:
        """Ignored paths that are not named."""
        return max(0, len(self.ignored_paths) - MOST_NAMED)


def find(root: Path, git: Git | None, include: Iterable[str] = ()) -> Seen:
    """Return what a job would find; `include` names ignored files, folders or patterns that come along.

    Raises:
        BadInput: `sources_include_nothing`, naming the pattern; `storage_file_unreadable` for a folder.
    """
    seen = Seen()
    if git is None:
        _plain(root, b"", seen)
    else:
        _repository(root, b"", seen)
    for pattern in include:
        if not _include(root, pattern, seen):
            raise BadInput("sources_include_nothing", pattern=pattern, folder=str(root))
    return seen


def git_of(root: Path) -> Git | None:
    """None outside of a repository, and in a folder that the repository around it ignores."""
    if not inside_repository(root):
        return None
    git = Git(root)
    top = Path(os.fsdecode(git.run("rev-parse", "--show-toplevel").rstrip(b"\n")))
    if top != root and git.run("check-ignore", "--", str(root), check=False):
        return None
    return git


def split(out: bytes) -> list[bytes]:
    """The parts of an answer to `-z`."""
    return [part for part in out.split(b"\0") if part]


def join(above: bytes, path: bytes) -> bytes:
    return above + b"/" + path if above and path else above or path


def _repository(root: Path, prefix: bytes, seen: Seen) -> None:
    git = Git(root)
    inside = git.run("rev-parse", "--show-prefix").rstrip(b"\n")
    tracked = split(git.run("ls-files", "-z", "--cached"))
    changes, others, ignored = _status(git, inside)
    skipped = _default_ignores(others)
    ignored |= skipped
    others = [path for path in others if not _below(path.rstrip(b"/"), skipped)]
    top = os.fsencode(root)
    walk, empty = _walked(top, ignored)
    nested: set[bytes] = set()
    real: dict[bytes, bool] = {}
    for path in dict.fromkeys([*tracked, *others]):
        bare = path.rstrip(b"/")
        entry = walk.get(bare)
        if entry is not None:
            info = entry.stat(follow_symlinks=False)
        elif not _is_real(top, bare.rpartition(b"/")[0], real):
            continue  # git sees a deleted file where a link took the place of its folder
        else:
            try:
                info = os.lstat(os.path.join(top, bare))
            except (FileNotFoundError, NotADirectoryError):
                continue  # deleted in the working tree
        if stat.S_ISDIR(info.st_mode):
            if bare != path or os.path.lexists(os.path.join(top, bare, b".git")):
                nested.add(bare)
            elif bare in empty:
                seen.missing_submodules.append(show(join(prefix, bare)))
            continue
        whole = join(prefix, bare)
        seen.found[whole] = Found.of(whole, top + b"/" + bare, info)
    for path in empty:
        if (path or prefix) and not _below(path, nested):
            seen.found[join(prefix, path)] = Found(join(prefix, path), os.path.join(top, path), stat.S_IFDIR, 0)
    seen.dirty += len(changes) + len(others)
    seen.untracked += len(others)
    if not prefix:
        seen.changed = [*changes, *others]
    for path in sorted(ignored):
        seen.ignored += _files_below(root, path)
        seen.ignored_paths.append(show(join(prefix, path)) + ("/" if os.path.isdir(os.path.join(top, path)) else ""))
    for path in sorted(nested):
        _nested(root / os.fsdecode(path), join(prefix, path), seen)


def _status(git: Git, inside: bytes) -> tuple[list[bytes], list[bytes], set[bytes]]:
    """Changed, untracked and ignored paths, relative to the folder; asked of a copy of the index."""
    with git.scratch() as env:
        out = git.run(
            "status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignored=matching", "--no-renames",
            "--ignore-submodules=dirty", "--", ".", env=env,
        )  # fmt: skip
    changes: list[bytes] = []
    others: list[bytes] = []
    ignored: set[bytes] = set()
    for line in split(out):
        kind, path = line[:2], line[3:].removeprefix(inside)
        if kind == b"!!":
            ignored.add(path.rstrip(b"/"))
        else:
            (others if kind == b"??" else changes).append(path)
    return changes, others, ignored


def _walked(top: bytes, skip: set[bytes]) -> tuple[_Walk, set[bytes]]:
    """Everything below a folder but what is in `skip`, and its empty folders: git does not list these, a program may need
    them. Links are not followed."""
    walk: _Walk = {}
    empty: set[bytes] = set()
    todo = [b""]
    while todo:
        inside = todo.pop()
        before = inside + b"/" if inside else b""
        entries = _list(top + b"/" + inside if inside else top)
        if not entries:
            empty.add(inside)
        for entry in entries:
            path = before + entry.name
            if not entry.is_dir(follow_symlinks=False):
                walk[path] = entry
            elif entry.name != b".git" and path not in skip:
                todo.append(path)
    return walk, empty


def _nested(root: Path, prefix: bytes, seen: Seen) -> None:
    git = Git(root)
    top = git.run("rev-parse", "--show-toplevel", check=False).rstrip(b"\n")
    if not top or not os.path.samefile(os.fsdecode(top), root):
        _plain(root, prefix, seen)  # a damaged or a bare one: its files are all there is
        return
    commit = git.run("rev-parse", "--verify", "-q", "HEAD", check=False).decode().strip()
    seen.nested.append(f"{show(prefix)}@{commit}" if commit else show(prefix))
    _repository(root, prefix, seen)


def _plain(root: Path, prefix: bytes, seen: Seen) -> None:
    """Find everything below a folder that git does not know."""
    top = os.fsencode(root)
    todo = [b""]
    while todo:
        inside = todo.pop()
        entries = _list(os.path.join(top, inside))
        if not entries and (inside or prefix):
            path = join(prefix, inside)
            seen.found[path] = Found(path, os.path.join(top, inside), stat.S_IFDIR, 0)
        for entry in entries:
            path = join(inside, entry.name)
            if entry.name in DEFAULT_IGNORES:
                if entry.name != b".git":
                    seen.ignored += _files_below(root, path)
                    seen.ignored_paths.append(show(join(prefix, path)) + "/")
            elif entry.is_dir(follow_symlinks=False):
                todo.append(path)
            else:
                whole = join(prefix, path)
                seen.found[whole] = Found.of(whole, entry.path, entry.stat(follow_symlinks=False))


def _include(root: Path, pattern: str, seen: Seen) -> int:
    """Take what a pattern names into the tree; returns how many files it names."""
    top = os.fsencode(root)
    wanted = os.fsencode(pattern.strip("/"))
    within = not any(mark in pattern for mark in "*?[")
    place = os.path.join(top, wanted)
    walk = _walked(place, set())[0] if within and os.path.isdir(place) else None
    if walk is not None:
        named = [(join(wanted, path), entry.path) for path, entry in walk.items()]
    elif within:
        named = [(wanted, place)] if os.path.lexists(place) else []
    else:
        every, _ = _walked(top, set())
        named = [(path, entry.path) for path, entry in every.items() if fnmatchcase(show(path), pattern)]
    for path, place in named:
        if path not in seen.found:
            seen.found[path] = Found.of(path, place, os.lstat(place))
            seen.ignored = max(0, seen.ignored - 1)
    return len(named)


def _default_ignores(untracked: list[bytes]) -> set[bytes]:
    """Untracked folders that nobody means to submit, where no rule of the repository says so."""
    found: set[bytes] = set()
    for path in untracked:
        parts = path.split(b"/")
        at = next((at for at, part in enumerate(parts[:-1]) if part in DEFAULT_IGNORES), None)
        if at is not None:
            found.add(b"/".join(parts[: at + 1]))
    return found


def _below(path: bytes, folders: set[bytes]) -> bool:
    parts = path.split(b"/")
    return any(b"/".join(parts[:at]) in folders for at in range(1, len(parts) + 1)) if folders else False


def _is_real(top: bytes, folder: bytes, known: dict[bytes, bool]) -> bool:
    """Tell whether no part of a folder's path is a link."""
    if not folder:
        return True
    if folder not in known:
        above = folder.rpartition(b"/")[0]
        known[folder] = _is_real(top, above, known) and not os.path.islink(os.path.join(top, folder))
    return known[folder]


def _list(folder: bytes) -> list["os.DirEntry[bytes]"]:
    try:
        with os.scandir(folder) as scan:
            return list(scan)
    except OSError as fault:
        raise BadInput("storage_file_unreadable", path=show(folder), why=fault.strerror or str(fault)) from fault


def _files_below(root: Path, path: bytes) -> int:
    """Count the files of an ignored folder; one that takes longer than a second counts as one."""
    place = os.path.join(os.fsencode(root), path)
    if os.path.islink(place) or not os.path.isdir(place):
        return 1
    until = time.monotonic() + _COUNT_S
    count = 0
    for _, _, names in os.walk(place):
        count += len(names)
        if time.monotonic() > until:
            return 1
    return count
