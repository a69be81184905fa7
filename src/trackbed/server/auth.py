"""Who asks, and may they? One guard stands before every handler, one door before the whole server.

The guard reads the permission that a handler declares; without one the server does not start. A person comes with
`Authorization: Bearer tbp_…` or with the session cookie, an attempt's supervisor with `tba_…`. Each request is judged
anew, so a revoked token is dead at once.

The door looks at headers only: the Host must be one of ours (DNS rebinding), an unsafe request with an Origin must come
from our own page. There is no CORS.
"""

import base64
import hmac
import logging
from typing import Any
from urllib.parse import urlsplit

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.datastructures import Cookie
from litestar.handlers import BaseRouteHandler

from trackbed.access import Login, authenticate, touch
from trackbed.access.rules import SESSION_S, csrf_of
from trackbed.base.errors import BadInput, Denied, Internal, TrackbedError, Unauthenticated
from trackbed.domain.scope import LEAST_ROLE, SYSTEM, Permission, Scope
from trackbed.server.app import App

COOKIE = "trackbed_session"
CSRF_HEADER = "x-trackbed-csrf"
SAFE = frozenset({"GET", "HEAD"})
log = logging.getLogger("trackbed.server")

Connection = ASGIConnection[Any, Any, Any, Any]


def declared(handler: BaseRouteHandler) -> Permission | None:
    """Return the permission that a handler declares, None without one."""
    permission = handler.opt.get("permission")
    return permission if isinstance(permission, Permission) else None


async def guard(connection: Connection, handler: BaseRouteHandler) -> None:
    """Let the request pass to its handler, or raise. Leaves a `Login` on the connection's state."""
    permission = declared(handler)
    if permission is None:
        raise Internal("route_without_permission", route=connection.url.path)
    if permission is Permission.PUBLIC:
        return
    app: App = connection.app.state.trackbed
    secret, by_cookie = credentials(connection, basic=bool(handler.opt.get("basic")))
    login = await app.db.aread(lambda tx: authenticate(tx, secret))
    if by_cookie:
        check_csrf(connection, secret)
    allow(login, permission, attempts_too=bool(handler.opt.get("attempt")))
    connection.state.login = login
    if login.stale:
        await _touch(app, login)


def credentials(connection: Connection, *, basic: bool = False) -> tuple[str, bool]:
    """Return the secret of a request and whether it came by cookie. A bearer token goes before a cookie.

    Routes that take `basic` auth, for clients that know nothing else, read a token from user name or password.

    Raises:
        Unauthenticated: `token_missing`.
    """
    scheme, _, secret = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and secret.strip():
        if secret.strip().startswith("tbs_"):  # a session lives in its cookie, where the CSRF check can see it
            raise Unauthenticated("token_dead")
        return secret.strip(), False
    if basic and scheme.lower() == "basic":
        return _basic(secret.strip()), False
    cookie = connection.cookies.get(COOKIE, "")
    if not cookie.startswith("tbs_"):
        raise Unauthenticated("token_missing")
    return cookie, True


def _basic(encoded: str) -> str:
    """Return the token in a Basic header: the user name, or the password beside any user name."""
    try:
        name, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:
        raise Unauthenticated("token_dead") from None
    found = next((part for part in (name, password) if part.startswith("tbp_")), "")
    if not found:
        raise Unauthenticated("token_dead")
    return found


def check_csrf(connection: Connection, session: str) -> None:
    """Raise unless an unsafe request by cookie carries the token of its session."""
    method: str = connection.scope.get("method", "GET")
    sent: str = connection.headers.get(CSRF_HEADER, "")
    if method not in SAFE and not hmac.compare_digest(sent.encode(), csrf_of(session).encode()):
        raise Denied("csrf_refused")


def allow(login: Login, permission: Permission, *, attempts_too: bool) -> None:
    """Raise Denied where this kind of secret or the highest of its roles can never be enough.

    Which space a request is about is known further in: flows and services check the role there once more.
    """
    if login.kind == "attempt":
        if permission is not Permission.ATTEMPT and not attempts_too:
            raise Denied("attempt_refused")
        return
    if permission is Permission.ATTEMPT:
        raise Denied("attempt_only")
    if permission is Permission.SIGNED_IN or login.scope.admin:
        return
    least = LEAST_ROLE[permission]
    if permission is Permission.ADMIN or not any(role.rank >= least.rank for role in login.scope.roles.values()):
        raise Denied("role_too_low", what="this", needed=least.value)


async def _touch(app: App, login: Login) -> None:
    try:
        await app.db.awrite(lambda tx: touch(tx, login.token_id), actor=SYSTEM.actor)
    except TrackbedError as error:  # a full disk must not lock people out
        log.warning("when a token was last used could not be noted: %s", error)


async def provide_who(request: Request[Any, Any, Any]) -> Scope:
    """The scope of the signed-in one, for handlers that ask by `who: Scope`."""
    return request.state.login.scope


async def provide_login(request: Request[Any, Any, Any]) -> Login:
    """The judged secret itself, for handlers that ask by `login: Login`."""
    return request.state.login


async def provide_session(request: Request[Any, Any, Any]) -> str:
    """The secret of the browser session, for handlers that ask by `session: str`; empty for a bearer token."""
    return credentials(request)[0] if request.state.login.kind == "session" else ""


def session_cookie(secret: str) -> Cookie:
    """Return the cookie of a browser session; an empty secret takes it away."""
    return Cookie(
        key=COOKIE,
        value=secret,
        max_age=round(SESSION_S) if secret else 0,
        path="/",
        httponly=True,
        samesite="strict",
        secure=False,  # loopback speaks HTTP; a server behind TLS sets it
    )


def check_host(host: str, allowed: frozenset[str]) -> str:
    """Return the Host header's authority if its name is one of ours.

    Raises:
        BadInput: `host_refused`.
    """
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    if name.lower() not in allowed:
        raise BadInput("host_refused", host=host[:200])
    return host


def check_origin(origin: str, host: str) -> None:
    """Raise Denied unless an unsafe request with an Origin comes from the page of this very server."""
    if origin and urlsplit(origin).netloc.lower() != host.lower():
        raise Denied("origin_refused", origin=origin[:200])
