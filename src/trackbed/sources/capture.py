"""A working folder as a tree: what is on disk, byte for byte, without touching repository, index or status.

The list comes from git (tracked and untracked, not ignored), the bytes from the disk: filters, line-ending rules and staged
content cannot change what is captured. Empty folders come along. A repository inside is captured as files, without its
`.git`. Outside of git a folder is taken whole, but for `DEFAULT_IGNORES`. Several repositories make one tree, each in a
folder of its own. A file that is as it was at the last capture is not read again. Runs on a laptop; imports nothing of
the server.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from trackbed.base.errors import BadInput, Fault
from trackbed.base.ids import FileDigest
from trackbed.formats.tree import file_digest, join_lines, line_of, show, tree_digest
from trackbed.sources.folder import DEFAULT_IGNORES, MOST_NAMED, Seen, find, git_of, join, split
from trackbed.sources.git import Git, plain_remote
from trackbed.sources.known import Known
from trackbed.sources.secrets import secret_name, secrets_in
from trackbed.storage.files import hash_fd, open_source, read_all, unchanged
from trackbed.storage.scan import Found, Scan, entries_of, unfit
from trackbed.storage.store import TreeInfo
from trackbed.wire.runs import TreeFacts

__all__ = ["DEFAULT_IGNORES", "MAX_FILE_BYTES", "Capture", "Part", "capture", "capture_parts"]

MAX_FILE_BYTES = 10 * 1024 * 1024
MAX_PATCH_BYTES = 256 * 1024
MOST_COMMITS = 50  # unpushed ones that are named
_DIFF_PATHS = 500  # changed paths that are named to git one by one
_LFS = b"version https://git-lfs.github.com/spec/"
_LFS_BYTES = 1024  # a pointer is smaller


@dataclass(frozen=True)
class Part:
    """A folder that goes into the tree: under its own name, the one without a name at the top."""

    folder: Path
    name: str = ""
    include: tuple[str, ...] = ()  # ignored files, folders or patterns that come along


@dataclass(frozen=True)
class Capture:
    """A tree ready to be stored: its facts, its listing, and where the bytes of each file lie."""

    facts: TreeFacts
    scan: Scan

    @property
    def listing(self) -> bytes:
        return self.scan.listing

    @property
    def files(self) -> Mapping[FileDigest, Path]:
        return self.scan.files


class _Places(Mapping[FileDigest, Path]):
    """Where the bytes of each digest lie; made only when it is asked, for a capture of which nothing is sent."""

    def __init__(self, lines: list[tuple[bytes, bytes]]) -> None:
        self._lines = lines  # line of the listing, place
        self._made: dict[str, bytes] | None = None

    def _all(self) -> dict[str, bytes]:
        if self._made is None:
            self._made = {line[-32:].hex(): place for line, place in reversed(self._lines)}
        return self._made

    def __getitem__(self, digest: FileDigest) -> Path:
        return Path(os.fsdecode(self._all()[digest]))

    def __iter__(self) -> Iterator[FileDigest]:
        return (FileDigest(digest) for digest in self._all())

    def __len__(self) -> int:
        return len(self._all())


def capture(
    folder: Path, *, max_file_bytes: int = MAX_FILE_BYTES, allow: Iterable[str] = (), include: Iterable[str] = (),
    cache: Path | None = None,
) -> Capture:  # fmt: skip
    """Return what a job is to find in its working folder, with where it came from.

    `allow` names paths or patterns (`data/*.bin`) that pass the checks for secrets and size; `include` names ignored
    files that come along; `cache` is a folder that remembers what was read.

    Raises:
        BadInput: `sources_capture_refused` with a fault for every secret, big file, link outside and special file;
            `sources_folder_missing`, `sources_include_nothing`, `sources_git_missing`, `sources_git_refused`.
        Conflict: `storage_file_changed`: something writes to the folder.
    """
    return capture_parts(
        [Part(folder, include=tuple(include))], max_file_bytes=max_file_bytes, allow=allow, cache=cache
    )


def capture_parts(
    parts: Sequence[Part], *, max_file_bytes: int = MAX_FILE_BYTES, allow: Iterable[str] = (), cache: Path | None = None
) -> Capture:
    """Return one tree of several folders, each pinned by its own commit and digest in `facts.repositories`.

    Raises:
        BadInput: as `capture`; `sources_part_taken`: two parts want the same place.
    """
    checks = _Checks(max_file_bytes, tuple(allow))
    taken = [_part(part, checks, cache) for part in parts]
    faults = [fault for one in taken for fault in one.faults]
    if faults:
        raise BadInput("sources_capture_refused", count=len(faults), faults=faults)
    for one in taken[1:]:
        _refuse_taken(one, taken)
    lines = sorted((row for one in taken for row in one.lines), key=lambda row: row[0])
    listing = join_lines([line for _, line, _ in lines])
    files = _Places([(line, place) for _, line, place in lines if line[:1] in b"fx"])
    sizes = (sum(one.files for one in taken), sum(one.size_bytes for one in taken))
    info = TreeInfo(tree_digest(listing), *sizes)
    facts = [one.facts for one in taken]
    whole = facts[0]
    if len(taken) > 1:
        whole = msgspec.structs.replace(
            facts[0], name="", repositories=facts, dirty=sum(one.dirty for one in facts),
            untracked=sum(one.untracked for one in facts), ignored=sum(one.ignored for one in facts),
        )  # fmt: skip
    whole = msgspec.structs.replace(whole, digest=info.digest, files=info.files, size_bytes=info.size_bytes)
    return Capture(whole, Scan(info, listing, files))


@dataclass
class _Taken:
    """One part, read."""

    part: Part
    facts: TreeFacts
    lines: list[tuple[bytes, bytes, bytes]] = field(
        default_factory=list[tuple[bytes, bytes, bytes]]
    )  # path, line, place
    faults: list[Fault] = field(default_factory=list[Fault])
    files: int = 0
    size_bytes: int = 0


def _part(part: Part, checks: "_Checks", cache: Path | None) -> _Taken:
    root = part.folder.absolute()
    if not root.is_dir():
        raise BadInput("sources_folder_missing", folder=str(part.folder))
    root = root.resolve()
    git = git_of(root)
    seen = find(root, git, part.include)
    taken = _Taken(part, TreeFacts(digest="", name=part.name))
    pointers = _read(seen, checks, Known(cache, root), taken)
    if taken.faults:
        return taken
    taken.facts = TreeFacts(
        digest=tree_digest(join_lines([line for _, line, _ in taken.lines])), name=part.name, files=taken.files,
        size_bytes=taken.size_bytes, dirty=seen.dirty, untracked=seen.untracked, ignored=seen.ignored,
        nested=sorted(seen.nested), ignored_paths=seen.ignored_paths[:MOST_NAMED], ignored_more=seen.ignored_more,
        missing_submodules=sorted(seen.missing_submodules), lfs_pointers=sorted(pointers),
    )  # fmt: skip
    if git is not None:
        _origin(git, taken.facts, seen)
    if part.name:
        above = os.fsencode(part.name)
        taken.lines = [(join(above, path), _moved(line, above), place) for path, line, place in taken.lines]
    return taken


def _moved(line: bytes, above: bytes) -> bytes:
    """The line of the same thing in a folder `above`: its path is longer, the rest stays."""
    length = int.from_bytes(line[1:5], "little") + len(above) + 1
    return line[:1] + length.to_bytes(4, "little") + above + b"/" + line[5:]


def _refuse_taken(one: _Taken, taken: list[_Taken]) -> None:
    place = os.fsencode(one.part.name)
    for other in taken:
        if other is one:
            continue
        if any(
            path == place or path.startswith(place + b"/") or place.startswith(path + b"/")
            for path, _, _ in other.lines
        ):
            raise BadInput("sources_part_taken", name=one.part.name, other=str(other.part.folder))


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


def _read(seen: Seen, checks: _Checks, known: Known, taken: _Taken) -> list[str]:
    """Read what is not known yet, once: digest and search for secrets. Every fault of the folder is told at once.

    Returns the pointers of Git LFS whose files were not fetched.
    """
    new: dict[bytes, Found] = {}
    lines = taken.lines
    for path, one in seen.found.items():
        line = known.line(one) if one.size <= checks.max_file_bytes else None
        if line is None:
            new[path] = one
        else:
            lines.append((path, line, one.place))
    taken.files = len(lines)
    taken.size_bytes = sum(seen.found[path].size for path, _, _ in lines)
    by_name = {path: fault for path, one in new.items() if (fault := checks.by_name(one))}
    by_name |= unfit(new.values())
    taken.faults += [by_name[path] for path in sorted(by_name)]
    pointers = _read_new([one for path, one in new.items() if path not in by_name], checks, known, taken)
    lines.sort()
    if not taken.faults:
        known.keep()
    return pointers


def _read_new(new: Iterable[Found], checks: _Checks, known: Known, taken: _Taken) -> list[str]:
    pointers: list[str] = []
    clean: list[Found] = []

    def read(one: Found) -> tuple[FileDigest, int]:
        fd = open_source(one.place)
        try:
            with unchanged(fd, one.place):
                if one.size > checks.max_file_bytes:  # let through by name
                    return hash_fd(fd)
                data = read_all(fd, one.size)
        finally:
            os.close(fd)
        if len(data) < _LFS_BYTES and data.startswith(_LFS):
            pointers.append(show(one.path))
        elif not checks.allowed(show(one.path)):
            clean.append(one)
        taken.faults.extend(checks.by_content(one.path, data))
        return file_digest(data), len(data)

    places = {one.path: one.place for one in new}
    try:
        entries = entries_of(new, read)
    except BadInput as fault:
        taken.faults += [Fault(fault.code, params=fault.params), *fault.faults]
        return []
    made = {entry.path: line_of(entry) for entry in entries}
    taken.lines += [(path, line, places[path]) for path, line in made.items()]
    taken.files += sum(entry.kind == "f" for entry in entries)
    taken.size_bytes += sum(entry.size for entry in entries)
    for one in clean if not taken.faults else ():
        known.remember(one, made[one.path])
    return pointers


# where it came from


def _origin(git: Git, facts: TreeFacts, seen: Seen) -> None:
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
    if facts.remote and facts.commit:
        _unpushed(git, facts)
    if seen.changed:
        facts.patch, facts.patch_cut_bytes = _patch(git, facts.commit, seen.changed)


def _unpushed(git: Git, facts: TreeFacts) -> None:
    """Name the commits that no remote has, as far as this clone knows. Their content is in the tree all the same."""
    ours = ("HEAD", "--not", "--remotes")
    facts.unpushed_count = int(git.run("rev-list", "--count", *ours, check=False) or 0)
    if facts.unpushed_count:
        named = git.run("log", f"-{MOST_COMMITS}", "--format=%h %s", *ours, check=False)
        facts.unpushed = named.decode("utf-8", "replace").splitlines()


def _patch(git: Git, commit: str, changed: list[bytes]) -> tuple[str, int]:
    """The text diff of the folder against its commit, new files included; how many bytes of it were left out."""
    few = changed if len(changed) <= _DIFF_PATHS else []
    with git.scratch() as env:
        new = git.run("ls-files", "-z", "--others", "--exclude-standard", "--full-name")
        env = {**env, "GIT_LITERAL_PATHSPECS": "1"}
        if (
            new
        ):  # named in the copy of the index, so that the diff looks at them; `add -N` would touch an object of theirs
            empty = git.run("hash-object", "/dev/null").rstrip(b"\n")
            named = b"".join(b"100644 %b\t%b\0" % (empty, path) for path in split(new) if not path.endswith(b"/"))
            git.run("update-index", "-z", "--replace", "--index-info", env=env, check=False, given=named)
        base = commit or git.run("hash-object", "-t", "tree", "/dev/null").decode().strip()
        out = _bounded(
            git.command(
                "diff", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-color", "--src-prefix=a/",
                "--dst-prefix=b/", "--ignore-submodules=all", "--relative", base, "--", *map(os.fsdecode, few or [b"."]),
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
