"""The runs table on both databases: columns, groups with their spread, saved views behind walls."""

import math
import statistics

import pytest
from sqlalchemy import insert
from tracking_bed import Bed, Rank

from trackbed.access.tables import space
from trackbed.base.errors import BadInput, Conflict, Denied, NotFound
from trackbed.db import Tx
from trackbed.domain.scope import SYSTEM, Actor, ActorKind, Role, Scope
from trackbed.tracking import runs, runs_columns, runs_groups, saved_views, search
from trackbed.wire.table import GroupPage, SavedView, SavedViewRequest

ADA = Scope(Actor(ActorKind.PERSON, "per_1", "ada"), roles={"spc_1": Role.MEMBER})
BO = Scope(Actor(ActorKind.PERSON, "per_2", "bo"), roles={"spc_1": Role.MEMBER})
EVE = Scope(Actor(ActorKind.PERSON, "per_3", "eve"), roles={"spc_2": Role.MAINTAINER})


@pytest.fixture
def many(bed: Bed) -> Bed:
    for lr, seed, loss, tags in [
        (0.1, 0, 3.0, '["a","b"]'), (0.1, 1, 5.0, '["b"]'), (0.1, 2, 4.0, "[]"), (0.01, 0, 1e9, "[]"),
        (0.01, 1, 1e9 + 2, "[]"), (0.001, 0, math.nan, "[]"),
    ]:  # fmt: skip
        run = bed.run(params={"lr": lr, "seed": seed, "opt": "o'neil", "net": {"depth": 2}}, tags=tags)
        bed.send(run, Rank().points([("eval/loss", 1, 1, loss), ("steps", 1, 1, 1.0)]))
    bed.run(state="failed", project="other")
    return bed


def groups(bed: Bed, *by: str, **more: object) -> GroupPage:
    return bed.db.read(lambda tx: runs_groups.groups(tx, ADA, by=by, **more))  # type: ignore[arg-type]


def test_columns_are_those_that_runs_have_with_how_many(many: Bed) -> None:
    found = many.db.read(lambda tx: runs_columns.columns(tx, ADA))
    assert [(one.name, one.runs) for one in found.metrics] == [("eval/loss", 6), ("steps", 6)]
    assert [(one.name, one.runs) for one in found.params] == [("lr", 6), ("net", 6), ("opt", 6), ("seed", 6)]
    assert [(one.name, one.runs) for one in found.tags] == [("b", 2), ("a", 1)]
    assert (
        many.db.read(lambda tx: runs_columns.columns(tx, ADA, where=[search.compile("project = 'other'")])).metrics
        == []
    )
    narrowed = many.db.read(lambda tx: runs_columns.columns(tx, ADA, search="LOSS", limit=1))
    assert [one.name for one in narrowed.metrics] == ["eval/loss"]
    assert many.db.read(lambda tx: runs_columns.columns(tx, ADA, limit=1)).total == {
        "metrics": 2,
        "params": 4,
        "tags": 2,
    }
    assert many.db.read(lambda tx: runs_columns.columns(tx, EVE)).metrics == []


def test_a_group_has_mean_and_spread_of_its_runs(many: Bed) -> None:
    page = groups(many, "params.lr", metrics=["metrics.'eval/loss'"])
    assert page.total == 4
    assert [group.values for group in page.groups] == [[0.1], [0.01], [None], [0.001]]
    first, second, none, nan = (group.metrics["metrics.'eval/loss'"] for group in page.groups)
    assert (first.count, first.mean, first.std, first.min, first.max) == (3, 4.0, 1.0, 3.0, 5.0)
    assert second.std == pytest.approx(statistics.stdev([1e9, 1e9 + 2]))  # no cancellation
    assert (none.count, nan.count) == (0, 0)


def test_the_filter_of_a_group_finds_its_runs(many: Bed) -> None:
    for by in (["params.lr"], ["params.opt", "state"], ["tags"], ["params.net"], ["params.lr", "params.seed"]):
        for group in groups(many, *by).groups:
            where = [search.compile(group.filter)]
            found = many.db.read(lambda tx, where=where: runs.list_runs(tx, ADA, where=where))[2]
            assert (by, group.filter, found) == (by, group.filter, group.runs)


def test_a_run_with_two_tags_stands_in_both_groups(many: Bed) -> None:
    assert [(group.values[0], group.runs) for group in groups(many, "tags").groups] == [(None, 5), ("b", 2), ("a", 1)]


def test_wrong_fields_of_groups_are_named(many: Bed) -> None:
    for by, code in [
        ([], "group_fields_count"),
        (["nothing"], "group_field_unknown"),
        (["metrics.x"], "group_field_unknown"),
    ]:
        with pytest.raises(BadInput) as caught:
            groups(many, *by)
        assert caught.value.code == code


def test_a_shared_view_is_seen_by_the_space_and_changed_by_its_owner(bed: Bed) -> None:
    def make(tx: Tx) -> None:
        tx.execute(insert(space).values(id="spc_1", name="default", created_us=1))

    bed.db.write(make, actor=SYSTEM.actor)

    def save(who: Scope, name: str, shared: bool = False) -> SavedView:
        request = SavedViewRequest(name=name, query="q=a", shared=shared)
        return bed.db.write(lambda tx: saved_views.save(tx, who, request), actor=who.actor)

    def names(who: Scope) -> list[str]:
        return [view.name for view in bed.db.read(lambda tx: saved_views.views(tx, who))]

    shared, _ = save(ADA, "team", shared=True), save(ADA, "own")
    assert (names(ADA), names(BO), names(EVE)) == (["own", "team"], ["team"], [])
    with pytest.raises(Conflict):
        save(ADA, "team")
    with pytest.raises(NotFound):
        save(EVE, "mine")
    change = SavedViewRequest(name="team", query="q=b", shared=True, expected=1)
    with pytest.raises(Denied):
        bed.db.write(lambda tx: saved_views.change(tx, BO, shared.id, change), actor=BO.actor)
    assert bed.db.write(lambda tx: saved_views.change(tx, ADA, shared.id, change), actor=ADA.actor).version == 2
    with pytest.raises(Conflict):
        bed.db.write(lambda tx: saved_views.change(tx, ADA, shared.id, change), actor=ADA.actor)
    with pytest.raises(BadInput) as caught:
        bed.db.write(
            lambda tx: saved_views.save(tx, ADA, SavedViewRequest(name=" ", query="x" * 9000, page="no")),
            actor=ADA.actor,
        )
    assert [fault.field for fault in caught.value.faults] == ["name", "query", "page"]
    bed.db.write(lambda tx: saved_views.remove(tx, ADA, shared.id), actor=ADA.actor)
    assert names(BO) == []
    kinds = [event.kind for event in bed.db.read(lambda tx: list(bed.db.events_in(tx, 0))) if event.kind[:4] == "view"]
    assert kinds == ["view.saved", "view.saved", "view.changed", "view.deleted"]
