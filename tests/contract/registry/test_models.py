"""Model versions and aliases on both databases."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from trackbed.access import tables
from trackbed.base.errors import BadInput, Conflict, Denied, NotFound
from trackbed.base.ids import Digest
from trackbed.db import Database
from trackbed.domain.scope import SYSTEM, Actor, ActorKind, Role, Scope
from trackbed.registry import service
from trackbed.testing.database import KINDS, new_database
from trackbed.wire.data import ModelVersionView, ModelView

ADA = Actor(ActorKind.PERSON, "per_a", "ada")
MAINTAINER = Scope(ADA, {"spc_1": Role.MAINTAINER})
MEMBER = Scope(ADA, {"spc_1": Role.MEMBER})
OTHER = Scope(ADA, {"spc_2": Role.MAINTAINER})


@pytest.fixture(params=KINDS)
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    database = new_database(request.param, tmp_path)
    for space_id, name in (("spc_1", "default"), ("spc_2", "vision")):
        values = {"id": space_id, "name": name, "created_us": 0}
        database.write(lambda tx, v=values: tx.execute(tables.space.insert().values(**v)) and None, actor=ADA)
    yield database
    database.close()


def digest(number: int) -> Digest:
    return Digest(f"b3:{number:064x}")


def register(
    db: Database, number: int, run: str = "run_1", name: str = "gpt", scope: Scope = MEMBER
) -> ModelVersionView:
    provenance = {"run_ref": "demo#1", "seed": 17, "metrics": {"loss": "NaN"}, "data": {"corpus": {"version": 3}}}
    return db.write(
        lambda tx: service.register(tx, scope, name, digest(number), size_bytes=5, run_id=run, provenance=provenance),
        actor=ADA,
    )


def move(db: Database, alias: str, number: int, expected: int | None, scope: Scope = MAINTAINER) -> ModelView:
    return db.write(lambda tx: service.set_alias(tx, scope, "gpt", alias, number, expected=expected), actor=ADA)


def test_a_version_keeps_where_it_came_from(db: Database):
    made = register(db, 1)
    assert (made.model, made.version, made.digest, made.size_bytes, made.space) == ("gpt", 1, digest(1), 5, "default")
    assert (made.run_id, made.run_ref, made.created_by) == ("run_1", "demo#1", "ada")
    assert made.provenance["data"] == {"corpus": {"version": 3}}
    assert db.read(lambda tx: service.resolve(tx, MEMBER, "gpt@1")) == made
    assert db.read(lambda tx: service.made_by(tx, MEMBER, "run_1")) == [made]


def test_the_same_tree_of_the_same_run_is_registered_once(db: Database):
    assert [register(db, 1).version, register(db, 2).version, register(db, 1).version] == [1, 2, 1]
    assert register(db, 1, "run_2").version == 3
    assert [row.kind for row in db.events(0)] == ["model.registered"] * 3


def test_an_alias_moves_only_from_where_it_was_seen(db: Database):
    register(db, 1)
    register(db, 2)
    assert move(db, "prod", 1, None).aliases == {"prod": 1}
    for stale in (None, 2):
        with pytest.raises(Conflict) as refused:
            move(db, "prod", 2, stale)
        assert refused.value.code == "model_alias_moved"
    shown = move(db, "prod", 2, 1)
    assert (shown.aliases, [one.aliases for one in shown.versions]) == ({"prod": 2}, [["prod"], []])
    assert [row.kind for row in db.events(0)].count("model.alias_moved") == 2


@pytest.mark.parametrize(
    ("ref", "version"),
    [("gpt", 2), ("gpt@latest", 2), ("gpt@1", 1), ("gpt@生产", 1), ("default/gpt@生产", 1), (f"gpt@{digest(1)}", 1)],
)
def test_a_reference_means_one_version(db: Database, ref: str, version: int):
    register(db, 1)
    register(db, 2)
    move(db, "生产", 1, None)
    assert db.read(lambda tx: service.resolve(tx, MEMBER, ref)).version == version


@pytest.mark.parametrize("ref", ["gpt@9", "gpt@nobody", "gtp", "gpt@b3:deadbeef", "vision/gpt"])
def test_a_reference_to_nothing_is_not_found(db: Database, ref: str):
    register(db, 1)
    with pytest.raises(NotFound):
        db.read(lambda tx: service.resolve(tx, MEMBER, ref))


@pytest.mark.parametrize("ref", ["", "a b@1", "gpt@", "gpt@0", "gpt@a b", "a/b/c"])
def test_what_is_no_reference_is_refused(db: Database, ref: str):
    with pytest.raises(BadInput):
        db.read(lambda tx: service.resolve(tx, MEMBER, ref))


@pytest.mark.parametrize("alias", ["latest", "3", "", "a b", "a/b", "b3:00000000"])
def test_an_alias_cannot_be_taken_for_something_else(db: Database, alias: str):
    register(db, 1)
    with pytest.raises(BadInput, match="cannot be an alias"):
        move(db, alias, 1, None)


def test_an_alias_points_to_a_version_that_is_there(db: Database):
    register(db, 1)
    for number in (0, 2):
        with pytest.raises(NotFound):
            move(db, "prod", number, None)


def test_members_register_and_only_maintainers_move_aliases(db: Database):
    register(db, 1)
    with pytest.raises(Denied):
        move(db, "prod", 1, None, MEMBER)
    with pytest.raises(NotFound):
        register(db, 2, scope=OTHER)
    assert register(db, 2, scope=SYSTEM).version == 2


def test_a_wall_hides_what_is_behind_it(db: Database):
    register(db, 1)
    assert db.read(lambda tx: service.list_models(tx, OTHER)) == []
    assert db.read(lambda tx: service.made_by(tx, OTHER, "run_1")) == []
    assert not db.read(lambda tx: service.is_named(tx, OTHER, digest(1)))
    with pytest.raises(NotFound):
        db.read(lambda tx: service.show(tx, OTHER, "gpt"))


def test_the_list_shows_each_model_with_its_newest(db: Database):
    register(db, 1)
    register(db, 2)
    register(db, 1, name="bert")
    move(db, "prod", 1, None)
    found = db.read(lambda tx: service.list_models(tx, MEMBER))
    assert [(one.name, one.latest, one.aliases, [v.version for v in one.versions]) for one in found] == [
        ("bert", 1, {}, [1]), ("gpt", 2, {"prod": 1}, [2]),
    ]  # fmt: skip


def test_of_sixteen_that_move_an_alias_at_once_one_wins_and_numbers_have_no_gap(db: Database):
    register(db, 0, "run_0")
    move(db, "prod", 1, None)
    made: list[int] = []
    won: list[int] = []

    def work(number: int) -> None:
        version = register(db, number, f"run_{number}").version
        made.append(version)
        try:
            move(db, "prod", version, 1)
        except Conflict:
            return
        won.append(version)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 17)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == list(range(2, 18))
    assert db.read(lambda tx: service.show(tx, MEMBER, "gpt")).aliases == {"prod": won[0]}
    assert len(won) == 1
