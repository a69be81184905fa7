"""Checkpoints of a program that never heard of us: which entries are complete, and their way to the store.

An entry directly below TRACKBED_CHECKPOINTS counts once it was renamed there, or `<entry>.done` appeared, or nothing below it
changed for 30 s, or the ranks have ended; names that begin with `.` or end in `.tmp` never. Where ranks were killed, what
they were just writing counts only if it was renamed or has its `.done`.
"""

import ctypes
import logging
import os
import re
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from trackbed.base.errors import BadInput, Conflict, NotFound, TrackbedError
from trackbed.storage.store import Store
from trackbed.wire.attempts import Assignment, CheckpointReport

QUIET_S = 30.0
MOST_STEP = 2**53 - 1  # a longer number (a date with its time and all, say) is no step
_TORN_NS = 5_000_000_000  # before a violent end: what changed later than this may be half written
_BEAT_S = 0.2
_LOOK_S = 1.0
_PATIENCE_S = 300.0  # for the last upload, while the store cannot take it
_NUMBER = re.compile(r"\d+")
_IN_MOVED_TO, _EVENT = 0x80, struct.Struct("iIII")


class Ended(StrEnum):
    """How the ranks ended: by themselves, or so that a file may be half written."""

    CLEAN = "clean"
    TORN = "torn"


@dataclass(frozen=True)
class Look:
    """What an entry is like now. Equal signatures: nothing below it changed."""

    signature: str
    newest_ns: int
    files: int
    renamed: bool  # its name is younger than its content


@dataclass(frozen=True)
class Complete:
    name: str
    step: int
    signature: str
    newest_ns: int


def look(path: Path) -> Look | None:
    """Return the state of an entry; None when it is gone (or goes while we look)."""
    try:
        top = path.lstat()
        newest, size, files = top.st_mtime_ns, 0, 0
        todo = [path] if path.is_dir() and not path.is_symlink() else []
        if not todo:
            size, files = top.st_size, 1
        while todo:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    facts = entry.stat(follow_symlinks=False)
                    newest = max(newest, facts.st_mtime_ns)
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(Path(entry.path))
                    else:
                        files, size = files + 1, size + facts.st_size
    except OSError:
        return None
    signature = f"{top.st_ino}-{files}-{size}-{newest}"
    return Look(signature, newest, files, top.st_ctime_ns > newest)


def counts(name: str) -> bool:
    """Whether an entry of this name may be a checkpoint at all. One that is not text (UTF-8) cannot be on the record."""
    text = not any("\ud800" <= letter <= "\udfff" for letter in name)
    return text and name != "latest" and not name.startswith(".") and not name.endswith((".tmp", ".done"))


def step_of(name: str, otherwise: int) -> int:
    """Return the last number in a name, file type aside (`model-200.h5` is 200)."""
    stem, dot, kind = name.rpartition(".")
    found = _NUMBER.findall(stem if dot and stem and re.search(r"[A-Za-z]", kind) else name)
    step = int(found[-1]) if found else otherwise
    return step if step <= MOST_STEP else otherwise


class Watch:
    """Decides which entries are complete. Times come in; `seen` and `reported` survive in the attempt's state."""

    def __init__(
        self, folder: Path, *, first_step: int = 0, complete: dict[str, str], reported: dict[str, str]
    ) -> None:
        self._folder, self._first_step = folder, first_step
        self.complete, self.reported = complete, reported
        self._quiet: dict[str, tuple[str, float]] = {}
        self._order: dict[str, int] = {}

    def scan(self, now_s: float, *, arrived: set[str], ended: Ended | None = None, ended_ns: int = 0) -> list[Complete]:
        """Return entries that became complete since the last scan, oldest first. `arrived` were renamed here."""
        found: list[Complete] = []
        for path in sorted(self._folder.iterdir()) if self._folder.is_dir() else ():  # a program may have removed it
            name = path.name
            seen = look(path) if counts(name) else None
            if seen is None or seen.files == 0:
                continue
            order = self._order.setdefault(name, len(self._order) + 1)
            before = self._quiet.get(name)
            if before is None or before[0] != seen.signature:
                before = self._quiet[name] = (seen.signature, now_s)
            if self.complete.get(name) == seen.signature:
                continue
            whole = name in arrived or self._has_done(name, seen)
            if (
                not whole and not self._folder.joinpath(f".{name}.parts").exists()
            ):  # with parts, only `.done` says all are in
                whole = (
                    now_s - before[1] >= QUIET_S
                    or ended is Ended.CLEAN
                    or (ended is Ended.TORN and (seen.renamed or seen.newest_ns <= ended_ns - _TORN_NS))
                )
            if whole:
                self.complete[name] = seen.signature
                found.append(Complete(name, step_of(name, self._first_step + order), seen.signature, seen.newest_ns))
        return sorted(found, key=lambda item: (item.newest_ns, item.step))

    def newest(self) -> Complete | None:
        """Return the newest complete entry that is still as it was."""
        alive: list[Complete] = []
        for name, signature in self.complete.items():
            seen = look(self._folder / name)
            if seen is not None and seen.signature == signature:
                step = step_of(name, self._first_step + self._order.get(name, 0))
                alive.append(Complete(name, step, signature, seen.newest_ns))
        return max(alive, key=lambda item: (item.newest_ns, item.step), default=None)

    def _has_done(self, name: str, seen: Look) -> bool:
        try:
            return self._folder.joinpath(f"{name}.done").stat().st_mtime_ns >= seen.newest_ns
        except OSError:
            return False


class Arrivals:
    """Names that were renamed into a folder, as the kernel tells; nothing where it cannot (then 30 s of quiet decide)."""

    def __init__(self, folder: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._handle = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._handle >= 0 and libc.inotify_add_watch(self._handle, os.fsencode(folder), _IN_MOVED_TO) < 0:
            os.close(self._handle)
            self._handle = -1

    def take(self) -> set[str]:
        names: set[str] = set()
        while self._handle >= 0:
            try:
                raw = os.read(self._handle, 1 << 16)
            except BlockingIOError:
                break
            at = 0
            while at < len(raw):
                length = _EVENT.unpack_from(raw, at)[3]
                at += _EVENT.size
                names.add(os.fsdecode(raw[at : at + length].rstrip(b"\0")))
                at += length
        return names

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


class Saver:
    """Watches and uploads in a thread of its own; `finish` does the last round in the caller's."""

    def __init__(
        self,
        assignment: Assignment,
        watch: Watch,
        folder: Path,
        *,
        store: Callable[[], Store],
        report: Callable[[CheckpointReport], None],
        changed: Callable[[], None],
    ) -> None:
        self._assignment, self._watch, self._folder = assignment, watch, folder
        self._store, self._report, self._changed = store, report, changed
        self._arrivals = Arrivals(folder)
        self._stop = threading.Event()
        self._count = 0
        self._queue: list[Complete] = []
        self._looked_s, self._retry_s, self._pause_s = 0.0, 0.0, 1.0
        self._log = logging.getLogger("trackbed.saving")
        self._thread = threading.Thread(target=self._run, name="saving", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self, ended: Ended, ended_us: int) -> str:
        """Upload what is due and the newest complete one; return the code of what kept it from the store, or nothing."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._take(
            self._watch.scan(time.monotonic(), arrived=self._arrivals.take(), ended=ended, ended_ns=ended_us * 1000)
        )
        self._arrivals.close()
        newest = self._watch.newest()
        if newest is not None and newest not in self._queue:
            self._queue.append(newest)
        deadline, code, pause_s = time.monotonic() + _PATIENCE_S, "", 0.5
        while self._queue:
            code = self._upload(self._queue[0])
            if not code:
                self._queue.pop(0)
                continue
            if time.monotonic() > deadline:
                return code
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, 20.0)
        return ""

    def _run(self) -> None:
        while not self._stop.wait(_BEAT_S):
            try:
                self._beat(time.monotonic())
            except Exception:  # a folder that a program removed, say: looked at again
                self._log.exception("the look at checkpoints was interrupted")

    def _beat(self, now_s: float) -> None:
        arrived = self._arrivals.take()
        if arrived or now_s - self._looked_s >= _LOOK_S:
            self._looked_s = now_s
            self._take(self._watch.scan(now_s, arrived=arrived))
        if not self._queue or now_s < self._retry_s:
            return
        if self._upload(self._queue[0]):
            self._retry_s = time.monotonic() + self._pause_s
            self._pause_s = min(self._pause_s * 2, 60.0)
        else:
            self._queue.pop(0)
            self._pause_s = 1.0

    def _take(self, found: list[Complete]) -> None:
        """Queue every n-th by the policy; the others stay on the node."""
        for item in found:
            self._count += 1
            if self._count % max(1, self._assignment.checkpoint.upload_every) == 0:
                self._queue.append(item)
        if found:
            self._changed()

    def _upload(self, item: Complete) -> str:
        """Put one into the store and report it. Returns the code of a failure that another try may mend."""
        path = self._folder / item.name
        before = look(path)
        if (
            before is None
            or before.signature != item.signature
            or self._watch.reported.get(item.name) == item.signature
        ):
            return ""  # pruned or written anew meanwhile (then it is seen again), or done already
        try:
            info = self._store().put_tree(path, owner=self._assignment.run_id)
        except (NotFound, Conflict, BadInput) as fault:
            self._log.warning("checkpoint %s was not kept: %s", item.name, fault)
            return ""
        except (TrackbedError, OSError) as fault:
            self._log.warning("checkpoint %s cannot be kept yet: %s", item.name, fault)
            return fault.code if isinstance(fault, TrackbedError) else "storage"
        after = look(path)
        if after is not None and after.signature != item.signature:
            self._log.warning("checkpoint %s changed while it was read; it is looked at again", item.name)
            return ""
        stage = self._assignment.stage
        self._report(
            CheckpointReport(
                epoch=self._assignment.epoch, name=item.name, step=item.step, digest=info.digest,
                size_bytes=info.size_bytes, stage=stage.name if stage is not None else "",
                created_us=item.newest_ns // 1000,
            )
        )  # fmt: skip
        self._watch.reported[item.name] = item.signature
        self._changed()
        return ""
