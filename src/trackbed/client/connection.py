"""One server over HTTP: records in and out, problems as our errors, patience with what is safe to repeat."""

import re
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlsplit

import httpx
import msgspec

from trackbed.base.errors import Fault, TrackbedError, Unavailable, by_status
from trackbed.client.config import Login
from trackbed.wire.problems import Problem

T = TypeVar("T")
Query = Mapping[str, str | int | float | bool | None]

PATIENCE_S = 10.0  # how long a call that may be repeated is tried again
_BUSY = frozenset({429, 502, 503, 504})
_ERRNO = re.compile(r"^\[Errno -?\d+\] ")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def part(text: str) -> str:
    """Return text as one part of a path: `demo#17` → `demo%2317`."""
    return quote(text, safe="")


class Connection:
    """Threads may share one. `patience_s` bounds the retries of idempotent calls while the server is away."""

    def __init__(
        self, login: Login, *, patience_s: float = PATIENCE_S, transport: httpx.BaseTransport | None = None
    ) -> None:
        self.url = login.url
        self.patience_s = patience_s
        local = urlsplit(login.url).hostname in _LOOPBACK
        headers = {"Authorization": f"Bearer {login.token}"} if login.token else {}
        self._http = httpx.Client(
            base_url=login.url, headers=headers, timeout=httpx.Timeout(60.0, connect=5.0), transport=transport,
            trust_env=not local,  # a proxy never knows our loopback
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def get(self, path: str, kind: type[T], query: Query | None = None) -> T:
        return self.decode(self.send("GET", path, query=query), kind)

    def post(self, path: str, kind: type[T], body: Any = None, *, key: str = "", query: Query | None = None) -> T:
        """Send a record. With a `key` the call may be repeated: the server does it once."""
        return self.decode(self.send("POST", path, query=query, content=encode(body), key=key), kind)

    def put(self, path: str, kind: type[T], body: Any, *, query: Query | None = None) -> T:
        return self.decode(self.send("PUT", path, query=query, content=encode(body)), kind)

    def patch(self, path: str, kind: type[T], body: Any) -> T:
        return self.decode(self.send("PATCH", path, content=encode(body)), kind)

    def delete(self, path: str) -> None:
        self.send("DELETE", path)

    def send(
        self, method: str, path: str, *, query: Query | None = None, content: Any = None, content_type: str = "application/json",
        key: str = "", repeat: bool | None = None, timeout_s: float | None = None, accept: str = "",
    ) -> httpx.Response:  # fmt: skip
        """Return a good answer.

        `content` may be a function that makes the body anew for each try.

        Raises:
            TrackbedError: what the server said, by its family and code.
            Unavailable: `server_unreachable` or `server_not_listening`, once patience is over.
        """
        headers: dict[str, str] = {}
        if content is not None:
            headers["Content-Type"] = content_type
        if key:
            headers["Idempotency-Key"] = key
        if accept:
            headers["Accept"] = accept
        again = repeat if repeat is not None else method in ("GET", "PUT", "DELETE", "HEAD") or bool(key)
        params = {name: value for name, value in (query or {}).items() if value is not None and value != ""}
        timeout = httpx.USE_CLIENT_DEFAULT if timeout_s is None else httpx.Timeout(timeout_s, connect=5.0)

        def once() -> httpx.Response:
            body: Any = content() if callable(content) else content
            return self._http.request(method, path, params=params, content=body, headers=headers, timeout=timeout)

        return self._patiently(once, again=again)

    @contextmanager
    def stream(
        self, path: str, *, query: Query | None = None, headers: dict[str, str] | None = None, timeout_s: float = 60.0
    ) -> Generator[httpx.Response]:
        """Open an answer whose body is read bit by bit."""
        params = {name: value for name, value in (query or {}).items() if value is not None and value != ""}
        try:
            timeout = httpx.Timeout(timeout_s, connect=5.0)
            with self._http.stream("GET", path, params=params, headers=headers, timeout=timeout) as answer:
                if not answer.is_success:
                    answer.read()
                    raise problem(answer)
                yield answer
        except httpx.TransportError as error:
            raise self._unreachable(error) from error

    def decode(self, answer: httpx.Response, kind: type[T]) -> T:
        if kind is type(None):
            return None  # type: ignore[return-value]
        try:
            return msgspec.json.decode(answer.content, type=kind)
        except msgspec.MsgspecError as error:
            raise Unavailable("server_garbage", url=self.url, what=str(error)) from error

    def _patiently(self, once: Callable[[], httpx.Response], *, again: bool) -> httpx.Response:
        deadline = time.monotonic() + self.patience_s
        pause = 0.1
        while True:
            try:
                answer = once()
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:  # nothing was sent: always safe to repeat
                if time.monotonic() + pause > deadline:
                    raise self._unreachable(error) from error
            except httpx.TransportError as error:
                if not again or time.monotonic() + pause > deadline:
                    raise self._unreachable(error) from error
            else:
                if answer.is_success:
                    return answer
                if answer.status_code not in _BUSY or not again or time.monotonic() + pause > deadline:
                    raise problem(answer)
            time.sleep(pause)
            pause = min(2 * pause, 2.0)

    def _unreachable(self, error: Exception) -> Unavailable:
        what = _ERRNO.sub("", str(error)) or type(error).__name__
        return Unavailable("server_not_listening" if _refused(error) else "server_unreachable", url=self.url, what=what)


def _refused(error: BaseException | None) -> bool:
    """Whether an error comes from nobody listening: the cause lies below the layers of the HTTP client."""
    while error is not None:
        if isinstance(error, ConnectionRefusedError):
            return True
        error = error.__cause__ or error.__context__
    return False


def encode(body: Any) -> bytes | None:
    return None if body is None else msgspec.json.encode(body)


def problem(answer: httpx.Response) -> TrackbedError:
    """Return the error that a bad answer carries."""
    family = by_status(answer.status_code)
    try:
        told = msgspec.json.decode(answer.content, type=Problem)
    except msgspec.MsgspecError:
        return family("server_answer", status=answer.status_code, url=str(answer.request.url))
    faults = [Fault(fault.code, fault.field, fault.line, fault.params) for fault in told.faults]
    return family(told.code, faults=faults, **told.params)
