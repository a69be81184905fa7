"""What a branch changes: files and lines against the point where it left the main line. Asked of git on the laptop."""

import re
import subprocess
from pathlib import Path

from trackbed.sources.git import Git
from trackbed.wire.runs import TreeFacts

MOST_FILES = 2000
MOST_BYTES = 8 << 20  # of the diff that is looked at
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")
_MAIN = ("origin/HEAD", "origin/main", "origin/master", "main", "master")


def add_touched(folder: Path, facts: TreeFacts) -> None:
    """Fill `base` and `touched`: the lines of the base that this branch changes, by path. On the main line nothing is open."""
    if not facts.commit or not facts.branch or facts.branch in ("main", "master"):
        return
    git = Git(folder.resolve())
    found = (git.run("merge-base", one, "HEAD", check=False).decode().strip() for one in _MAIN)
    base = next((one for one in found if one), "")
    if not base:
        return
    facts.base = base
    with git.scratch() as env:
        out = subprocess.run(
            git.command(
                "diff", "-U0", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-color", "--src-prefix=a/",
                "--dst-prefix=b/", "--ignore-submodules=all", "--relative", base, "--", ".",
            ),
            env=git.env(env), capture_output=True, check=False,
        ).stdout  # fmt: skip
    facts.touched = touched_of(out[:MOST_BYTES])


def touched_of(diff: bytes) -> dict[str, list[tuple[int, int]]]:
    """Read a diff without context: path → (first line, lines) of the old side; no lines for a new or binary file."""
    found: dict[str, list[tuple[int, int]]] = {}
    path, old, left = "", "", 0
    for line in diff.split(b"\n"):
        if left and line[:1] in (b"-", b"+"):
            left -= 1
        elif line.startswith(b"diff --git "):
            path = ""
        elif line.startswith((b"--- ", b"+++ ")):
            name = line[4:].split(b"\t")[0].strip(b'"').decode("utf-8", "backslashreplace")
            if line.startswith(b"--- "):
                old = name.removeprefix("a/")
            else:
                path = old if name == "/dev/null" else name.removeprefix("b/")
                if len(found) < MOST_FILES:
                    found.setdefault(path, [])
        elif path in found and (hunk := _HUNK.match(line)):
            count = int(hunk[2]) if hunk[2] is not None else 1
            added = int(line.split(b"+")[1].split(b" ")[0].partition(b",")[2] or 1)
            left = count + added
            found[path].append((int(hunk[1]), count))
    return found
