"""Secrets: made, judged, taken back. What they open is said by the `Scope` that `authenticate` returns."""

from dataclasses import dataclass
from typing import Literal

from sqlalchemy import select, update

from trackbed.access import tables
from trackbed.access.people import require_admin
from trackbed.access.rules import LOGIN_LINK_S, SESSION_S, TOUCH_S, digest_of, is_expired
from trackbed.base.entropy import new_id, new_secret
from trackbed.base.errors import NotFound, Unauthenticated
from trackbed.db import ReadTx, Tx, upsert
from trackbed.domain.events import Event
from trackbed.domain.scope import Actor, ActorKind, Role, Scope
from trackbed.wire.access import TokenView


@dataclass(frozen=True)
class Login:
    """A judged secret. `stale`: its `last_used_us` should be moved by `touch`."""

    scope: Scope
    kind: Literal["person", "session", "attempt"]
    token_id: str
    stale: bool = False


def authenticate(tx: ReadTx, secret: str) -> Login:
    """Return who holds this secret and what they may touch.

    Raises:
        Unauthenticated: `token_dead`: unknown, expired, revoked, or of a disabled person; which of them is not told.
    """
    login = _attempt(tx, secret) if secret.startswith("tba_") else _person(tx, secret)
    if login is None:
        raise Unauthenticated("token_dead")
    return login


def _attempt(tx: ReadTx, secret: str) -> Login | None:
    table = tables.attempt_token
    row = tx.one(select(table).where(table.c.digest == digest_of(secret), table.c.revoked_us == 0))
    if row is None:
        return None
    actor = Actor(ActorKind.ATTEMPT, row.attempt_id, run_id=row.run_id, space_id=row.space_id)
    return Login(Scope(actor, {row.space_id: Role.VIEWER}), "attempt", row.attempt_id)


def _person(tx: ReadTx, secret: str) -> Login | None:
    token, person = tables.token, tables.person
    row = tx.one(
        select(token, person.c.name, person.c.admin)
        .join(person, person.c.id == token.c.person_id)
        .where(token.c.digest == digest_of(secret), token.c.revoked_us == 0, person.c.disabled == 0)
    )
    if row is None or is_expired(row.expires_us, tx.now_us):
        return None
    scope = _scope(tx, row.person_id, row.name, admin=bool(row.admin))
    stale = tx.now_us - row.last_used_us > TOUCH_S * 1_000_000
    return Login(scope, "session" if row.kind == "session" else "person", row.id, stale)


def _scope(tx: ReadTx, person_id: str, name: str, *, admin: bool) -> Scope:
    roles = tx.rows(select(tables.membership).where(tables.membership.c.person_id == person_id))
    return Scope(Actor(ActorKind.PERSON, person_id, name), {one.space_id: Role(one.role) for one in roles}, admin=admin)


def scope_of(tx: ReadTx, person_id: str) -> Scope | None:
    """Return what a person may do now, for what is started in their name; None where they may nothing any more."""
    row = tx.one(select(tables.person).where(tables.person.c.id == person_id, tables.person.c.disabled == 0))
    return None if row is None else _scope(tx, row.id, row.name, admin=bool(row.admin))


def touch(tx: Tx, token_id: str) -> None:
    """Note that a token was used; coarse, and no event."""
    tx.execute(update(tables.token).where(tables.token.c.id == token_id).values(last_used_us=tx.now_us))


def issue_token(tx: Tx, scope: Scope, *, person_id: str, label: str = "", expires_s: float | None = None) -> TokenView:
    """Make a token of a person; the answer holds the secret, which is not kept.

    Raises:
        Denied: for somebody else, by one who is no admin.
    """
    if person_id != scope.actor.id:
        require_admin(scope)
    name: str = tx.scalar(select(tables.person.c.name).where(tables.person.c.id == person_id))
    return _issue(tx, person_id, name, "person", "tbp", label, expires_s)


def _issue(tx: Tx, person_id: str, name: str, kind: str, prefix: str, label: str, expires_s: float | None) -> TokenView:
    secret = new_secret(prefix)
    view = TokenView(
        id=new_id("tok"),
        label=label,
        person=name,
        created_us=tx.now_us,
        expires_us=0 if expires_s is None else tx.now_us + round(expires_s * 1_000_000),
        secret=secret,
    )
    tx.execute(
        tables.token.insert().values(
            id=view.id, person_id=person_id, kind=kind, digest=digest_of(secret), label=label,
            created_us=view.created_us, expires_us=view.expires_us,
        )
    )  # fmt: skip
    tx.emit(Event("token.created", view.id, data={"person": name, "kind": kind, "label": label}))
    return view


def list_tokens(tx: ReadTx, scope: Scope) -> list[TokenView]:
    """Return my tokens and sessions, newest first; never their secrets. An admin sees everybody's."""
    token, person = tables.token, tables.person
    stmt = (
        select(token, person.c.name).join(person, person.c.id == token.c.person_id).order_by(token.c.created_us.desc())
    )
    if not scope.admin:
        stmt = stmt.where(token.c.person_id == scope.actor.id)
    return [
        TokenView(
            id=row.id,
            label=row.label or ("browser" if row.kind == "session" else ""),
            person=row.name,
            created_us=row.created_us,
            expires_us=row.expires_us,
            last_used_us=row.last_used_us,
            revoked=bool(row.revoked_us),
        )
        for row in tx.rows(stmt)
    ]


def revoke_token(tx: Tx, scope: Scope, token_id: str) -> None:
    """End a token at once. Ending it twice changes nothing.

    Raises:
        NotFound: unknown, or somebody else's (for one who is no admin).
    """
    row = tx.one(select(tables.token).where(tables.token.c.id == token_id))
    if row is None or not (row.person_id == scope.actor.id or scope.admin):
        raise NotFound("token_unknown", id=token_id)
    if row.revoked_us:
        return
    tx.execute(update(tables.token).where(tables.token.c.id == token_id).values(revoked_us=tx.now_us))
    tx.emit(Event("token.revoked", token_id, data={"label": row.label}))


def issue_login_link(tx: Tx, scope: Scope, *, person_id: str) -> str:
    """Return a one-time code that signs this person in within 15 minutes. By an admin, or the system at `up`."""
    require_admin(scope)
    secret = new_secret("tbl")
    tx.execute(
        tables.login_link.insert().values(
            digest=digest_of(secret), person_id=person_id, expires_us=tx.now_us + round(LOGIN_LINK_S * 1_000_000)
        )
    )
    tx.emit(Event("login_link.created", person_id))
    return secret


def redeem(tx: Tx, code: str) -> TokenView:
    """Return a new browser session for a login link (used up by this) or for a person's token.

    Raises:
        Unauthenticated: `login_code_dead`.
    """
    person_id = _link_holder(tx, code) if code.startswith("tbl_") else _token_holder(tx, code)
    row = tx.one(select(tables.person).where(tables.person.c.id == person_id, tables.person.c.disabled == 0))
    if row is None:
        raise Unauthenticated("login_code_dead")
    return _issue(tx, row.id, row.name, "session", "tbs", "", SESSION_S)


def _link_holder(tx: Tx, code: str) -> str:
    link = tables.login_link
    taken = tx.execute(
        update(link)
        .where(link.c.digest == digest_of(code), link.c.used_us == 0, link.c.expires_us > tx.now_us)
        .values(used_us=tx.now_us)
        .returning(link.c.person_id)
    ).scalar()
    return taken or ""


def _token_holder(tx: Tx, code: str) -> str:
    row = tx.one(select(tables.token).where(tables.token.c.digest == digest_of(code), tables.token.c.revoked_us == 0))
    return "" if row is None or row.kind != "person" or is_expired(row.expires_us, tx.now_us) else row.person_id


def issue_attempt_token(tx: Tx, attempt_id: str, run_id: str, space_id: str) -> str:
    """Return the secret of an attempt's supervisor; it replaces the one before."""
    secret = new_secret("tba")
    values = {
        "attempt_id": attempt_id, "run_id": run_id, "space_id": space_id,
        "digest": digest_of(secret), "created_us": tx.now_us, "revoked_us": 0,
    }  # fmt: skip
    tx.execute(
        upsert(
            tables.attempt_token, values, key=["attempt_id"],
            update=["run_id", "space_id", "digest", "created_us", "revoked_us"],
        )
    )  # fmt: skip
    return secret


def revoke_attempt_token(tx: Tx, attempt_id: str) -> None:
    """End the token of an attempt; without one nothing happens."""
    table = tables.attempt_token
    tx.execute(
        update(table).where(table.c.attempt_id == attempt_id, table.c.revoked_us == 0).values(revoked_us=tx.now_us)
    )
