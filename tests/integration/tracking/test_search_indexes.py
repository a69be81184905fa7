"""Lists of runs are answered from indexes that hold all they need, in databases of before as well."""

from itertools import product

from sqlalchemy import text
from tracking_bed import Bed, Rank

from trackbed.domain.scope import SYSTEM
from trackbed.tracking import runs, search

NAMES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'index'",
    "postgresql": "SELECT indexname AS name FROM pg_indexes",
}


def names(bed: Bed) -> set[str]:
    return {row.name for row in bed.db.read(lambda tx: tx.rows(text(NAMES[tx.connection.dialect.name])))}


def test_a_database_of_before_gets_the_indexes(bed: Bed) -> None:
    whole = names(bed)
    for statement in ("DROP INDEX metric_by_key", "CREATE INDEX metric_by_value ON metric (key, last)"):
        bed.db.write(lambda tx, statement=statement: tx.execute(text(statement)), actor=SYSTEM.actor)
    assert "metric_by_value" in names(bed)
    bed.db.prepare()
    assert names(bed) == whole


ORDERS = ("created", "metrics.loss", "min(metrics.loss)", "params.lr", "name", "duration")
FILTERS = ("", "metrics.loss < 5", "params.lr > 0.2 or not metrics.loss >= 0")


def test_pages_together_are_the_list(bed: Bed) -> None:
    losses = {bed.run(name=f"run-{at % 4}", params={"lr": at / 10} if at % 3 else {}): at for at in range(9)}
    for run, at in losses.items():
        if at % 4:
            bed.send(run, Rank().points([("loss", 1, 1, float(at % 5)), ("loss", 2, 1, float(at))]))
            bed.send(run, Rank(rank=1).points([("loss", 9, 1, -7.0)]))
    for filter, order, descending in product(FILTERS, ORDERS, (True, False)):
        whole, _, total = page(bed, filter, order, descending=descending, limit=100)
        asked = (filter, order, descending)
        assert len(whole) == total, asked
        if filter == "metrics.loss < 5":
            assert sorted(losses[run] for run in whole) == [1, 2, 3], asked
        if order == "metrics.loss" and not filter:
            assert [losses[run] for run in whole[:6]] == sorted([1, 2, 3, 5, 6, 7], reverse=descending)
        pages: list[str] = []
        cursor = ""
        while cursor or not pages:
            some, cursor, counted = page(bed, filter, order, descending=descending, cursor=cursor, limit=2)
            pages += some
            assert counted == total, asked
            if not cursor:
                break
        assert pages == whole, asked


def page(
    bed: Bed, filter: str, order: str, *, descending: bool, limit: int, cursor: str = ""
) -> tuple[list[str], str, int]:
    where = [search.compile(filter)] if filter else []
    by = search.order(order)
    found, following, total = bed.db.read(
        lambda tx: runs.list_runs(tx, SYSTEM, where=where, order=by, descending=descending, cursor=cursor, limit=limit)
    )
    return [row.id for row in found], following, total
