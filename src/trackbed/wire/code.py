"""Code of runs, compared line by line."""

from typing import Literal

import msgspec


class DiffLine(msgspec.Struct, kw_only=True, omit_defaults=True, array_like=True):
    """One line of a diff. `op`: " " the same, "+" only after, "-" only before, "@" lines in between were left out."""

    op: Literal[" ", "+", "-", "@"]
    before: int = 0  # line numbers from 1; 0: not there
    after: int = 0
    text: str = ""
    commit: str = ""  # that brought an added line; empty: it was not committed, or it is not known
    author: str = ""
    time_us: int = 0
    run: str = ""  # whose submitter brought the line, where no commit did


class FileDiff(msgspec.Struct, kw_only=True, omit_defaults=True):
    path: str
    change: Literal["added", "removed", "changed", "mode", "moved"]
    path_before: str = ""  # of a moved one
    digest_before: str = ""
    digest_after: str = ""
    size_before: int = 0
    size_after: int = 0
    unshown: Literal["", "binary", "long", "later"] = ""  # why there are no lines; later: ask for this path alone
    added: int = 0
    removed: int = 0
    lines: list[DiffLine] = []


class CodeDiff(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What differs between the trees of two runs, and who brought each added line."""

    before: str  # refs
    after: str
    digest_before: str = ""
    digest_after: str = ""
    same: bool = False
    added: int = 0  # lines of what is shown
    removed: int = 0
    files: list[FileDiff] = []
