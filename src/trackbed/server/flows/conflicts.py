"""conflicts: branches of runs and reviews that are open, and what two of them touch both."""

import msgspec
from sqlalchemy import select

from trackbed.db import ReadTx, scope_clause
from trackbed.domain.scope import Scope
from trackbed.sources import reviews
from trackbed.sources.conflicts import Work, overlaps
from trackbed.tracking import runs
from trackbed.tracking.runs_tables import run
from trackbed.wire.conflicts import Conflict, OpenWork
from trackbed.wire.runs import TreeFacts

OPEN_US = 30 * 86400 * 1_000_000  # a branch that nobody ran for so long is not shown
_MOST_RUNS = 2000


def open_conflicts(tx: ReadTx, scope: Scope, *, mine: bool = False) -> list[Conflict]:
    """Return what open branches and reviews touch both; `mine`: only where one of them is the asker's."""
    works = [*_branches(tx, scope), *_reviews(tx, scope)]
    return overlaps(works, owner=scope.actor.name if mine else "")


def _branches(tx: ReadTx, scope: Scope) -> list[Work]:
    """Each branch of each repository as its newest run found it."""
    stmt = select(run).where(
        run.c.created_us > tx.now_us - OPEN_US, run.c.tree.contains('"touched"'), scope_clause(run, scope)
    )
    found: dict[tuple[str, str, str], Work] = {}
    for row in tx.rows(stmt.order_by(run.c.created_us.desc()).limit(_MOST_RUNS)):
        tree = msgspec.json.decode(row.tree, type=TreeFacts)
        for one in tree.repositories or [tree]:
            repository = one.remote or f"{row.space}/{row.project}/{one.name}"
            key = (repository, one.branch, row.owner)
            if one.touched and key not in found:
                view = OpenWork(
                    owner=row.owner, branch=one.branch, repository=repository, run=runs.ref_of(row),
                    time_us=row.created_us,
                )  # fmt: skip
                found[key] = Work(view, "path", one.base, one.touched)
    return list(found.values())


def _reviews(tx: ReadTx, scope: Scope) -> list[Work]:
    works: list[Work] = []
    for one in reviews.list_reviews(tx, scope, state="open", limit=1000):
        view = OpenWork(
            owner=one.author, branch=one.branch, repository=one.remote or f"review:{one.space}", review=one.id,
            time_us=one.created_us,
        )  # fmt: skip
        for kind in sorted({item.kind for item in one.items} - {"path"}):
            works.append(Work(view, kind, "", {item.subject: [] for item in one.items if item.kind == kind}))
    return works
