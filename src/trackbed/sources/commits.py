"""What a commit of a repository holds, read from its objects: for a hook in a bare repository, where nothing is checked out."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from blake3 import blake3

from trackbed.base.errors import BadInput
from trackbed.formats.tree import show

_FILES = (b"100644", b"100755")


def files_of(commit: str, wanted: Callable[[str], bool], *, folder: Path | None = None) -> Iterator[tuple[str, str]]:
    """Yield path and BLAKE3 of the wanted files of a commit.

    The caller's GIT_* variables hold: a hook sees what is being pushed through them only.

    Raises:
        BadInput: `sources_git_refused`.
    """
    found: list[tuple[str, bytes]] = []
    for line in _git(folder, "ls-tree", "-r", "-z", "--full-tree", commit, "--").split(b"\0"):
        about, _, path = line.partition(b"\t")
        mode, _, blob = about.partition(b" blob ")
        if mode in _FILES and wanted(show(path)):
            found.append((show(path), blob))
    if not found:
        return
    answer = _git(folder, "cat-file", "--batch", given=b"".join(blob + b"\n" for _, blob in found))
    at = 0
    for path, _ in found:
        end = answer.index(b"\n", at)
        size = int(answer[at:end].rsplit(b" ", 1)[1])
        yield path, blake3(answer[end + 1 : end + 1 + size]).hexdigest()
        at = end + size + 2


def commit_of(revision: str, *, folder: Path | None = None) -> str:
    """Return the full name of a commit."""
    return _git(folder, "rev-parse", "--verify", "-q", f"{revision}^{{commit}}").decode().strip()


def write_out(commit: str, aside: Path, *, folder: Path | None = None) -> None:
    """Write the files of a commit to `aside/code`, through an index of its own: the repository is left as it is."""
    code = aside / "code"
    code.mkdir()
    where = _git(folder, "rev-parse", "--absolute-git-dir").decode().rstrip("\n")
    own = {"GIT_INDEX_FILE": str(aside / "index")}
    plain = ("-c", "core.hooksPath=/dev/null", "-c", "core.autocrlf=false", f"--git-dir={where}", f"--work-tree={code}")
    _git(None, *plain, "read-tree", commit, more=own)
    _git(code, *plain, "checkout-index", "--all", "--force", more=own)


def _git(folder: Path | None, *args: str, given: bytes = b"", more: dict[str, str] | None = None) -> bytes:
    where = ["-C", str(folder)] if folder else []
    done = subprocess.run(
        ["git", "--no-pager", *where, *args], input=given, capture_output=True, check=False,
        env={**os.environ, "LC_ALL": "C", "GIT_NO_LAZY_FETCH": "1", **(more or {})},
    )  # fmt: skip
    if done.returncode:
        reason = done.stderr.decode("utf-8", "replace").strip() or f"exit {done.returncode}"
        raise BadInput("sources_git_refused", folder=str(folder or Path.cwd()), reason=reason[:1000])
    return done.stdout
