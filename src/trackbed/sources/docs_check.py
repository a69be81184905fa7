"""Running the marked commands of documents, each document in a copy of the folder of its own."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from trackbed.base.errors import BadInput, Fault
from trackbed.sources.docs import MARK, Command, commands, documents

_LEFT_OUT = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__", ".pytest_cache"})
_TAIL_BYTES = 4000


@dataclass(frozen=True)
class Ran:
    """What became of one block. `status` is the shell's; None: it did not end in its time."""

    document: str
    line: int
    status: int | None
    seconds: float
    said: str  # the end of its output

    @property
    def good(self) -> bool:
        return self.status == 0


def marked(folder: Path) -> dict[str, list[Command]]:
    """Return the marked blocks of every document below a folder.

    Raises:
        BadInput: `docs_wrong` with every wrong mark by document and line; `docs_folder`.
    """
    if not folder.is_dir():
        raise BadInput("docs_folder", folder=str(folder))
    found: dict[str, list[Command]] = {}
    faults: list[Fault] = []
    for path in documents(_files(folder)):
        text = (folder / path).read_text(encoding="utf-8", errors="replace")
        if MARK not in text:
            continue
        blocks, wrong = commands(text)
        faults += [one._replace(field=path) for one in wrong]
        if blocks:
            found[path] = blocks
    if faults:
        raise BadInput("docs_wrong", faults=faults, count=len(faults))
    return found


def check(folder: Path, *, on_begin: Callable[[str, Command], None] | None = None) -> Iterator[Ran]:
    """Run all blocks as a newcomer would: from the top of each document, stopping a document at its first failure.

    Each document starts in a fresh copy of the folder without its git folder and virtual environments.
    """
    for document, blocks in marked(folder).items():
        with tempfile.TemporaryDirectory(prefix="trackbed-docs-") as place:
            copy = Path(place) / folder.resolve().name
            shutil.copytree(folder, copy, symlinks=True, ignore=lambda _, names: _LEFT_OUT & set(names))
            for block in blocks:
                if on_begin is not None:
                    on_begin(document, block)
                ran = _run(document, block, copy)
                yield ran
                if not ran.good:
                    break


def _files(folder: Path) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - _LEFT_OUT)
        yield from ((Path(place) / name).relative_to(folder).as_posix() for name in names)


def _run(document: str, block: Command, folder: Path) -> Ran:
    begun_s = time.monotonic()
    with tempfile.TemporaryFile() as sink:
        try:
            done = subprocess.run(
                ["/bin/sh", "-e", "-c", block.text], cwd=folder, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink,
                timeout=block.timeout_s, check=False,
            )  # fmt: skip
            status: int | None = done.returncode
        except subprocess.TimeoutExpired:
            status = None
        size = sink.seek(0, 2)
        sink.seek(max(0, size - _TAIL_BYTES))
        said = sink.read().decode("utf-8", "replace")
    return Ran(document, block.line, status, time.monotonic() - begun_s, said)
