"""Signing in, tokens, people, spaces, projects."""

from typing import Any

import msgspec
from litestar import Response, delete, get, patch, post, put

from trackbed import access
from trackbed.access import Login, naming
from trackbed.access.rules import csrf_of
from trackbed.db import ReadTx, Tx
from trackbed.domain.scope import SYSTEM, Permission, Scope
from trackbed.server.app import App
from trackbed.server.auth import session_cookie
from trackbed.wire.access import (
    LoginRequest,
    Me,
    NamingRequest,
    NamingView,
    PersonRequest,
    PersonView,
    ProjectView,
    RoleRequest,
    SpaceRequest,
    SpaceView,
    TokenRequest,
    TokenView,
)

PUBLIC = {"permission": Permission.PUBLIC}
SIGNED_IN = {"permission": Permission.SIGNED_IN}
READ = {"permission": Permission.READ}
MAINTAIN = {"permission": Permission.MAINTAIN}
ADMIN = {"permission": Permission.ADMIN}


def login_url(app: App, code: str) -> str:
    """Return the link that signs a browser in once. The code is a fragment: it never reaches a log or another site."""
    return f"{app.url}/login#code={code}"


def me_of(tx: ReadTx, scope: Scope, *, session: str = "") -> Me:
    """Return what a signed-in one may know of themselves; with a session also its CSRF token."""
    names = access.space_names(tx, scope)
    return Me(
        id=scope.actor.id,
        name=scope.actor.name,
        admin=scope.admin,
        roles={names[space_id]: role.value for space_id, role in scope.roles.items() if space_id in names},
        csrf=csrf_of(session) if session else "",
    )


@post("/api/v1/login", opt=PUBLIC, status_code=200, request_max_body_size=4096)
async def log_in(data: LoginRequest, trackbed_app: App) -> Response[Me]:
    """Redeem a one-time link or a token for a session of this browser."""

    def work(tx: Tx) -> tuple[str, Me]:
        secret = access.redeem(tx, data.code.strip()).secret
        return secret, me_of(tx, access.authenticate(tx, secret).scope, session=secret)

    secret, me = await trackbed_app.db.awrite(work, actor=SYSTEM.actor)
    return Response(me, cookies=[session_cookie(secret)])


@post("/api/v1/logout", opt=SIGNED_IN, status_code=204)
async def log_out(trackbed_app: App, who: Scope, login: Login) -> Response[None]:
    """End the session, or the token, that this request came with."""
    if login.kind == "session":
        await trackbed_app.db.awrite(lambda tx: access.revoke_token(tx, who, login.token_id), actor=who.actor)
    return Response(None, status_code=204, cookies=[session_cookie("")])


@get("/api/v1/me", opt=SIGNED_IN)
async def me(trackbed_app: App, who: Scope, session: str) -> Me:
    """Who I am, my roles, and the CSRF token of this browser's session."""
    return await trackbed_app.db.aread(lambda tx: me_of(tx, who, session=session))


@get("/api/v1/tokens", opt=SIGNED_IN)
async def tokens(trackbed_app: App, who: Scope) -> list[TokenView]:
    """My tokens and sessions; an admin sees everybody's."""
    return await trackbed_app.db.aread(lambda tx: access.list_tokens(tx, who))


@post("/api/v1/tokens", opt=SIGNED_IN)
async def make_token(data: TokenRequest, trackbed_app: App, who: Scope) -> TokenView:
    """A new token; its secret is in this answer only."""

    def work(tx: Tx) -> TokenView:
        other = data.person and data.person != who.actor.name
        if other:
            access.require_admin(who)
        holder = access.person_named(tx, data.person).id if other else who.actor.id
        return access.issue_token(tx, who, person_id=holder, label=data.label, expires_s=data.expires_s)

    return await trackbed_app.db.awrite(work, actor=who.actor)


@delete("/api/v1/tokens/{token_id:str}", opt=SIGNED_IN, status_code=204)
async def end_token(token_id: str, trackbed_app: App, who: Scope) -> None:
    """Revoke a token; the next request with it is refused."""
    await trackbed_app.db.awrite(lambda tx: access.revoke_token(tx, who, token_id), actor=who.actor)


@get("/api/v1/people", opt=ADMIN)
async def people(trackbed_app: App, who: Scope) -> list[PersonView]:
    """Everybody."""
    found = await trackbed_app.db.aread(lambda tx: access.list_people(tx, who))
    return [PersonView(id=p.id, name=p.name, admin=p.admin, disabled=p.disabled) for p in found]


@post("/api/v1/people", opt=ADMIN)
async def make_person(data: PersonRequest, trackbed_app: App, who: Scope) -> PersonView:
    """A new person, with the link of their first sign-in."""

    def work(tx: Tx) -> PersonView:
        person = access.create_person(tx, who, name=data.name, admin=data.admin)
        code = access.issue_login_link(tx, who, person_id=person.id)
        return PersonView(id=person.id, name=person.name, admin=person.admin, login_url=login_url(trackbed_app, code))

    return await trackbed_app.db.awrite(work, actor=who.actor)


@post("/api/v1/people/{name:str}/login-link", opt=ADMIN)
async def make_login_link(name: str, trackbed_app: App, who: Scope) -> PersonView:
    """A one-time link, good for 15 minutes."""

    def work(tx: Tx) -> PersonView:
        person = access.person_named(tx, name)
        code = access.issue_login_link(tx, who, person_id=person.id)
        return PersonView(
            id=person.id,
            name=person.name,
            admin=person.admin,
            disabled=person.disabled,
            login_url=login_url(trackbed_app, code),
        )

    return await trackbed_app.db.awrite(work, actor=who.actor)


@get("/api/v1/spaces", opt=SIGNED_IN)
async def spaces(trackbed_app: App, who: Scope) -> list[SpaceView]:
    """The spaces that I may read."""
    return await trackbed_app.db.aread(lambda tx: access.list_spaces(tx, who))


@post("/api/v1/spaces", opt=ADMIN)
async def make_space(data: SpaceRequest, trackbed_app: App, who: Scope) -> SpaceView:
    """Another space; where jobs share the server's account this must be accepted in words."""
    accepted = data.accept_one_trust_domain or trackbed_app.settings.accept_one_trust_domain
    return await trackbed_app.db.awrite(
        lambda tx: access.create_space(tx, who, name=data.name, accepted=accepted), actor=who.actor
    )


@put("/api/v1/spaces/{space:str}/members", opt=MAINTAIN)
async def set_member(space: str, data: RoleRequest, trackbed_app: App, who: Scope) -> SpaceView:
    """Give or take a role."""
    return await trackbed_app.db.awrite(
        lambda tx: access.set_role(tx, who, space, person=data.person, role=data.role), actor=who.actor
    )


@get("/api/v1/projects", opt=READ)
async def projects(trackbed_app: App, who: Scope) -> list[ProjectView]:
    """The projects that I may read."""

    def read(tx: ReadTx) -> list[ProjectView]:
        return access.list_projects(tx, who, naming=naming.views(tx, who))

    return await trackbed_app.db.aread(read)


@put("/api/v1/projects/{project:str}/naming", opt=MAINTAIN)
async def set_naming(project: str, data: NamingRequest, trackbed_app: App, who: Scope) -> NamingView:
    """Say what names and tags of a project's runs must look like."""
    return await trackbed_app.db.awrite(
        lambda tx: naming.set_rule(
            tx, who, project, space=data.space, name=data.name, tags=data.tags, expected=data.expected
        ),
        actor=who.actor,
    )


class Rename(msgspec.Struct, kw_only=True):
    """A project's new name; the old one keeps leading to it."""

    name: str


@patch("/api/v1/projects/{project:str}", opt=MAINTAIN)
async def rename(project: str, data: Rename, trackbed_app: App, who: Scope, space: str = "default") -> ProjectView:
    """Call a project otherwise."""

    def work(tx: Tx) -> ProjectView:
        access.rename_project(tx, who, project, to=data.name, space=space)
        return next(p for p in access.list_projects(tx, who) if (p.space, p.name) == (space, data.name))

    return await trackbed_app.db.awrite(work, actor=who.actor)


routes: list[Any] = [
    log_in, log_out, me, tokens, make_token, end_token, people, make_person, make_login_link,
    spaces, make_space, set_member, projects, rename, set_naming,
]  # fmt: skip
