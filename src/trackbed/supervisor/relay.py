"""The ranks' loopback address: MLflow and reads of the API, by a random secret worth nothing elsewhere.

relay ─► relay_mlflow ─► relay_told     runs, points, params, tags: spooled, answered here
      ─► relay_files                     artifacts of the job: files below its output
      ─► the server, under the attempt token: everything else; 503 while it is away
"""

import hmac
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import httpx
import msgspec

from trackbed.base.entropy import new_secret
from trackbed.base.errors import BadInput, Denied, TooLarge, TrackbedError, Unauthenticated, Unavailable
from trackbed.supervisor import relay_files
from trackbed.supervisor.relay_files import Files
from trackbed.supervisor.relay_mlflow import Caller, Mlflow
from trackbed.wire.mlflow import SPOKEN, Asked, Document, read
from trackbed.wire.mlflow_errors import body_of
from trackbed.wire.problems import Problem

MOST_BODY_BYTES = 32 * 2**20  # of what is no file
MOST_CONNECTIONS = 256
SETTLE_S = 2.0  # how long a read waits for what was logged before it
AWAY_S = 2.0  # how long a server that did not answer is not asked for what can be answered without it
_BLOCK = 2**20
_MLFLOW = ("/api/2.0/mlflow", "/api/3.0/mlflow", "/ajax-api/", "/v1/traces")
_ASKED = frozenset({"range", "accept", "if-none-match", "content-type", "content-length", "user-agent"})
_PASSED_ON = frozenset(
    {"content-type", "etag", "content-range", "accept-ranges", "last-modified", "content-length", "content-disposition"}
)


class Upstream:
    """The server under the attempt token."""

    def __init__(self, url: str, token: str, settle: Callable[[float], object]) -> None:
        self._settle, self._away_until_s = settle, 0.0
        self.http = httpx.Client(
            base_url=url or "http://127.0.0.1:9", headers={"Authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(60.0, connect=3.0), trust_env=False,
            limits=httpx.Limits(max_connections=MOST_CONNECTIONS, max_keepalive_connections=8),
        )  # fmt: skip

    @property
    def away(self) -> bool:
        return time.monotonic() < self._away_until_s

    def missed(self) -> None:
        self._away_until_s = time.monotonic() + AWAY_S

    def settle(self) -> None:
        """Wait a little until the server has what was logged before."""
        if not self.away:
            self._settle(SETTLE_S)

    def ask(self, path: str) -> Document | None:
        """Return a small JSON answer of the server; None where it has none, or is away."""
        if self.away:
            return None
        try:
            answer = self.http.get(path, timeout=httpx.Timeout(5.0, connect=1.0))
        except httpx.HTTPError:
            self.missed()
            return None
        try:
            return msgspec.json.decode(answer.content, type=dict[str, Any]) if answer.is_success else None
        except msgspec.MsgspecError:
            return None


@dataclass(frozen=True)
class Parts:
    """What a request is answered with."""

    secret: str
    upstream: Upstream
    mlflow: Mlflow
    files: Files

    def caller(self, authorization: str) -> Caller:
        """Return who asks: `Bearer <secret>`, with `.<rank>` behind it where the rank is known.

        Raises:
            Unauthenticated: `relay_secret_wrong`.
        """
        secret, _, rank = authorization.removeprefix("Bearer ").partition(".")
        if not hmac.compare_digest(secret.encode("utf-8", "replace"), self.secret.encode()):
            raise Unauthenticated("relay_secret_wrong")
        return Caller(int(rank) if rank.isdecimal() and len(rank) < 10 else 0)


class Relay:
    """Listens on a free port of 127.0.0.1, a thread a connection."""

    def __init__(self, upstream: Upstream, mlflow: Mlflow, files: Files) -> None:
        self.secret = new_secret("tbr")
        self._upstream = upstream

        class Handler(_Handler):
            parts = Parts(self.secret, upstream, mlflow, files)

        self._listener = _Listener(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._listener.server_address[1]}"
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.5,), name="relay", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        if self._thread.is_alive():
            self._listener.shutdown()
        self._listener.server_close()
        self._upstream.http.close()


class _Listener(ThreadingHTTPServer):
    """No more connections at a time than threads that we can pay for; the next one waits in the kernel's queue."""

    daemon_threads = True
    request_queue_size = 128
    _places = threading.BoundedSemaphore(MOST_CONNECTIONS)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._places.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()


class _Handler(BaseHTTPRequestHandler):
    parts: Parts
    protocol_version = "HTTP/1.1"
    timeout = 120
    wbufsize = -1  # one packet an answer
    disable_nagle_algorithm = True

    def _serve(self) -> None:
        self._body = _Body(self.rfile, self.headers)
        self._url = urlsplit(self.path)
        try:
            self._route(self.parts.caller(self.headers.get("Authorization", "")))
        except TrackbedError as error:
            self._refuse(error)
        except httpx.TransportError:
            self.parts.upstream.missed()
            self._refuse(Unavailable("relay_server_away"))
        except OSError:
            self.close_connection = True  # the rank went away
        if not self._body.whole:
            self.close_connection = True  # a body that we did not read would be taken for the next request

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _serve  # noqa: N815 - names of the library

    def _route(self, who: Caller) -> None:
        path = unquote(self._url.path)
        if path in ("/health", "/version"):
            return self._send(200, (b"OK" if path == "/health" else SPOKEN.encode()), "text/plain")
        root = next((root for root in relay_files.ROOTS if path == root or path.startswith(root + "/")), "")
        if root:
            return self._artifacts(path.removeprefix(root).strip("/"))
        if path.endswith("/mlflow/artifacts/list"):
            return self._list_of_run()
        if path.startswith(_MLFLOW):
            return self._mlflow(who, path)
        if not path.startswith("/api/v1/") or not (self.command == "GET" or path == "/api/v1/series"):
            raise Denied("relay_reads_only")
        return self._forward()

    def _mlflow(self, who: Caller, path: str) -> None:
        mlflow = self.parts.mlflow
        work = mlflow.route(self.command, path)
        answer = work(who, Asked(self._fields())) if work is not None else None
        if answer is not None:
            return self._json(answer)
        fields = self._fields() if path.endswith("logged-models/search") else {}
        mlflow.note_forwarded(self.command, path)
        self.parts.upstream.settle()
        try:
            return self._forward()
        except httpx.TransportError:
            known = mlflow.without_server(self.command, path, fields)
            if known is None:
                raise
            self.parts.upstream.missed()
            return self._json(known)

    # Files

    def _artifacts(self, proxied: str) -> None:
        """A file of the job's own run or of a child is taken here; a folder is listed; everything else is the server's."""
        files = self.parts.files
        inner = proxied or self._query().get("path", "")
        place = files.place(inner)
        told = self.parts.mlflow.told(place[0]) if place is not None else None
        if place is None or told is None:
            self.parts.upstream.settle()
            return self._forward()
        run, path = place
        if self.command == "PUT":
            if not path:
                raise BadInput("mlflow_artifact_path", path="-")
            files.put(run, path, self._body)
            return self._json({})
        if told.child:
            self.parts.upstream.settle()
            return self._forward()
        if self.command == "GET" and not proxied:
            return self._json({"files": self._listing(path, self.path, whole_paths=False)})
        here = files.local(path)
        if self.command == "GET" and here is not None:
            return self._file(here)
        if self.command == "DELETE" and here is not None:
            files.remove(path)
        return self._forward()

    def _list_of_run(self) -> None:
        asked = self._query()
        run, path = asked.get("run_id") or asked.get("run_uuid", ""), asked.get("path", "").strip("/")
        told = self.parts.mlflow.told(run)
        if told is None or told.child:
            self.parts.upstream.settle()
            return self._forward()
        self.parts.files.place(f"p/{run}/artifacts/{path}")  # refuses what is no path
        return self._json({"root_uri": told.artifact_root, "files": self._listing(path, self.path, whole_paths=True)})

    def _listing(self, folder: str, ask: str, *, whole_paths: bool) -> list[Document]:
        there = self.parts.upstream.ask(ask) or {}
        return relay_files.merged(self.parts.files.listed(folder, whole_paths=whole_paths), there.get("files", []))

    def _file(self, path: Any) -> None:
        with path.open("rb") as file:
            size = path.stat().st_size
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(size))
            self.end_headers()
            while size > 0 and (block := file.read(min(_BLOCK, size))):
                self.wfile.write(block)
                size -= len(block)
        if size:
            self.close_connection = True  # it was cut while it was read

    # The server

    def _forward(self) -> None:
        headers = {name: value for name, value in self.headers.items() if name.lower() in _ASKED}
        body = self._body.blocks() if self._body.there else None
        with self.parts.upstream.http.stream(self.command, self.path, headers=headers, content=body) as answer:
            self.send_response(answer.status_code)
            encoded = "content-encoding" in answer.headers
            for name, value in answer.headers.items():
                if name.lower() in _PASSED_ON and not (name.lower() == "content-length" and encoded):
                    self.send_header(name, value)
            if "content-length" not in answer.headers or encoded:
                self.send_header("Connection", "close")
                self.close_connection = True
            self.end_headers()
            for piece in answer.iter_bytes(_BLOCK):
                self.wfile.write(piece)

    # Requests and answers

    def _query(self) -> dict[str, str]:
        return {name: given[-1] for name, given in parse_qs(self._url.query, keep_blank_values=True).items()}

    def _fields(self) -> Document:
        """Return the fields of a request that may be answered here; what is forwarded keeps its body."""
        fields: Document = dict(self._query())
        if self._body.there:
            data = self._body.keep(MOST_BODY_BYTES)
            fields |= read(data) if data.strip() else {}
        return fields

    def _json(self, document: Document) -> None:
        self._send(200, msgspec.json.encode(document), "application/json")

    def _refuse(self, error: TrackbedError) -> None:
        if self._url.path.startswith(_MLFLOW):
            body, status = body_of(error)
            return self._send(status, body, "application/json")
        problem = Problem(type=f"urn:trackbed:error:{error.code}", status=error.http_status, code=error.code)
        return self._send(error.http_status, msgspec.json.encode(problem), "application/problem+json")

    def _send(self, status: int, body: bytes, media: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(body)))
        if not self._body.whole:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: a rank may poll."""


class _Body:
    """The body of a request as it streams in, of a known length or in chunks."""

    def __init__(self, source: Any, headers: Any) -> None:
        self._source, self._kept = source, b""
        self._chunked = "chunked" in headers.get("Transfer-Encoding", "").lower()
        length = headers.get("Content-Length", "0")
        self._left = int(length) if length.isdecimal() and len(length) < 19 else 0
        self.there = self._chunked or self._left > 0
        self.whole = not self.there

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; empty at the end. OSError where the sender went away in the middle."""
        if self._kept:
            block, self._kept = self._kept[:size], self._kept[size:]
            return block
        if self.whole:
            return b""
        if self._chunked and self._left == 0:
            self._left = self._next_chunk()
        block = self._source.read(min(size, self._left)) if self._left else b""
        if self._left and not block:
            raise OSError("the request was cut")
        self._left -= len(block)
        if self._left == 0:
            if self._chunked and block:
                self._source.readline()
            self.whole = not self._chunked or not block
        return block

    def _next_chunk(self) -> int:
        line = self._source.readline(64).partition(b";")[0].strip()
        try:
            size = int(line, 16)
        except ValueError:
            raise OSError("no chunk") from None
        if size == 0:
            while self._source.readline(1024).strip():  # trailers
                pass
        return size

    def blocks(self) -> Iterator[bytes]:
        while block := self.read(_BLOCK):
            yield block

    def keep(self, most: int) -> bytes:
        """Return all of it, and have it once more for whoever reads on."""
        data = bytearray()
        while block := self.read(_BLOCK):
            data += block
            if len(data) > most:
                raise TooLarge("relay_body_large", most=most)
        self._kept = bytes(data)
        return self._kept
