"""Work that is open and touches the same things: shown to both owners before either merges. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from trackbed.wire.conflicts import Conflict, OpenWork


@dataclass(frozen=True)
class Work:
    """A branch, or a review that waits. `touched`: subject → lines of the base; no lines: all of it, or not known."""

    view: OpenWork
    kind: str  # path | template | alias | quota
    base: str = ""
    touched: dict[str, list[tuple[int, int]]] = field(default_factory=dict[str, list[tuple[int, int]]])


def overlaps(works: Sequence[Work], *, owner: str = "") -> list[Conflict]:
    """Return what two pieces of work of different branches touch both; with `owner`, only where one of them is theirs.

    `lines` says that they change the same lines, or lines that touch, of the same base: a merge will stop there. Else they
    meet in the same file only.
    """
    found = [
        Conflict(kind=one.kind, subject=subject, works=[one.view, other.view], lines=lines)  # type: ignore[arg-type] - one of its words
        for one, other in combinations(works, 2)
        if one.kind == other.kind
        and one.view != other.view
        and (not owner or owner in (one.view.owner, other.view.owner))
        for subject, lines in _both(one, other)
    ]
    return sorted(found, key=lambda one: (not one.lines, one.subject))


def _both(one: Work, other: Work) -> Iterator[tuple[str, bool]]:
    if one.kind == "path" and (one.view.repository != other.view.repository or one.view.branch == other.view.branch):
        return
    for subject in sorted(one.touched.keys() & other.touched.keys()):
        mine, theirs = one.touched[subject], other.touched[subject]
        same = one.base == other.base and any(_meet(a, b) for a in mine for b in theirs)
        yield subject, same or not mine or not theirs


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Ranges of (first line, lines) that share a line or lie side by side. An insertion after line n is (n, 0)."""
    return one[0] <= other[0] + max(other[1], 1) and other[0] <= one[0] + max(one[1], 1)
