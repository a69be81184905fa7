"""The ranks' loopback address: reads of the API under the attempt token, by a random secret worth nothing elsewhere."""

import hmac
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import msgspec

from trackbed.base.entropy import new_secret
from trackbed.wire.problems import Problem

_PASSED_ON = frozenset({"content-type", "etag", "content-range", "accept-ranges", "last-modified", "content-length"})


class Relay:
    """Listens on a free port of 127.0.0.1 in threads of its own. Everything but GET below /api/v1/ is refused."""

    def __init__(self, server_url: str, token: str) -> None:
        self.secret = new_secret("tbr")
        self._http = httpx.Client(
            base_url=server_url or "http://127.0.0.1:9", headers={"Authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(60.0, connect=3.0), trust_env=False,
        )  # fmt: skip
        relay = self

        class Handler(_Handler):
            secret, http = relay.secret, relay._http

        self._listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._listener.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._listener.server_address[1]}"
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.5,), name="relay", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        if self._thread.is_alive():
            self._listener.shutdown()
        self._listener.server_close()
        self._http.close()


class _Handler(BaseHTTPRequestHandler):
    secret: str
    http: httpx.Client
    protocol_version = "HTTP/1.1"
    timeout = 120

    def do_GET(self) -> None:
        if not hmac.compare_digest(self.headers.get("Authorization", "").encode(), f"Bearer {self.secret}".encode()):
            self._refuse(401, "relay_secret_wrong")
        elif not self.path.startswith("/api/v1/"):
            self._refuse(403, "relay_reads_only")
        else:
            self._forward()

    def _forward(self) -> None:
        headers = {name: self.headers[name] for name in ("Range", "Accept", "If-None-Match") if name in self.headers}
        try:
            with self.http.stream("GET", self.path, headers=headers) as answer:
                self.send_response(answer.status_code)
                for name, value in answer.headers.items():
                    if name.lower() in _PASSED_ON and not (name.lower() == "content-length" and _encoded(answer)):
                        self.send_header(name, value)
                if "content-length" not in answer.headers or _encoded(answer):
                    self.send_header("Connection", "close")
                    self.close_connection = True
                self.end_headers()
                for piece in answer.iter_bytes(1 << 20):
                    self.wfile.write(piece)
        except httpx.TransportError:
            self._refuse(503, "relay_server_away")
        except OSError:
            self.close_connection = True  # the rank went away

    def _other(self) -> None:
        self._refuse(403, "relay_reads_only")

    do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _other  # noqa: N815 - names of the standard library

    def _refuse(self, status: int, code: str) -> None:
        body = msgspec.json.encode(Problem(type=f"urn:trackbed:error:{code}", status=status, code=code))
        self.send_response(status)
        self.send_header("Content-Type", "application/problem+json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.close_connection = True  # a body that we did not read would be taken for the next request
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: a rank may poll."""


def _encoded(answer: httpx.Response) -> bool:
    return "content-encoding" in answer.headers
