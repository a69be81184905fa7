"""A working folder as a tree: what is on disk, byte for byte, without touching repository, index or status.

The list comes from git (tracked and untracked, not ignored), the bytes from the disk: filters, line-ending rules and staged
content cannot change what is captured. Empty folders come along. A repository inside is captured as files, without its
`.git`. Outside of git a folder is taken whole, but for `DEFAULT_IGNORES`. Runs on a laptop; imports nothing of the server.
"""

# ruff: noqa: PTH112, PTH114, PTH118, PTH121 - paths are bytes, as the file system gives them

import os
import re
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from trackbed.base.errors import BadInput, Fault
from trackbed.base.ids import FileDigest
from trackbed.formats.tree import Entry, encode_listing, file_digest, show
from trackbed.sources.git import Git, inside_repository, plain_remote
from trackbed.sources.secrets import secret_name, secrets_in
from trackbed.storage.files import hash_fd, open_source, read_all, unchanged
from trackbed.storage.scan import Found, Scan, entries_of, tree_info, unfit
from trackbed.wire.runs import TreeFacts

DEFAULT_IGNORES = frozenset({b".git", b".venv", b"__pycache__", b"node_modules"})
MAX_FILE_BYTES = 10 * 1024 * 1024
MAX_PATCH_BYTES = 256 * 1024
_COUNT_S = 1.0  # how long ignored files may be counted


@dataclass(frozen=True)
class Capture:
    """A tree ready to be stored: its facts, its listing, and where the bytes of each file lie."""

    facts: TreeFacts
    scan: Scan

    @property
    def listing(self) -> bytes:
        return self.scan.listing

    @property
    def files(self) -> dict[FileDigest, Path]:
        return self.scan.files


@dataclass
class _Seen:
    """What was found before anything is read. Paths are bytes, relative to the captured folder."""

    found: dict[bytes, Found] = field(default_factory=dict[bytes, Found])
    ignored: int = 0
    dirty: int = 0
    untracked: int = 0
    nested: list[str] = field(default_factory=list[str])


def capture(folder: Path, *, max_file_bytes: int = MAX_FILE_BYTES, allow: Iterable[str] = ()) -> Capture:
    """Return what a job is to find in its working folder, with where it came from.

    `allow` names paths or patterns (`data/*.bin`) that pass the checks for secrets and size.

    Raises:
        BadInput: `sources_capture_refused` with a fault for every secret, big file, link outside and special file;
            `sources_folder_missing`, `sources_git_missing`, `sources_git_refused`.
        Conflict: `storage_file_changed`: something writes to the folder.
    """
    root = folder.absolute()
    if not root.is_dir():
        raise BadInput("sources_folder_missing", folder=str(folder))
    root = root.resolve()
    seen = _Seen()
    git = _git_of(root)
    if git is None:
        _plain(root, b"", seen)
    else:
        _repository(root, b"", seen)
    scan = _read(seen, _Checks(max_file_bytes, tuple(allow)))
    facts = TreeFacts(
        digest=scan.info.digest, files=scan.info.files, size_bytes=scan.info.size_bytes,
        dirty=seen.dirty, untracked=seen.untracked, ignored=seen.ignored, nested=sorted(seen.nested),
    )  # fmt: skip
    if git is not None:
        _origin(git, facts)
    return Capture(facts, scan)


def _git_of(root: Path) -> Git | None:
    """None outside of a repository, and in a folder that the repository around it ignores."""
    if not inside_repository(root):
        return None
    git = Git(root)
    top = Path(os.fsdecode(git.run("rev-parse", "--show-toplevel").rstrip(b"\n")))
    if top != root and git.run("check-ignore", "--", str(root), check=False):
        return None
    return git


# what there is


def _repository(root: Path, prefix: bytes, seen: _Seen) -> None:
    """Find what git would add below a folder of a repository, and repositories inside it."""
    git = Git(root)
    tracked = _split(git.run("ls-files", "-z", "--cached"))
    others = _split(git.run("ls-files", "-z", "--others", "--exclude-standard"))
    ignored = {
        path.rstrip(b"/")
        for path in _split(git.run("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"))
    }
    skipped = _default_ignores(others)
    ignored |= skipped
    others = [path for path in others if not _below(path.rstrip(b"/"), skipped)]
    nested: set[bytes] = set()
    real: dict[bytes, bool] = {}
    for path in dict.fromkeys([*tracked, *others]):
        bare = path.rstrip(b"/")
        if not _is_real(root, bare.rpartition(b"/")[0], real):
            continue  # git sees a deleted file where a link took the place of its folder
        place = os.path.join(os.fsencode(root), bare)
        try:
            info = os.lstat(place)
        except (FileNotFoundError, NotADirectoryError):
            continue  # deleted in the working tree
        if stat.S_ISDIR(info.st_mode):
            if bare != path or os.path.lexists(place + b"/.git"):
                nested.add(bare)
            continue
        seen.found[_join(prefix, bare)] = Found(_join(prefix, bare), place, info.st_mode, info.st_size)
    _count(git, seen)
    _empty_folders(root, prefix, ignored | nested, seen)
    seen.ignored += sum(_files_below(root, path) for path in ignored)
    for path in sorted(nested):
        _nested(root / os.fsdecode(path), _join(prefix, path), seen)


def _nested(root: Path, prefix: bytes, seen: _Seen) -> None:
    git = Git(root)
    top = git.run("rev-parse", "--show-toplevel", check=False).rstrip(b"\n")
    if not top or not os.path.samefile(os.fsdecode(top), root):
        _plain(root, prefix, seen)  # a damaged or a bare one: its files are all there is
        return
    commit = git.run("rev-parse", "--verify", "-q", "HEAD", check=False).decode().strip()
    seen.nested.append(f"{show(prefix)}@{commit}" if commit else show(prefix))
    _repository(root, prefix, seen)


def _plain(root: Path, prefix: bytes, seen: _Seen) -> None:
    """Find everything below a folder that git does not know."""
    top = os.fsencode(root)
    todo = [b""]
    while todo:
        inside = todo.pop()
        entries = _list(os.path.join(top, inside))
        if not entries and (inside or prefix):
            path = _join(prefix, inside)
            seen.found[path] = Found(path, os.path.join(top, inside), stat.S_IFDIR, 0)
        for entry in entries:
            path = _join(inside, entry.name)
            if entry.name in DEFAULT_IGNORES:
                seen.ignored += _files_below(root, path) if entry.name != b".git" else 0
            elif entry.is_dir(follow_symlinks=False):
                todo.append(path)
            else:
                info = entry.stat(follow_symlinks=False)
                whole = _join(prefix, path)
                seen.found[whole] = Found(whole, entry.path, info.st_mode, info.st_size)


def _empty_folders(root: Path, prefix: bytes, skip: set[bytes], seen: _Seen) -> None:
    """Find folders with nothing in them; git does not list these, a program may need them."""
    top = os.fsencode(root)
    todo = [b""]
    while todo:
        inside = todo.pop()
        entries = _list(os.path.join(top, inside))
        if not entries and (inside or prefix):
            path = _join(prefix, inside)
            seen.found[path] = Found(path, os.path.join(top, inside), stat.S_IFDIR, 0)
        for entry in entries:
            path = _join(inside, entry.name)
            if entry.is_dir(follow_symlinks=False) and path not in skip and entry.name != b".git":
                todo.append(path)


def _default_ignores(untracked: list[bytes]) -> set[bytes]:
    """Untracked folders that nobody means to submit, where no rule of the repository says so."""
    found: set[bytes] = set()
    for path in untracked:
        parts = path.split(b"/")
        at = next((at for at, part in enumerate(parts[:-1]) if part in DEFAULT_IGNORES), None)
        if at is not None:
            found.add(b"/".join(parts[: at + 1]))
    return found


def _count(git: Git, seen: _Seen) -> None:
    """Count changed and untracked files, asked of a copy of the index."""
    with git.scratch() as env:
        out = git.run(
            "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=dirty",
            "--", ".", env=env,
        )  # fmt: skip
    lines = [line for line in _split(out) if not _below(line[3:], _default_ignores([line[3:]]))]
    seen.dirty += len(lines)
    seen.untracked += sum(line.startswith(b"??") for line in lines)


# reading, with its checks


@dataclass(frozen=True)
class _Checks:
    max_file_bytes: int
    allow: tuple[str, ...]

    def allowed(self, path: str) -> bool:
        return any(
            path == one.rstrip("/") or fnmatchcase(path, one) or path.startswith(f"{one.rstrip('/')}/")
            for one in self.allow
        )

    def by_name(self, one: Found) -> Fault | None:
        path = show(one.path)
        if not one.is_file or self.allowed(path):
            return None
        if pattern := secret_name(path):
            return Fault("sources_secret_name", params={"path": path, "pattern": pattern})
        if one.size > self.max_file_bytes:
            return Fault("sources_file_too_big", params={
                "path": path, "size_bytes": one.size, "limit_bytes": self.max_file_bytes})  # fmt: skip
        return None

    def by_content(self, path: bytes, data: bytes) -> list[Fault]:
        if self.allowed(show(path)):
            return []
        return [
            Fault("sources_secret_content", params={"path": show(path), "line": line, "what": what})
            for line, what in secrets_in(data)
        ]


def _read(seen: _Seen, checks: _Checks) -> Scan:
    """Read all files once: digest and search for secrets. Every fault of the folder is told at once."""
    by_name = {path: fault for path, one in seen.found.items() if (fault := checks.by_name(one))}
    by_name |= unfit(seen.found.values())
    faults = [by_name[path] for path in sorted(by_name)]
    files: dict[FileDigest, Path] = {}
    try:
        entries = _entries(seen.found.values(), by_name.keys(), checks, files, faults)
    except BadInput as fault:
        faults += [Fault(fault.code, params=fault.params), *fault.faults]
        entries = []
    if faults:
        raise BadInput("sources_capture_refused", count=len(faults), faults=faults)
    listing = encode_listing(entries)
    return Scan(tree_info(listing, entries), listing, files)


def _entries(
    found: Iterable[Found],
    refused: Iterable[bytes],
    checks: _Checks,
    files: dict[FileDigest, Path],
    faults: list[Fault],
) -> list[Entry]:
    skip = frozenset(refused)

    def read(one: Found) -> tuple[FileDigest, int]:
        fd = open_source(one.place)
        try:
            with unchanged(fd, one.place):
                if one.size <= checks.max_file_bytes:
                    data = read_all(fd, one.size)
                    digest, size = file_digest(data), len(data)
                    faults.extend(checks.by_content(one.path, data))
                else:  # let through by name
                    digest, size = hash_fd(fd)
        finally:
            os.close(fd)
        files.setdefault(digest, Path(os.fsdecode(one.place)))
        return digest, size

    return entries_of((one for one in found if one.path not in skip), read)


# where it came from


def _origin(git: Git, facts: TreeFacts) -> None:
    facts.commit = git.run("rev-parse", "--verify", "-q", "HEAD", check=False).decode().strip()
    facts.branch = git.run("symbolic-ref", "-q", "--short", "HEAD", check=False).decode("utf-8", "replace").strip()
    name = (
        git.run("config", f"branch.{facts.branch}.remote", check=False).decode("utf-8", "replace").strip()
        if facts.branch
        else ""
    )
    remotes = [name] if name else git.run("remote", check=False).decode("utf-8", "replace").split("\n")
    chosen = "origin" if "origin" in remotes else remotes[0]
    url = git.run("config", f"remote.{chosen}.url", check=False).decode("utf-8", "replace").strip() if chosen else ""
    facts.remote = plain_remote(url)
    facts.patch, facts.patch_cut_bytes = _patch(git, facts.commit)


def _patch(git: Git, commit: str) -> tuple[str, int]:
    """The text diff of the folder against its commit, new files included; how many bytes of it were left out."""
    with git.scratch() as env:
        new = git.run("ls-files", "-z", "--others", "--exclude-standard")
        paths = b"\0".join(path for path in _split(new) if not path.endswith(b"/"))
        if paths:
            args = ("--intent-to-add", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul")
            git.run("add", *args, env={**env, "GIT_LITERAL_PATHSPECS": "1"}, check=False, given=paths)
        base = commit or git.run("hash-object", "-t", "tree", "/dev/null").decode().strip()
        out = _bounded(
            git.command(
                "diff", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-color", "--src-prefix=a/",
                "--dst-prefix=b/", "--ignore-submodules=all", "--relative", base, "--", ".",
            ),
            git.env(env),
        )  # fmt: skip
    kept, size = out
    text = b"\n".join(_without_secrets(kept))
    return text.decode("utf-8", "replace"), size - len(kept)


def _bounded(command: list[str], env: dict[str, str]) -> tuple[bytes, int]:
    """Run a program; return the first whole lines of what it printed, at most MAX_PATCH_BYTES, and how much it was."""
    with tempfile.TemporaryFile() as out:
        subprocess.run(command, env=env, stdout=out, stderr=subprocess.DEVNULL, check=False)
        size = out.tell()
        out.seek(0)
        kept = out.read(MAX_PATCH_BYTES)
    if size > len(kept):
        kept = kept[: kept.rfind(b"\n") + 1]
    return kept, size


def _without_secrets(patch: bytes) -> list[bytes]:
    """A removed line may hold the secret that the file does not have any more."""
    lines = patch.split(b"\n")
    for number, kind in secrets_in(patch):
        lines[number - 1] = re.sub(
            rb"^([-+ ]?).*", rb"\1[left out: " + kind.encode() + b"]", lines[number - 1], flags=re.S
        )
    return lines


# paths


def _split(out: bytes) -> list[bytes]:
    return [part for part in out.split(b"\0") if part]


def _join(above: bytes, path: bytes) -> bytes:
    return b"/".join(part for part in (above, path) if part)


def _below(path: bytes, folders: set[bytes]) -> bool:
    parts = path.split(b"/")
    return any(b"/".join(parts[:at]) in folders for at in range(1, len(parts) + 1)) if folders else False


def _is_real(root: Path, folder: bytes, known: dict[bytes, bool]) -> bool:
    """Tell whether no part of a folder's path is a link."""
    if not folder:
        return True
    if folder not in known:
        above = folder.rpartition(b"/")[0]
        known[folder] = _is_real(root, above, known) and not os.path.islink(os.path.join(os.fsencode(root), folder))
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
