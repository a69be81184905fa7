"""The lease: asked for back to back, whatever the server answers. No answer at all never ends a rank."""

import logging
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import httpx
import msgspec

from trackbed.client.sender import FRAMES_TYPE
from trackbed.wire.attempts import Assignment, LeaseReply, LeaseRequest, Order
from trackbed.wire.problems import Problem
from trackbed.wire.series import FramesReceipt

_PAUSE_S = (0.2, 5.0)  # after a failure: first and longest
_LEAST_S = 0.2  # between answers that bring nothing new
_STARTING_WAIT_S = 0.5  # while starting, so that the server soon hears that ranks run


class Server:
    """HTTP to the server under the attempt token. Each thread has its own."""

    def __init__(self, given: Assignment) -> None:
        self._url = given.server_url.rstrip("/") + "/api/v1"
        self._attempt, self._run = f"/attempts/{given.attempt_id}", f"/runs/{given.run_id}"
        headers = {"Authorization": f"Bearer {given.token}", "Content-Type": "application/json"}
        self._http = httpx.Client(headers=headers, trust_env=False)

    def post(self, what: str, body: bytes, *, timeout_s: float) -> httpx.Response:
        """Post a report of the attempt; raises httpx.HTTPError when no answer comes."""
        return self._http.post(
            f"{self._url}{self._attempt}/{what}", content=body, timeout=httpx.Timeout(timeout_s, connect=5.0)
        )

    def get(self, what: str, *, timeout_s: float) -> httpx.Response:
        """Ask for something of the attempt; raises httpx.HTTPError when no answer comes."""
        return self._http.get(f"{self._url}{self._attempt}/{what}", timeout=httpx.Timeout(timeout_s, connect=5.0))

    @contextmanager
    def stream(
        self, path: str, query: dict[str, str], *, headers: dict[str, str] | None = None
    ) -> Generator[httpx.Response]:
        """Ask for something that this attempt may read, as it streams in; raises httpx.HTTPError when no answer comes."""
        timeout = httpx.Timeout(60.0, connect=5.0)
        with self._http.stream("GET", self._url + path, params=query, headers=headers, timeout=timeout) as answer:
            yield answer

    def frames(self, batch: bytes) -> FramesReceipt:
        """Post spool frames; raises for everything but a receipt."""
        answer = self._http.post(
            f"{self._url}{self._run}/frames", content=batch, headers={"Content-Type": FRAMES_TYPE},
            timeout=httpx.Timeout(60.0, connect=5.0),
        )  # fmt: skip
        answer.raise_for_status()
        return msgspec.json.decode(answer.content, type=FramesReceipt)

    def close(self) -> None:
        self._http.close()


def problem_code(answer: httpx.Response) -> str:
    """Return the stable code of a refusal; empty where the answer is none of ours (a proxy's page, say)."""
    try:
        return msgspec.json.decode(answer.content, type=Problem).code
    except msgspec.DecodeError:
        return ""


class Lease:
    """Renews in a thread of its own; the main thread reads what is known."""

    def __init__(self, server: Server, request: Callable[[], LeaseRequest], *, heartbeat_s: float) -> None:
        self._server, self._request, self._heartbeat_s = server, request, heartbeat_s
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._order: Order | None = None
        self._log = logging.getLogger("trackbed.lease")
        self.superseded = False
        self.renewed_s = time.monotonic()  # start of the last request that was answered well
        self.answered = False  # ever
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    @property
    def order(self) -> Order | None:
        """The last order of the server, a withdrawn one included."""
        with self._lock:
            return self._order

    @property
    def silent_s(self) -> float:
        """How long the server has not answered."""
        return time.monotonic() - self.renewed_s

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            begun_s = time.monotonic()
            try:
                news = self._renew(begun_s)
            except Exception as fault:  # whatever a server may answer: training goes on
                if failures == 0:
                    self._log.warning("no lease: %s", str(fault) or type(fault).__name__)
                failures += 1
                self._stop.wait(min(_PAUSE_S[0] * 2 ** min(failures - 1, 8), _PAUSE_S[1], max(self._heartbeat_s, 0.2)))
                continue
            if failures:
                self._log.info("the server answers again after %d failures", failures)
            failures = 0
            if not news:
                self._stop.wait(max(0.0, _LEAST_S - (time.monotonic() - begun_s)))
        self._server.close()

    def _renew(self, begun_s: float) -> bool:
        request = self._request()
        wait_s = min(self._heartbeat_s, _STARTING_WAIT_S) if request.phase == "starting" else self._heartbeat_s
        request = msgspec.structs.replace(request, wait_s=wait_s)
        answer = self._server.post("lease", msgspec.json.encode(request), timeout_s=wait_s + 10.0)
        if answer.status_code == 409 and problem_code(answer) == "epoch_superseded":
            reply = LeaseReply(verdict="superseded")
        else:
            answer.raise_for_status()
            reply = msgspec.json.decode(answer.content, type=LeaseReply)
        self.renewed_s, self.answered = begun_s, True
        if reply.verdict == "superseded":
            self.superseded = True
        with self._lock:
            news = reply.order is not None and reply.order != self._order
            if reply.order is not None:
                self._order = reply.order
        return news
