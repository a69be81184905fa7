"""code_diff: what differs between the trees of two runs, line by line, and who brought each line.

A line's author is the commit that `git blame` found on the laptop at submit; what was not committed is the submitter's. A
line that is older than the later run's own blame is looked for in the blame of runs in between.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import select

from trackbed.base.errors import BadInput, Conflict, NotFound
from trackbed.base.ids import Digest, FileDigest
from trackbed.db import ReadTx, scope_clause
from trackbed.domain.scope import Scope
from trackbed.formats.tree import Entry
from trackbed.server.app import App
from trackbed.sources.lines import changed_files, fill, lines_of
from trackbed.tracking import runs, runs_views
from trackbed.tracking.runs_tables import run
from trackbed.wire.code import CodeDiff, DiffLine
from trackbed.wire.runs import CommitFacts, TreeFacts

MOST_FILES = 200  # with lines in one answer; others are named
MOST_BETWEEN = 20  # runs whose blame is asked
_COMMITS = 5


@dataclass(frozen=True)
class _Side:
    row: runs.RunRow
    facts: TreeFacts
    between: tuple["_Side", ...] = ()  # of the later one: runs since the earlier, the newest first


def commits_before(tx: ReadTx, scope: Scope, space: str, project: str) -> list[str]:
    """Return commits of the newest runs of a project: what a new tree's lines are told apart from."""
    stmt = select(run.c.tree).where(run.c.space == space, run.c.project == project, run.c.tree != "")
    rows = tx.rows(stmt.where(scope_clause(run, scope)).order_by(run.c.created_us.desc()).limit(_COMMITS))
    found = [runs_views.tree_of(row) for row in rows]
    every = [one.commit for facts in found if facts for one in (facts.repositories or [facts]) if one.commit]
    return list(dict.fromkeys(every))


def line_diff(app: App, scope: Scope, before: str, after: str, *, path: str = "") -> CodeDiff:
    """Return what differs between the code of two runs; with `path`, of one file or folder. Blocks: reads the store.

    Raises:
        NotFound: a run is not known.
        Conflict: `run_without_tree`.
    """
    one, other = app.db.read(lambda tx: _sides(tx, scope, before, after))
    found = CodeDiff(
        before=runs.ref_of(one.row), after=runs.ref_of(other.row), digest_before=one.facts.digest,
        digest_after=other.facts.digest, same=one.facts.digest == other.facts.digest,
    )  # fmt: skip
    if found.same:
        return found
    old, new = _listing(app, one), _listing(app, other)
    authors = _Authors(app, other)
    shown = 0
    for file, was, now in changed_files(old, new):
        if path and file.path != path and not file.path.startswith(path.rstrip("/") + "/"):
            continue
        found.files.append(file)
        if shown >= MOST_FILES and file.change in ("added", "removed", "changed"):
            file.unshown = "later"
            continue
        fill(file, was, now, lambda entry: _bytes(app, entry))
        shown += 1
        if file.added:
            authors.name(file.path, file.lines)
        found.added += file.added
        found.removed += file.removed
    if path and not found.files and not any(entry.path == path.encode() for entry in (*old, *new)):
        raise NotFound("code_path_unknown", path=path, before=found.before, after=found.after)
    return found


def _sides(tx: ReadTx, scope: Scope, before: str, after: str) -> tuple[_Side, _Side]:
    if not before or not after:
        raise BadInput("code_diff_two_runs")
    one, other = _side(tx, runs.resolve(tx, scope, before)), _side(tx, runs.resolve(tx, scope, after))
    stmt = select(run).where(
        run.c.project_id == other.row.project_id, run.c.created_us > one.row.created_us,
        run.c.created_us < other.row.created_us, run.c.tree != "", scope_clause(run, scope),
    )  # fmt: skip
    rows = tx.rows(stmt.order_by(run.c.created_us.desc()).limit(MOST_BETWEEN))
    return one, _Side(other.row, other.facts, tuple(_side(tx, row) for row in rows))


def _side(tx: ReadTx, row: runs.RunRow) -> _Side:
    facts = runs_views.tree_of(row)
    if facts is None or not facts.digest:
        raise Conflict("run_without_tree", ref=runs.ref_of(row))
    return _Side(row, facts)


def _listing(app: App, side: _Side) -> list[Entry]:
    return app.store.read_listing(Digest(side.facts.digest))


def _bytes(app: App, entry: Entry) -> bytes:
    with app.store.open_range(FileDigest(entry.digest)) as reader:
        return reader.read()


class _Authors:
    """Names who brought the added lines of the later run."""

    def __init__(self, app: App, side: _Side) -> None:
        self._app, self._side = app, side
        self._listings: dict[str, dict[bytes, Entry]] = {}

    def name(self, path: str, lines: list[DiffLine]) -> None:
        found = blamed(self._side.facts, path)
        unknown = [line for line in lines if line.op == "+" and line.after not in found]
        for line in lines:
            if line.op == "+" and line.after in found:
                self._set(line, self._side, found[line.after])
        for other in self._side.between:
            if not unknown:
                return
            texts = self._texts(other, path)
            for line in unknown:
                if line.text in texts:
                    self._set(line, other, texts[line.text])
            unknown = [line for line in unknown if not line.author]

    def _set(self, line: DiffLine, side: _Side, commit: CommitFacts | None) -> None:
        if commit is None:
            line.author, line.run, line.time_us = side.row.owner, runs.ref_of(side.row), side.row.created_us
        else:
            line.author, line.commit, line.time_us = commit.author, commit.id, commit.time_us

    def _texts(self, side: _Side, path: str) -> dict[str, CommitFacts | None]:
        """The lines that a run in between brought to a file, by their text."""
        found = blamed(side.facts, path)
        if not found:
            return {}
        digest = side.facts.digest
        if digest not in self._listings:
            self._listings[digest] = {entry.path: entry for entry in _listing(self._app, side)}
        entry = self._listings[digest].get(path.encode())
        if entry is None or entry.kind != "f":
            return {}
        texts = lines_of(_bytes(self._app, entry))
        return {texts[at - 1]: commit for at, commit in found.items() if at <= len(texts) and texts[at - 1].strip()}


def blamed(facts: TreeFacts, path: str) -> dict[int, CommitFacts | None]:
    """Return line → commit of what was new in a file when its tree was captured; None: not committed."""
    return dict(_blamed(facts, path))


def _blamed(facts: TreeFacts, path: str) -> Iterator[tuple[int, CommitFacts | None]]:
    for one in facts.repositories or [facts]:
        inner = path.removeprefix(f"{one.name}/") if one.name and path.startswith(f"{one.name}/") else path
        if one.name and inner == path:
            continue
        for first, count, index in one.blame.get(inner, []):
            commit = one.commits[index] if 0 <= index < len(one.commits) else None
            yield from ((at, commit) for at in range(first, first + count))
        if inner in one.blame:
            return
