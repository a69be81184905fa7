"""Filters find what a plain loop over the runs would find, on both databases."""

import math

import pytest
from tracking_bed import Bed, Rank

from trackbed.domain.scope import SYSTEM
from trackbed.formats import spool
from trackbed.tracking import runs, search


@pytest.fixture
def many(bed: Bed) -> tuple[Bed, dict[str, str]]:
    named: dict[str, str] = {}
    for name, lr, loss, tags in [
        ("one", 0.1, 3.0, '["a","b"]'), ("two", 0.01, 1.5, '["b"]'), ("three", 0.001, math.nan, '["x\\"a\\"","a,b"]'),
        ("four", 0.001, math.inf, "[]"),
    ]:  # fmt: skip
        run = bed.run(name=name, params={"lr": lr, "opt": "adamw", "损失": True}, tags=tags)
        rank = Rank()
        bed.send(run, rank.points([("loss", 1, 1, 5.0), ("loss", 2, 1, loss), ("eval/loss", 1, 1, -loss)]))
        bed.send(run, Rank(rank=1).points([("loss", 3, 1, -100.0)]))
        bed.send(run, rank.say(spool.SUMMARY, {"best": loss}))
        named[run] = name
    named[bed.run(name="empty", state="queued")] = "empty"
    return bed, named


def find(bed: Bed, named: dict[str, str], text: str, order: str = "name", *, descending: bool = False) -> list[str]:
    where = [search.compile(text)] if text else []
    by = search.order(order)
    rows, _, total = bed.db.read(
        lambda tx: runs.list_runs(tx, SYSTEM, where=where, order=by, descending=descending, limit=100)
    )
    assert total == len(rows)
    return [named[row.id] for row in rows]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("metrics.loss < 2", "two"),
        ("metrics.loss < 2 or metrics.loss = 3", "one two"),
        ("metrics.loss > 2", "four one"),
        ("metrics.loss = nan", "three"),
        ("metrics.loss != 3", "four three two"),
        ("metrics.loss = inf", "four"),
        ("not metrics.loss < 2", "empty four one three"),
        ("metrics.'eval/loss' < -2 and params.lr = 0.1", "one"),
        ("max(metrics.loss) = 5 and min(metrics.loss) < 2", "two"),
        ("params.lr = 0.001", "four three"),
        ("params.lr in (0.1, 0.01)", "one two"),
        ("params.opt = 'adamw' and name like '%O%'", "four one two"),
        ("params.opt like 'ADAM%'", "four one three two"),
        ("params.损失 = true", "four one three two"),
        ("params.nothing != 3", ""),
        ("tags has 'a'", "one"),
        ("tags has 'b'", "one two"),
        ("tags has 'a,b'", "three"),
        ("tags has 'x\"a\"'", "three"),
        ("tags has 'A'", ""),
        ("state = 'queued'", "empty"),
        ("state in ('queued', 'running') and not name = 'one'", "empty four three two"),
        ("project = 'demo' and ref has 'demo#'", "empty four one three two"),
        ("created > '1h ago'", "empty four one three two"),
        ("created < '2020-01-01'", ""),
        ("ended > '2020-01-01'", ""),
        ("outside = true", ""),
        ("duration > '1h'", ""),
        ("", "empty four one three two"),
    ],
)
def test_a_filter_finds(many: tuple[Bed, dict[str, str]], text: str, names: str) -> None:
    assert find(*many, text) == names.split()


def test_runs_are_ordered_by_metrics_and_params(many: tuple[Bed, dict[str, str]]) -> None:
    bed, named = many
    assert find(bed, named, "metrics.loss < 10", "metrics.loss") == ["two", "one"]
    assert find(bed, named, "", "metrics.loss", descending=True)[:3] == ["four", "one", "two"]
    assert find(bed, named, "", "params.lr")[-2:] != []
    assert find(bed, named, "params.lr > 0", "params.lr", descending=True)[0] == "one"
