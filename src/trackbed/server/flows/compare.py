"""compare: the records of runs, read and put beside each other; the table that is made when a group has ended."""

import asyncio
import dataclasses
from collections.abc import Sequence

from trackbed.base.errors import BadInput, TrackbedError
from trackbed.base.ids import Digest
from trackbed.db import ReadTx
from trackbed.domain.scope import Scope
from trackbed.formats.tree import Entry, show
from trackbed.server.app import App
from trackbed.tracking import compare as comparing
from trackbed.tracking import facts, runs, runs_attempts, runs_views
from trackbed.tracking.compare import MOST_RUNS, Record
from trackbed.tracking.compare_groups import summaries_of
from trackbed.wire.compare import ComparedRun, Comparison


async def compare(app: App, scope: Scope, refs: Sequence[str], keys: Sequence[str] = ()) -> Comparison:
    """Return what differs between runs and what came of them.

    Raises:
        BadInput: `compare_few`, `compare_many`.
        NotFound: `run_unknown`.
    """
    found = await app.db.aread(lambda tx: [runs.resolve(tx, scope, ref) for ref in refs])
    rows = list({row.id: row for row in found}.values())
    if len(rows) < 2:
        raise BadInput("compare_few", given=len(rows))
    if len(rows) > MOST_RUNS:
        raise BadInput("compare_many", given=len(rows), most=MOST_RUNS)
    records = await app.db.aread(lambda tx: records_of(tx, rows))
    return await asyncio.to_thread(with_files, app, records, keys)


def records_of(tx: ReadTx, rows: Sequence[runs.RunRow]) -> list[Record]:
    """Read what is compared of runs, all but the files of their trees."""
    spent = runs_attempts.spent(tx, [row.id for row in rows])
    return [
        Record(
            head=_head(row, spent.get(row.id, 0.0), tx.now_us), spec=runs.spec_of(row),
            params=facts.params_of(tx, row.id), tree=runs_views.tree_of(row),
            environment=runs_views.environment_of(row), metrics=summaries_of(tx, row.id),
            definitions=facts.definitions(tx, row.id),
        )
        for row in rows
    ]  # fmt: skip


def _head(row: runs.RunRow, spent: float, now_us: int) -> ComparedRun:
    lasted_us = (row.ended_us or now_us) - row.started_us if row.started_us else 0
    return ComparedRun(
        id=row.id, ref=runs.ref_of(row), name=row.name, state=row.state, owner=row.owner, seed=runs.spec_of(row).seed,
        created_us=row.created_us, seconds=lasted_us / 1e6, card_seconds=row.card_seconds + spent, cards=row.cards,
    )  # fmt: skip


def with_files(app: App, records: Sequence[Record], keys: Sequence[str] = ()) -> Comparison:
    """Compare, the files of the trees too where these differ; reads the store, so it belongs outside of transactions."""
    digests = {record.tree.digest for record in records if record.tree is not None and record.tree.digest}
    if len(digests) < 2:
        return comparing.compare(records, keys)
    listings: dict[str, dict[str, str] | None] = {digest: _listing(app, digest) for digest in digests}
    known: list[Record] = []
    for record in records:
        files = listings.get(record.tree.digest) if record.tree is not None else None
        known.append(dataclasses.replace(record, files=files))
    return comparing.compare(known, keys)


def _listing(app: App, digest: str) -> dict[str, str] | None:
    try:
        entries = app.store.read_listing(Digest(digest))
    except TrackbedError:  # collected, or damaged: the digests still tell that the trees differ
        return None
    return {show(entry.path): _content(entry) for entry in entries}


def _content(entry: Entry) -> str:
    if entry.kind == "l":
        return f"→ {show(entry.target)}"
    return entry.digest[:12] + (" x" if entry.executable else "") if entry.kind == "f" else "folder"
