"""Dataset versions on both databases: gap-free, immutable, resolved by name."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from trackbed.access import tables
from trackbed.base.errors import BadInput, Denied, NotFound
from trackbed.base.ids import Digest
from trackbed.datasets import service
from trackbed.db import Database
from trackbed.domain.scope import Actor, ActorKind, Role, Scope
from trackbed.testing.database import KINDS, new_database
from trackbed.wire.data import DatasetVersionView

ADA = Actor(ActorKind.PERSON, "per_a", "ada")
MEMBER = Scope(ADA, {"spc_1": Role.MEMBER})
VIEWER = Scope(ADA, {"spc_1": Role.VIEWER})
OTHER = Scope(ADA, {"spc_2": Role.MEMBER})
BOTH = Scope(ADA, {"spc_1": Role.MEMBER, "spc_2": Role.VIEWER})


@pytest.fixture(params=KINDS)
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    database = new_database(request.param, tmp_path)
    for space_id, name in (("spc_1", "default"), ("spc_2", "语音")):
        values = {"id": space_id, "name": name, "created_us": 0}
        database.write(lambda tx, v=values: tx.execute(tables.space.insert().values(**v)) and None, actor=ADA)
    yield database
    database.close()


def digest(number: int) -> Digest:
    return Digest(f"b3:{number:064x}")


def commit(
    db: Database, name: str, number: int, scope: Scope = MEMBER, space: str = "default", kind: str = "folder"
) -> DatasetVersionView:
    return db.write(
        lambda tx: service.commit(
            tx, scope, name, digest(number), space=space, kind=kind, files=2, size_bytes=10, message="why"
        ),
        actor=ADA,
    )


def test_versions_are_numbered_from_one_and_say_who_and_what(db: Database):
    first, second = commit(db, "corpus", 1), commit(db, "corpus", 2)
    assert (first.version, second.version) == (1, 2)
    assert (first.dataset, first.digest, first.space, first.created_by) == ("corpus", digest(1), "default", "ada")
    assert (first.files, first.size_bytes, first.message, first.unchanged) == (2, 10, "why", False)
    shown = db.read(lambda tx: service.show(tx, VIEWER, "corpus"))
    assert (shown.latest, [one.version for one in shown.versions]) == (2, [2, 1])


def test_an_unchanged_tree_is_the_version_there_is(db: Database):
    commit(db, "corpus", 1)
    again = commit(db, "corpus", 1)
    assert (again.version, again.unchanged) == (1, True)
    assert commit(db, "corpus", 1, kind="file").version == 2
    commit(db, "corpus", 2)
    assert commit(db, "corpus", 1).version == 4, "back to an older tree is a new version"


def test_each_new_version_is_an_event_and_an_unchanged_one_is_not(db: Database):
    commit(db, "corpus", 1)
    commit(db, "corpus", 1)
    assert [row.kind for row in db.events(0)] == ["dataset.committed"]


@pytest.mark.parametrize(
    ("ref", "version"),
    [
        ("corpus", 3),
        ("corpus@latest", 3),
        ("corpus@2", 2),
        ("default/corpus@1", 1),
        (f"corpus@{digest(1)}", 3),
        (f"corpus@b3:{2:064x}"[:75], 2),
    ],
)
def test_a_reference_means_one_version(db: Database, ref: str, version: int):
    for number in (1, 2, 1):
        commit(db, "corpus", number)
    assert db.read(lambda tx: service.resolve(tx, VIEWER, ref)).version == version


def test_a_name_without_a_space_is_looked_up_where_the_caller_stands(db: Database):
    commit(db, "corpus", 1)
    commit(db, "corpus", 7, OTHER, "语音")
    assert db.read(lambda tx: service.resolve(tx, BOTH, "corpus@1", "语音")).digest == digest(7)
    assert db.read(lambda tx: service.resolve(tx, BOTH, "语音/corpus@1")).digest == digest(7)
    assert db.read(lambda tx: service.resolve(tx, BOTH, "default/corpus@1", "语音")).digest == digest(1)


@pytest.mark.parametrize(
    ("ref", "code"),
    [("corpus@9", "dataset_version_unknown"), ("corpus@b3:deadbeef", "dataset_version_unknown"), ("corps", "dataset_unknown"),
     ("nowhere/corpus", "not_found"), ("corpus@newest", "dataset_ref_bad"), ("corpus@0", "dataset_ref_bad"), ("a b", "dataset_ref_bad"), ("", "dataset_ref_bad")],
)  # fmt: skip
def test_a_reference_to_nothing_says_what_there_is(db: Database, ref: str, code: str):
    commit(db, "corpus", 1)
    with pytest.raises((BadInput, NotFound)) as refused:
        db.read(lambda tx: service.resolve(tx, VIEWER, ref))
    assert refused.value.code == code
    if code in ("dataset_unknown", "dataset_version_unknown"):
        assert "corpus" in str(refused.value)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "a@1", "../x", "-a", "a" * 101, "a\n"])
def test_a_bad_name_is_refused(db: Database, name: str):
    with pytest.raises(BadInput, match="cannot be the name of a dataset"):
        commit(db, name, 1)


def test_names_in_any_script_are_kept_in_one_form(db: Database):
    commit(db, "语料-1.0", 1)
    commit(db, "cafe\u0301", 1)
    assert [one.name for one in db.read(lambda tx: service.list_datasets(tx, VIEWER))] == sorted(
        ["语料-1.0", "caf\u00e9"]
    )


def test_a_wall_hides_what_is_behind_it(db: Database):
    commit(db, "secret", 1)
    assert db.read(lambda tx: service.list_datasets(tx, OTHER)) == []
    assert not db.read(lambda tx: service.is_named(tx, OTHER, digest(1)))
    assert db.read(lambda tx: service.is_named(tx, VIEWER, digest(1)))
    for ref in ("secret", "default/secret@1"):
        with pytest.raises(NotFound) as refused:
            db.read(lambda tx, ref=ref: service.resolve(tx, OTHER, ref))
        assert refused.value.code == "not_found"
    with pytest.raises(NotFound):
        commit(db, "secret", 2, OTHER)
    with pytest.raises(Denied):
        commit(db, "secret", 2, VIEWER)


def test_sixteen_writers_at_once_leave_no_gap(db: Database):
    numbers: list[int] = []

    def work(writer: int) -> None:
        for turn in range(4):
            numbers.append(commit(db, "corpus", 100 * writer + turn).version)

    threads = [threading.Thread(target=work, args=(writer,)) for writer in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(1, 65))
    assert db.read(lambda tx: service.show(tx, VIEWER, "corpus")).latest == 64


def test_a_commit_that_fails_takes_no_number(db: Database):
    commit(db, "corpus", 1)

    def fail(tx: object) -> None:
        service.commit(tx, MEMBER, "corpus", digest(2))  # type: ignore[arg-type]
        raise BadInput("dataset_name_bad", name="x")

    with pytest.raises(BadInput):
        db.write(fail, actor=ADA)
    assert commit(db, "corpus", 3).version == 2
