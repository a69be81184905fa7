"""Git as a program, asked so that it leaves no trace: no lock, no hook, no filter, no pager, nothing of the caller's setting.

Nothing here writes below the user's repository: what needs an index gets a copy, what makes objects a scratch folder.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from trackbed.base.errors import BadInput

_QUIET = (
    "core.fsmonitor=false", "core.hooksPath=/dev/null", "core.untrackedCache=false", "core.splitIndex=false", "core.quotePath=false",
    "core.pager=cat", "diff.noprefix=false", "diff.mnemonicPrefix=false", "diff.submodule=short",
    "status.relativePaths=true", "status.submoduleSummary=false", "status.showStash=false", "color.ui=false", "gc.auto=0",
    "submodule.recurse=false", "core.protectNTFS=false", "core.protectHFS=false",
)  # fmt: skip


class Git:
    """One working folder, in a repository or not."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._filters: list[str] | None = None

    def run(self, *args: str, env: Mapping[str, str] | None = None, check: bool = True, given: bytes = b"") -> bytes:
        """Return what git printed; `given` is its standard input. Without `check` a refusal is an empty answer.

        Raises:
            BadInput: `sources_git_missing`, or `sources_git_refused` with git's own words.
        """
        done = subprocess.run(self.command(*args), env=self.env(env), input=given, capture_output=True, check=False)
        if check and done.returncode:
            reason = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit {done.returncode}"]
            raise BadInput("sources_git_refused", folder=str(self._folder), reason=" ".join(reason)[:1000])
        return done.stdout if not done.returncode else b""

    def command(self, *args: str) -> list[str]:
        if shutil.which("git") is None:
            raise BadInput("sources_git_missing", folder=str(self._folder))
        settings = [part for setting in (*_QUIET, *self._no_filters()) for part in ("-c", setting)]
        return ["git", "--no-optional-locks", "--no-pager", *settings, "-C", str(self._folder), *args]

    def env(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The caller's environment without anything that would point git elsewhere (as inside a hook)."""
        plain = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        fixed = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"}
        return {**plain, **fixed, **(more or {})}

    def _no_filters(self) -> list[str]:
        """Settings that switch every clean and smudge program off: they may be slow, and some write beside the objects."""
        if self._filters is None:
            self._filters = []
            names = self.run("config", "--name-only", "-z", "--get-regexp", r"^filter\.", check=False).split(b"\0")
            found = {os.fsdecode(name).rpartition(".")[0] for name in names if name}
            for name in sorted(found):
                if "=" not in name and "\n" not in name:
                    self._filters += [f"{name}.clean=", f"{name}.smudge=", f"{name}.process=", f"{name}.required=false"]
        return self._filters

    @contextmanager
    def scratch(self) -> Generator[dict[str, str]]:
        """Give an environment in which the index is a copy, and new objects go to a folder that is removed afterwards."""
        index = self._path("index")
        objects = self._path("objects")
        with tempfile.TemporaryDirectory(prefix="trackbed-git-") as name:
            env = {
                "GIT_INDEX_FILE": f"{name}/index",
                "GIT_OBJECT_DIRECTORY": f"{name}/objects",
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(str(objects)),
            }
            Path(name, "objects").mkdir()
            if index.exists():
                shutil.copy2(index, env["GIT_INDEX_FILE"])  # times too: they tell git which entries to look at again
            yield env

    def _path(self, name: str) -> Path:
        where = Path(os.fsdecode(self.run("rev-parse", "--git-path", name).rstrip(b"\n")))
        return (self._folder / where).absolute()


def _quoted(path: str) -> str:
    """A list of paths is separated by colons; one in quotes may have some."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


def inside_repository(folder: Path) -> bool:
    """Tell whether a folder belongs to a working tree, without starting git."""
    return any((above / ".git").exists() for above in (folder, *folder.parents))


def plain_remote(url: str) -> str:
    """Return a remote's address without what opens it: all of user and password for http, the password for others."""
    parts = urlsplit(url)
    if not parts.scheme or not parts.netloc:
        return url  # a path, or git@host:path
    user, at, host = parts.netloc.rpartition("@")
    name = user.partition(":")[0]
    keep = f"{name}@" if at and name and not parts.scheme.startswith("http") else ""
    return urlunsplit((parts.scheme, keep + host, parts.path, "", ""))
