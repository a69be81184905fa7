"""From this node to the server: frames first, then reports in their order, the exit report strictly last.

Everything lies on disk before it is sent, so a server that is away for days costs nothing but the delay.
"""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import msgspec

from trackbed.base.errors import TrackbedError
from trackbed.client.sender import Shipper
from trackbed.clusters import NodeFolder
from trackbed.clusters.node_folder import replace, report_number
from trackbed.formats import spool as frames
from trackbed.supervisor.lease import Server, problem_code
from trackbed.wire.attempts import CheckpointReport, ExitReport, InputsReport, OutputsReport
from trackbed.wire.runs import CheckpointView
from trackbed.wire.series import FramesReceipt

Report = CheckpointReport | OutputsReport | InputsReport | ExitReport
_KINDS: dict[type[Report], str] = {
    CheckpointReport: "checkpoints", OutputsReport: "outputs", InputsReport: "inputs", ExitReport: "exit",
}  # fmt: skip
_BEAT_S = 0.5  # while ranks run; at the end there is nothing to wait for
_LAST_BEAT_S = 0.1
_PAUSE_S = (0.2, 5.0)
_TOKEN_DEAD_S = 20.0  # an exit report refused for so long with "no such token" was taken before, its answer lost
_STUCK_S = (
    600.0  # frames that the server, otherwise answering, does not take: the exit says so instead of waiting for ever
)


class Journal:
    """`reports/NNN-<kind>.json`: written durably before it is sent; `.sent` or `.refused` beside it when answered."""

    def __init__(self, folder: NodeFolder) -> None:
        self._folder = folder
        self._lock = threading.Lock()

    def add(self, report: Report) -> None:
        kind = _KINDS[type(report)]
        with self._lock:
            number = 1 + max((report_number(path.name) for path in self._folder.reports.iterdir()), default=0)
            replace(
                self._folder.reports / f"{number:03d}-{kind}.json",
                msgspec.json.encode(report),
                mode=0o600,
                durable=True,
            )

    def next(self) -> Path | None:
        """Return the oldest report without an answer."""
        waiting = self._folder.unsent()
        return self._folder.reports / waiting[0] if waiting else None

    def has_exit(self) -> bool:
        return any(self._folder.reports.glob("*-exit.json"))

    def exit_answered(self) -> bool:
        return any(self._folder.reports.glob("*-exit.json.*"))


class Sender:
    """Ships in a thread of its own. `finish()` is called when no process writes any more and the exit report is in."""

    def __init__(self, folder: NodeFolder, server: Server, *, keep_file: Callable[[str, str], None]) -> None:
        self._server, self._keep_file = server, keep_file
        self._journal = Journal(folder)
        self._shipper = Shipper(folder.spool, self._post)
        self._kept: set[tuple[str, int]] = set()
        self._log = logging.getLogger("trackbed.sender")
        self._stop, self._final, self._kick = threading.Event(), threading.Event(), threading.Event()
        self._shipped, self._beats = threading.Condition(), 0
        self.done = threading.Event()
        self.backlog_bytes = 0
        self._failures, self._next_try_s = 0, 0.0
        self._token_dead_s: float | None = None
        self._stuck_s: float | None = None
        self._thread = threading.Thread(target=self._run, name="sender", daemon=True)

    @property
    def journal(self) -> Journal:
        return self._journal

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        self._final.set()
        self._kick.set()

    def ship_now(self, timeout_s: float) -> bool:
        """Ship what lies there without waiting for the next beat; False where it did not all arrive in that time."""
        deadline_s = time.monotonic() + timeout_s
        with self._shipped:
            asked = self._beats + 2  # the beat that runs now may have looked already
            while time.monotonic() < deadline_s and not self._stop.is_set():
                self._kick.set()
                self._shipped.wait(0.05)
                if self._beats >= asked and (self.backlog_bytes == 0 or self._shipper.last_error is not None):
                    break
        return self.backlog_bytes == 0

    def stop(self) -> None:
        """Leave everything where it is; a later process goes on."""
        self._stop.set()
        self._thread.join(15.0)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                if self._beat(final=self._final.is_set()):
                    break
            except Exception:  # a full disk, say: nothing is lost, and the next beat tries again
                self._log.exception("sending was interrupted")
            with self._shipped:
                self._beats += 1
                self._shipped.notify_all()
            self._stop.wait(_LAST_BEAT_S) if self._final.is_set() else self._kick.wait(_BEAT_S)
            self._kick.clear()
        self._server.close()

    def _beat(self, *, final: bool) -> bool:
        """Ship and report once; True when the last word is answered."""
        self.backlog_bytes = self._shipper.ship_once(final=final)
        if time.monotonic() >= self._next_try_s:
            self._send_reports(final=final)
        if final and self._journal.exit_answered():
            self.done.set()
        return self.done.is_set()

    def _post(self, batch: bytes) -> FramesReceipt:
        for frame in frames.decode(batch).frames:
            if frame.header.kind == frames.FILE and (frame.header.client, frame.header.seq) not in self._kept:
                try:
                    said = frames.decode_document(frame.body)
                    if "digest" not in said:  # else it is in the store: a file of a child run
                        self._keep_file(str(said.get("path", "")), str(said.get("kind", "")))
                except (ValueError, OSError, TrackbedError) as fault:
                    self._log.warning("a saved file was not kept yet: %s", fault)  # it still lies there at the end
                self._kept.add((frame.header.client, frame.header.seq))
        return self._server.frames(batch)

    def _send_reports(self, *, final: bool) -> None:
        while (path := self._journal.next()) is not None:
            kind = path.stem.partition("-")[2]
            if self._shipper.last_error is not None and not self._stuck(final):
                return  # frames first: what a report stands on must be there
            if kind == "exit" and not (final and (self.backlog_bytes == 0 or self._stuck(final))):
                return
            try:
                answered = self._send(path, kind)
            except Exception as fault:  # away, or garbage: kept and tried again
                self._failures += 1
                pause_s = min(_PAUSE_S[0] * 2 ** min(self._failures - 1, 8), _PAUSE_S[1])
                self._next_try_s = time.monotonic() + pause_s
                if self._failures == 1:
                    self._log.warning("%s was not taken: %s", path.name, str(fault) or type(fault).__name__)
                return
            self._failures = 0
            replace(path.with_name(f"{path.name}.{answered}"), b"", durable=True)

    def _send(self, path: Path, kind: str) -> str:
        """Return `sent` or `refused`; raise for everything that another try may mend."""
        answer = self._server.post(kind, path.read_bytes(), timeout_s=60.0)
        if kind == "checkpoints" and answer.is_success:
            msgspec.json.decode(answer.content, type=CheckpointView)
            return "sent"
        if kind != "checkpoints" and answer.status_code == 204:
            return "sent"
        code = problem_code(answer)
        if code and answer.status_code == 409:
            self._log.warning("%s came too late: %s", path.name, code)
            return "refused"
        if code and answer.status_code in (400, 404, 413, 422) and kind != "exit":
            self._log.error("%s was refused: %s", path.name, code)
            return "refused"
        if code and answer.status_code in (401, 403, 404) and kind == "exit" and self._token_is_dead():
            return "refused"
        raise httpx.HTTPStatusError(f"answer {answer.status_code} {code}", request=answer.request, response=answer)

    def _token_is_dead(self) -> bool:
        now_s = time.monotonic()
        if self._token_dead_s is None:
            self._token_dead_s = now_s
        return now_s - self._token_dead_s >= _TOKEN_DEAD_S

    def _stuck(self, final: bool) -> bool:
        """Whether frames have been refused for so long that the exit must not wait for them."""
        error = self._shipper.last_error
        if not final or error is None or isinstance(error, httpx.TransportError):
            self._stuck_s = None
            return False
        now_s = time.monotonic()
        if self._stuck_s is None:
            self._stuck_s = now_s
        return now_s - self._stuck_s >= _STUCK_S
