"""People, secrets, spaces and projects, on a real database with a clock that moves when told."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from trackbed import access
from trackbed.access import tables
from trackbed.access.rules import csrf_of, digest_of
from trackbed.base.errors import BadInput, Conflict, Denied, NotFound, TrackbedError, Unauthenticated
from trackbed.db import Database
from trackbed.domain.scope import SYSTEM, ActorKind, Permission, Role, Scope
from trackbed.testing.clock import FakeClock
from trackbed.testing.database import KINDS, new_database


class House:
    """An installation with its first admin, `root`."""

    def __init__(self, db: Database, clock: FakeClock) -> None:
        self.db, self.clock = db, clock
        admin = db.write(lambda tx: access.found(tx, admin="root"), actor=SYSTEM.actor)
        assert admin is not None
        self.admin_id = admin.id
        self.admin = self.scope(self.token(admin.id))

    def write(self, fn: Callable[[Any], Any], scope: Scope = SYSTEM) -> Any:
        return self.db.write(fn, actor=scope.actor)

    def token(self, person_id: str, **more: Any) -> str:
        return self.write(lambda tx: access.issue_token(tx, SYSTEM, person_id=person_id, **more)).secret

    def login(self, secret: str) -> access.Login:
        return self.db.read(lambda tx: access.authenticate(tx, secret))

    def scope(self, secret: str) -> Scope:
        return self.login(secret).scope

    def person(self, name: str, *, admin: bool = False) -> str:
        return self.write(lambda tx: access.create_person(tx, self.admin, name=name, admin=admin), self.admin).id

    def role(self, person: str, role: str, space: str = "default") -> None:
        self.write(lambda tx: access.set_role(tx, self.admin, space, person=person, role=role), self.admin)

    def space(self, name: str) -> str:
        return self.write(lambda tx: access.create_space(tx, self.admin, name=name, accepted=True), self.admin).id


@pytest.fixture(params=KINDS)
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    clock = FakeClock()
    db = new_database(request.param, tmp_path, clock=clock)
    yield House(db, clock)
    db.close()


def refused(work: Callable[[], object], error: type[TrackbedError], code: str) -> None:
    with pytest.raises(error) as caught:
        work()
    assert caught.value.code == code


def test_the_first_admin_is_made_once_with_the_default_space_and_project(house: House) -> None:
    assert house.write(lambda tx: access.found(tx, admin="other")) is None
    assert house.admin.admin
    assert [s.name for s in house.db.read(lambda tx: access.list_spaces(tx, house.admin))] == ["default"]
    assert [p.name for p in house.db.read(lambda tx: access.list_projects(tx, house.admin))] == ["demo"]


def test_a_secret_opens_what_its_person_may_and_is_not_kept(house: House) -> None:
    ada = house.person("ada")
    secret = house.token(ada)
    scope = house.scope(secret)
    assert (scope.actor.kind, scope.actor.id, scope.actor.name) == (ActorKind.PERSON, ada, "ada")
    assert list(scope.roles.values()) == [Role.MEMBER], "a new person is a member of the default space"
    rows = house.db.read(lambda tx: tx.rows(select(tables.token)))
    assert not [row for row in rows if secret in str(tuple(row))]
    assert digest_of(secret) in [row.digest for row in rows]


def test_a_revoked_expired_or_unknown_token_is_dead_and_nobody_learns_which(house: House) -> None:
    ada = house.person("ada")
    revoked, expiring = house.token(ada), house.token(ada, expires_s=60)
    house.write(lambda tx: access.revoke_token(tx, house.scope(revoked), house.login(revoked).token_id))
    refused(lambda: house.login(revoked), Unauthenticated, "token_dead")
    house.login(expiring)
    house.clock.advance(60)
    refused(lambda: house.login(expiring), Unauthenticated, "token_dead")
    refused(lambda: house.login("tbp_" + "0" * 40), Unauthenticated, "token_dead")
    refused(lambda: house.login(""), Unauthenticated, "token_dead")


def test_nobody_ends_or_makes_the_tokens_of_others(house: House) -> None:
    ada, bob = house.person("ada"), house.person("bob")
    a, b = house.token(ada), house.token(bob)
    mine = house.scope(a)
    refused(
        lambda: house.write(lambda tx: access.revoke_token(tx, mine, house.login(b).token_id)),
        NotFound,
        "token_unknown",
    )
    refused(lambda: house.write(lambda tx: access.issue_token(tx, mine, person_id=bob)), Denied, "role_too_low")
    assert {t.person for t in house.db.read(lambda tx: access.list_tokens(tx, mine))} == {"ada"}
    assert not [t for t in house.db.read(lambda tx: access.list_tokens(tx, mine)) if t.secret]
    house.write(lambda tx: access.revoke_token(tx, house.admin, house.login(b).token_id))
    refused(lambda: house.login(b), Unauthenticated, "token_dead")


def test_a_login_link_works_once_and_for_fifteen_minutes(house: House) -> None:
    code = house.write(lambda tx: access.issue_login_link(tx, SYSTEM, person_id=house.admin_id))
    session = house.write(lambda tx: access.redeem(tx, code)).secret
    assert house.login(session).kind == "session"
    refused(lambda: house.write(lambda tx: access.redeem(tx, code)), Unauthenticated, "login_code_dead")
    late = house.write(lambda tx: access.issue_login_link(tx, SYSTEM, person_id=house.admin_id))
    house.clock.advance(15 * 60)
    refused(lambda: house.write(lambda tx: access.redeem(tx, late)), Unauthenticated, "login_code_dead")


def test_a_token_opens_a_session_but_a_session_opens_no_other(house: House) -> None:
    token = house.token(house.admin_id)
    session = house.write(lambda tx: access.redeem(tx, token)).secret
    refused(lambda: house.write(lambda tx: access.redeem(tx, session)), Unauthenticated, "login_code_dead")
    house.clock.advance(31 * 86400)
    refused(lambda: house.login(session), Unauthenticated, "token_dead")


def test_the_csrf_token_belongs_to_its_session_and_does_not_tell_it() -> None:
    assert csrf_of("tbs_a") == csrf_of("tbs_a") != csrf_of("tbs_b")
    assert "tbs_a" not in csrf_of("tbs_a")


def test_an_attempts_token_names_its_run_and_space_and_is_replaced_by_the_next(house: House) -> None:
    first = house.write(lambda tx: access.issue_attempt_token(tx, "att_1", "run_1", "spc_1"))
    login = house.login(first)
    actor = login.scope.actor
    assert (login.kind, actor.kind, actor.id, actor.run_id, actor.space_id) == (
        "attempt", ActorKind.ATTEMPT, "att_1", "run_1", "spc_1",
    )  # fmt: skip
    assert login.scope.may(Permission.READ, "spc_1")
    assert not login.scope.may(Permission.READ, "spc_2")
    assert not login.scope.may(Permission.WRITE, "spc_1")
    second = house.write(lambda tx: access.issue_attempt_token(tx, "att_1", "run_1", "spc_1"))
    refused(lambda: house.login(first), Unauthenticated, "token_dead")
    house.login(second)
    house.write(lambda tx: access.revoke_attempt_token(tx, "att_1"))
    refused(lambda: house.login(second), Unauthenticated, "token_dead")


def test_when_a_token_was_used_is_noted_coarsely(house: House) -> None:
    secret = house.token(house.person("ada"))
    login = house.login(secret)
    assert login.stale
    house.write(lambda tx: access.touch(tx, login.token_id))
    assert not house.login(secret).stale
    house.clock.advance(601)
    assert house.login(secret).stale


def test_a_second_space_needs_a_word_about_the_one_trust_domain(house: House) -> None:
    def make(accepted: bool) -> Any:
        return house.write(lambda tx: access.create_space(tx, house.admin, name="vision", accepted=accepted))

    refused(lambda: make(False), Conflict, "one_trust_domain")
    assert make(True).name == "vision"
    refused(lambda: make(True), Conflict, "space_exists")


def test_a_wall_stands_between_spaces_and_does_not_tell_what_is_behind(house: House) -> None:
    ada = house.person("ada")
    house.space("vision")
    house.role("ada", "viewer")
    scope = house.scope(house.token(ada))

    def look(space: str, permission: Permission = Permission.READ) -> Any:
        return house.db.read(lambda tx: access.space_named(tx, scope, space, permission=permission))

    assert look("default").name == "default"
    refused(lambda: look("vision"), NotFound, "not_found")
    refused(lambda: look("nothing"), NotFound, "not_found")
    refused(lambda: look("default", Permission.WRITE), Denied, "role_too_low")
    assert list(house.db.read(lambda tx: access.space_names(tx, scope)).values()) == ["default"]
    house.role("ada", "maintainer", "vision")
    assert house.db.read(lambda tx: access.authenticate(tx, house.token(ada))).scope.may(
        Permission.MAINTAIN, house.db.read(lambda tx: access.space_named(tx, SYSTEM, "vision")).id
    )


def test_roles_are_given_by_maintainers_and_taken_away_by_an_empty_one(house: House) -> None:
    ada, bob = house.person("ada"), house.person("bob")
    member = house.scope(house.token(bob))
    refused(
        lambda: house.write(lambda tx: access.set_role(tx, member, "default", person="ada", role="viewer")),
        Denied, "role_too_low",
    )  # fmt: skip
    house.role("bob", "maintainer")
    maintainer = house.scope(house.token(bob))
    view = house.write(lambda tx: access.set_role(tx, maintainer, "default", person="ada", role="viewer"))
    assert view.members == {"ada": "viewer", "bob": "maintainer"}
    house.role("ada", "")
    assert house.scope(house.token(ada)).roles == {}
    refused(lambda: house.role("ada", "admin"), BadInput, "role_unknown")
    refused(lambda: house.role("eve", "viewer"), NotFound, "person_unknown")


def test_only_admins_add_people_and_names_are_one_word_of_any_script(house: House) -> None:
    ada = house.scope(house.token(house.person("ada")))
    refused(
        lambda: house.write(lambda tx: access.create_person(tx, ada, name="eve", admin=True)), Denied, "role_too_low"
    )
    refused(lambda: house.person("ada"), Conflict, "person_exists")
    for bad in ("", "a b", "a/b", "a#1", "a@b", ".a", "_", "a\n", "x" * 101):
        refused(lambda bad=bad: house.person(bad), BadInput, "access_name_bad")
    house.person("李雷")


def test_projects_are_made_on_first_use_by_those_who_may_write(house: House) -> None:
    house.person("ada")
    house.role("ada", "viewer")
    ada = house.scope(house.token(house.db.read(lambda tx: access.person_named(tx, "ada")).id))
    refused(lambda: house.write(lambda tx: access.ensure_project(tx, ada, "default", "new")), Denied, "role_too_low")
    made = house.write(lambda tx: access.ensure_project(tx, house.admin, "default", "new"))
    assert house.write(lambda tx: access.ensure_project(tx, house.admin, "default", "new")) == made
    assert house.db.read(lambda tx: access.find_project(tx, ada, "new")) == made
    refused(lambda: house.db.read(lambda tx: access.find_project(tx, ada, "none")), NotFound, "project_unknown")


def test_a_renamed_project_keeps_its_old_name_as_an_alias_and_its_numbers(house: House) -> None:
    project = house.write(lambda tx: access.ensure_project(tx, house.admin, "default", "old"))
    assert house.write(lambda tx: access.next_run_number(tx, project.id)) == 1
    house.write(lambda tx: access.rename_project(tx, house.admin, "old", to="new"))
    found = house.db.read(lambda tx: access.find_project(tx, house.admin, "old"))
    assert (found.id, found.name) == (project.id, "new")
    assert house.write(lambda tx: access.next_run_number(tx, found.id)) == 2
    assert house.write(lambda tx: access.ensure_project(tx, house.admin, "default", "old")).id == project.id
    refused(
        lambda: house.write(lambda tx: access.rename_project(tx, house.admin, "demo", to="old")),
        Conflict, "project_exists",
    )  # fmt: skip
    back = house.write(lambda tx: access.rename_project(tx, house.admin, "new", to="old"))
    assert back.name == "old"
    views = {p.name: p for p in house.db.read(lambda tx: access.list_projects(tx, house.admin))}
    assert views["old"].aliases == ["new"]
    assert views["old"].runs == 2


@pytest.mark.parametrize("kind", KINDS)
def test_run_numbers_are_gap_free_however_many_ask_and_fail(kind: str, tmp_path: Path) -> None:
    db = new_database(kind, tmp_path)
    db.write(lambda tx: access.found(tx, admin="root"), actor=SYSTEM.actor)
    project = db.read(lambda tx: access.find_project(tx, SYSTEM, "demo"))
    numbers: list[int] = []

    def take(index: int) -> None:
        def work(tx: Any) -> int:
            number = access.next_run_number(tx, project.id)
            if index % 3 == 0:
                raise ValueError
            return number

        try:
            numbers.append(db.write(work, actor=SYSTEM.actor))
        except ValueError:
            pass

    threads = [threading.Thread(target=take, args=(n,)) for n in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(numbers) == list(range(1, 21))
    db.close()


def test_every_change_of_access_is_in_the_journal_with_who_did_it(house: House) -> None:
    house.person("ada")
    house.role("ada", "viewer")
    events = {row.kind: row.actor_name for row in house.db.events(0)}
    assert events["person.created"] in ("root", "system")
    assert events["space.role"] == "root"
    assert "tbp_" not in str([tuple(row) for row in house.db.events(0)])
