"""Who brought the lines that are new since a run before: asked of git on the laptop, kept with the tree on the record."""

import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from trackbed.sources.folder import split
from trackbed.sources.git import Git
from trackbed.wire.runs import CommitFacts, TreeFacts

MOST_FILES = 100
MOST_BYTES = 1 << 20  # of a file
_PATIENCE_S = 10.0  # for all files together
_NOBODY = "0" * 40


def add_blame(folder: Path, facts: TreeFacts, commits_before: Iterable[str]) -> None:
    """Fill `blame` and `commits` with what came since the newest of these commits that this clone has.

    Lines that were not committed count as the submitter's. Without such a commit nothing is recorded.
    """
    if not facts.commit:
        return
    git = Git(folder.resolve())
    base = next((found for one in commits_before if (found := _base(git, one))), "")
    if not base:
        return
    known: dict[str, int] = {}
    until = time.monotonic() + _PATIENCE_S
    for path in _changed(git, base)[:MOST_FILES]:
        if time.monotonic() > until:
            return
        place = folder / path
        if place.is_symlink() or not place.is_file() or place.stat().st_size > MOST_BYTES:
            continue
        out = git.run("blame", "--incremental", "--no-textconv", f"^{base}", "--", path, check=False)
        segments = list(_segments(out, known, facts.commits))
        if segments:
            facts.blame[path] = sorted(segments)


def _base(git: Git, commit: str) -> str:
    if not commit or commit.strip("0123456789abcdef"):
        return ""
    return git.run("merge-base", commit, "HEAD", check=False).decode().strip()


def _changed(git: Git, base: str) -> list[str]:
    """Text paths that differ from a commit, changes of the working tree included; relative to the folder."""
    with git.scratch() as env:
        out = subprocess.run(
            git.command("diff", "--name-only", "-z", "--no-renames", "--relative", "--ignore-submodules=all", base, "--", "."),
            env=git.env(env), capture_output=True, check=False,
        ).stdout  # fmt: skip
    return [path.decode() for path in split(out) if _is_text(path)]


def _is_text(path: bytes) -> bool:
    try:
        path.decode()
    except UnicodeDecodeError:
        return False
    return True


def _segments(out: bytes, known: dict[str, int], commits: list[CommitFacts]) -> Iterator[tuple[int, int, int]]:
    """Read `git blame --incremental`: (first line, lines, index of the commit); what is older than the base is left out."""
    boundary: set[str] = set()
    commit, first, count = "", 0, 0
    about: dict[str, str] = {}
    for line in out.decode("utf-8", "replace").splitlines():
        name, _, value = line.partition(" ")
        if len(name) in (40, 64) and not name.strip("0123456789abcdef"):
            commit = name
            _, first, count = (int(part) for part in value.split()[:3])
            about = {}
        elif name == "boundary":
            boundary.add(commit)
        elif name == "filename":
            if commit not in boundary:
                yield first, count, _index(commit, about, known, commits)
        else:
            about[name] = value


def _index(commit: str, about: dict[str, str], known: dict[str, int], commits: list[CommitFacts]) -> int:
    if not commit.strip("0"):
        return -1
    if commit not in known:
        known[commit] = len(commits)
        commits.append(
            CommitFacts(
                id=commit, author=about.get("author", ""), time_us=int(about.get("author-time") or 0) * 1_000_000,
                subject=about.get("summary", "")[:200],
            )
        )  # fmt: skip
    return known[commit]
