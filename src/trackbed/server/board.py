"""The ASGI application: Litestar behind the door of `auth`, with headers that tell browsers to trust nothing else."""

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import unquote

from litestar import Litestar

from trackbed.base.errors import TrackbedError
from trackbed.server import idempotency
from trackbed.server.app import App
from trackbed.server.auth import SAFE, check_host, check_origin
from trackbed.server.problems import MEDIA, WrongMethod, body_of, headers_of

Message = Any
Send = Callable[[Message], Awaitable[None]]

SECURITY: dict[bytes, bytes] = {
    b"content-security-policy": (
        b"default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; object-src 'none'; "
        b"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}


class Board(Litestar):
    """Everything that is true of each request, whatever its route: Host, Origin, security headers, kept answers."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        scope = _one_part(scope)
        app: App = self.state.trackbed
        guarded = _Sender(app, scope, send)
        try:
            _door(scope, self.state.hosts)
        except TrackbedError as error:
            await guarded.refuse(error)
            return
        try:
            await super().__call__(scope, receive, guarded)
        finally:
            await guarded.end()


def _one_part(scope: Any) -> Any:
    """Let `project/name` be one part of the path of a run: a slash that came as `%2F` divides nothing."""
    raw: bytes = scope.get("raw_path", b"")
    if b"%2f" not in raw.lower() or not raw.startswith(b"/api/v1/runs/"):
        return scope
    parts = raw.partition(b"?")[0].decode("latin-1").split("/")
    return {**scope, "path": "/".join(unquote(part).replace("/", "%2F") for part in parts)}


def _door(scope: Any, hosts: frozenset[str]) -> None:
    headers = dict(scope["headers"])
    host = check_host(headers.get(b"host", b"").decode("latin-1"), hosts)
    if scope["method"] == "OPTIONS":  # only browsers of other origins ask, and there is nothing for them
        raise WrongMethod("method_not_allowed", method="OPTIONS", path=scope["path"])
    if scope["method"] not in SAFE:
        check_origin(headers.get(b"origin", b"").decode("latin-1"), host)


class _Sender:
    """The `send` of one request: adds headers that are missing, and keeps the answer of an idempotency key."""

    def __init__(self, app: App, scope: Any, send: Send) -> None:
        self._app = app
        self._scope = scope
        self._send = send
        self._start: Message = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            there = {name.lower() for name, _ in message["headers"]}
            extra = [(name, value) for name, value in SECURITY.items() if name not in there]
            if b"cache-control" not in there:
                extra.append((b"cache-control", b"no-store"))
            message = {**message, "headers": [*message["headers"], *extra]}
            if self._place:
                self._start = message
                return
        elif self._start is not None and message["type"] == "http.response.body":
            self._body += message.get("body", b"")
            if message.get("more_body"):
                return
            await self._keep(self._start["status"], dict(self._start["headers"]).get(b"content-type", b"").decode())
            start, self._start = self._start, None
            await self._send(start)
            message = {"type": "http.response.body", "body": self._body}
        await self._send(message)

    @property
    def _place(self) -> idempotency.Place | None:
        return self._scope.get("trackbed_idempotency")

    async def _keep(self, status: int, media: str) -> None:
        place = self._place
        if place is not None:
            self._scope["trackbed_idempotency"] = None
            await idempotency.keep(self._app, place, status=status, media=media, body=self._body)

    async def end(self) -> None:
        """Free the key of a request that never got an answer."""
        if self._place is not None:
            with contextlib.suppress(TrackbedError):
                await self._keep(500, "")

    async def refuse(self, error: TrackbedError) -> None:
        headers = [(b"content-type", MEDIA.encode())]
        headers += [(name.lower().encode(), value.encode()) for name, value in headers_of(error).items()]
        await self({"type": "http.response.start", "status": error.http_status, "headers": headers})
        await self({"type": "http.response.body", "body": body_of(error)})
