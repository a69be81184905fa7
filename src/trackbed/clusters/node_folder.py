"""The folder of one attempt on one node: what the engine writes, what the supervisor leaves. Page: `docs/explanation/attempt.md`.

assignment.json   what to do (0600: it holds the attempt token)
supervisor.json   who does it: pid, start time, boot id
supervisor.lock   held by a living supervisor or salvager; two never work on one folder
state.json        how far it is: phase, ranks with pid and start time, exit
reports/          NNN-<kind>.json, the journal of reports to the server; `.sent` or `.refused` when answered
work/ data/ output/ checkpoints/ scratch/
control/          params.json, stop.json, asked/, verdict.json, spool/
logs/             supervisor.log
"""

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from trackbed.clusters.processes import ProcessId, boot_id
from trackbed.wire.attempts import Assignment, RankReport

T = TypeVar("T")


class RankState(RankReport, kw_only=True, omit_defaults=True):
    """A rank as the folder remembers it; pid and start time let a salvager find what is left."""

    start: int = 0
    ended_us: int = 0
    ours: bool = False  # the signal that ended it was sent by the supervisor

    def report(self) -> RankReport:
        return RankReport(rank=self.rank, pid=self.pid, state=self.state, exit_code=self.exit_code, signal=self.signal)


class AttemptFacts(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`state.json`. `phase`: starting | running | saving | ended; `order` is the kind of the order being carried out."""

    phase: str = "starting"
    boot_id: str = ""  # of the supervisor that started the ranks
    ranks: list[RankState] = []
    started_us: int = 0  # first rank
    ended_us: int = 0  # last rank
    order: str = ""
    verdict_at: int | None = None
    complete: dict[str, str] = {}  # checkpoint entry → signature, of those that were seen complete
    reported: dict[str, str] = {}  # the same, of those whose report is in the journal
    end: dict[str, Any] = {}  # {cause, evidence} once the ranks have ended: a salvager does not guess again
    finished: bool = False  # the exit report is answered: nothing is left to do


class SupervisorId(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`supervisor.json`."""

    pid: int
    pid_start: int
    boot_id: str = ""
    started_us: int = 0
    salvager: bool = False

    def alive(self) -> bool:
        return self.boot_id == boot_id() and ProcessId(self.pid, self.pid_start).alive()


class NodeFolder:
    """Paths and small files of an attempt's folder. Files are replaced whole: a reader never sees half of one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.work, self.data, self.output = root / "work", root / "data", root / "output"
        self.checkpoints, self.scratch = root / "checkpoints", root / "scratch"
        self.control, self.logs, self.reports = root / "control", root / "logs", root / "reports"
        self.spool, self.asked = self.control / "spool", self.control / "asked"

    @property
    def cache(self) -> Path:
        """Trees that attempts of this node share."""
        return self.root.parent.parent / "cache"

    def make(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path in (
            self.work, self.data, self.output, self.checkpoints, self.scratch, self.logs, self.reports, self.spool, self.asked,
        ):  # fmt: skip
            with suppress(FileExistsError, NotADirectoryError):  # what a program put in its place
                path.mkdir(parents=True, exist_ok=True)

    def write_assignment(self, assignment: Assignment) -> None:
        replace(self.root / "assignment.json", msgspec.json.encode(assignment), mode=0o600, durable=True)

    def assignment(self) -> Assignment:
        return msgspec.json.decode((self.root / "assignment.json").read_bytes(), type=Assignment)

    def write_supervisor(self, who: SupervisorId) -> None:
        replace(self.root / "supervisor.json", msgspec.json.encode(who))

    def supervisor(self) -> SupervisorId | None:
        return _read(self.root / "supervisor.json", SupervisorId)

    def write_state(self, facts: AttemptFacts) -> None:
        replace(self.root / "state.json", msgspec.json.encode(facts))

    def state(self) -> AttemptFacts | None:
        return _read(self.root / "state.json", AttemptFacts)

    def locked(self) -> bool:
        """Whether a living supervisor or salvager works on this folder."""
        path = self.root / "supervisor.lock"
        if not path.exists():
            return False
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

    def unsent(self) -> list[str]:
        """Names of reports that the server has not answered, in their order; the exit last, whatever was added after it."""
        if not self.reports.is_dir():
            return []
        names = {path.name for path in self.reports.iterdir()}
        waiting = [name for name in names if name.endswith(".json") and report_number(name)]
        left = [name for name in waiting if not {f"{name}.sent", f"{name}.refused"} & names]
        return sorted(left, key=lambda name: (name.endswith("-exit.json"), report_number(name)))


def report_number(name: str) -> int:
    """`1000-exit.json` → 1000; 0 for what is no report."""
    number = name.partition("-")[0]
    return int(number) if number.isdecimal() else 0


@contextmanager
def hold(path: Path) -> Generator[None]:
    """Hold an exclusive lock on a file, waiting for it. Lost with the process."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def take(path: Path, *, patience_s: float = 1.0) -> Any:
    """Take an exclusive lock for as long as the returned file stays open; None when another process holds it.

    Patient, because whoever only looks (`NodeFolder.locked`) holds it for an instant.
    """
    file, deadline = path.open("ab"), time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            if time.monotonic() > deadline:
                file.close()
                return None
            time.sleep(0.02)


def replace(path: Path, raw: bytes, *, mode: int = 0o644, durable: bool = False) -> None:
    """Put bytes under a name, all or nothing; on the disk when this returns if `durable`."""
    staged = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    handle = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(raw)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    staged.replace(path)
    if durable:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError):
        return None
