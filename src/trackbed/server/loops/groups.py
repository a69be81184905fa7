"""groups: when the last run of a matrix or a pair has ended, its comparison is made and attached."""

from dataclasses import dataclass

from trackbed.db import ReadTx, Tx
from trackbed.domain.scope import Actor, ActorKind
from trackbed.server.app import App
from trackbed.server.flows import compare
from trackbed.tracking import compare_groups, runs

ACTOR = Actor(ActorKind.SYSTEM, "groups", "groups")
BACK_US = 7 * 24 * 3600 * 1_000_000  # how far a server that was away looks back
OVERLAP_US = 60_000_000  # a transaction may become visible a little after its time


@dataclass
class Groups:
    """Remembers up to when it has looked; what was made stands in the database."""

    looked_us: int | None = None

    def tick(self, app: App) -> None:
        now_us = app.clock.now_us()
        since_us = now_us - BACK_US if self.looked_us is None else self.looked_us - OVERLAP_US
        for tag, rows in app.db.read(lambda tx: _due(tx, since_us)):
            made = compare.with_files(app, app.db.read(lambda tx, rows=rows: compare.records_of(tx, rows)))

            def work(tx: Tx, tag: str = tag, rows: list[runs.RunRow] = rows, made: compare.Comparison = made) -> None:
                compare_groups.keep(tx, tag, rows, made)

            app.db.write(work, actor=ACTOR)
        self.looked_us = now_us


def _due(tx: ReadTx, since_us: int) -> list[tuple[str, list[runs.RunRow]]]:
    found: dict[tuple[str, str], list[runs.RunRow]] = {}
    for row in compare_groups.ended_since(tx, since_us):
        for tag in compare_groups.tags_of(row):
            if (row.project_id, tag) not in found:
                found[row.project_id, tag] = compare_groups.members(tx, row.project_id, tag)
    return [(tag, rows[: compare.MOST_RUNS]) for (_, tag), rows in found.items() if compare_groups.due(tx, tag, rows)]
