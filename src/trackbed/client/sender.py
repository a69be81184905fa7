"""The one who speaks to the server: ships spool files, keeps what was acknowledged, outlives server and trainer.

In a job the supervisor owns a `Shipper`. Outside, `python -m trackbed.client.sender FOLDER` is a process of its own that
`trackbed.init` starts; it makes the run, ships, and ends when the trainer is gone and everything is acknowledged.
"""

import fcntl
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import httpx
import msgspec
import psutil
from blake3 import blake3

from trackbed.client import outside
from trackbed.client.config import Login, need
from trackbed.client.connection import Connection
from trackbed.client.outside import Begin, Known, OutsideFolder
from trackbed.client.spool import Writer, spool_files
from trackbed.formats import spool as frames
from trackbed.formats.spool import Frame
from trackbed.wire.data import HasReply, HasRequest
from trackbed.wire.runs import OutsideRunRequest, RunView
from trackbed.wire.series import FramesReceipt

FRAMES_TYPE = "application/x-trackbed-frames"
BYTES_TYPE = "application/octet-stream"
BATCH_BYTES = 2**20
READ_BYTES = 4 * 2**20
PAUSE_S = (0.1, 5.0)  # between tries after a failure: first and longest
BEAT_S = 0.5  # between two batches of a trainer that lives
OFFLINE_S = 30.0  # a sender whose trainer is gone and whose server does not answer gives up after this long

log = logging.getLogger("trackbed.sender")
Post = Callable[[bytes], FramesReceipt]


class Refused(NamedTuple):
    """Why an item was not kept, as the receipt said."""

    item: str
    code: str


class Shipper:
    """Ships every spool file of a folder in order, a batch at a time; `<file>.ack` remembers what the server keeps.

    One thread uses it. A lost `.ack` costs a second trip, never a double: the server knows each client's last sequence.
    """

    def __init__(self, folder: Path, post: Post, *, batch_bytes: int = BATCH_BYTES) -> None:
        self._folder, self._post, self._batch_bytes = folder, post, batch_bytes
        self._tails: dict[Path, _Tail] = {}
        self._failures = 0
        self._next_try_s = 0.0
        self.refused: list[Refused] = []
        self.last_error: Exception | None = None

    def ship_once(self, *, final: bool = False, force: bool = False) -> int:
        """Ship what lies there, and return how many bytes still wait for an acknowledgement.

        Raises nothing of the network's: after a failure further calls do nothing until a pause is over, `force` aside.
        `final` says that no process writes any more, so an unfinished frame at the end is a torn tail.
        """
        self._find()
        if force or time.monotonic() >= self._next_try_s:
            try:
                for tail in list(self._tails.values()):
                    self._ship(tail, final=final)
                self._failures, self.last_error = 0, None
            except Exception as broken:
                self._failures += 1
                self.last_error = broken
                self._next_try_s = time.monotonic() + min(PAUSE_S[0] * 2 ** min(self._failures - 1, 10), PAUSE_S[1])
        return self.backlog_bytes(final=final)

    def ship_file(self, path: Path) -> None:
        """Ship what lies in one file now; raises what goes wrong. Also from inside `post`, for what must come before."""
        self._find()
        self._ship(self._tails[path], final=False)

    def drain(self, *, timeout_s: float) -> int:
        """Ship until nothing waits or the time is over; return the bytes that still wait. No process writes any more."""
        deadline = time.monotonic() + timeout_s
        left = self.ship_once(final=True, force=True)
        while left and time.monotonic() < deadline:
            time.sleep(0.05)
            left = self.ship_once(final=True)
        return left

    def backlog_bytes(self, *, final: bool = False) -> int:
        """Bytes in the files that the server has not acknowledged."""
        self._find()
        return sum(tail.left() for tail in self._tails.values())

    @property
    def lost_bytes(self) -> int:
        """Bytes that belonged to no whole frame: torn tails and damage."""
        return sum(tail.lost for tail in self._tails.values())

    def _find(self) -> None:
        there = spool_files(self._folder)
        for path in [path for path in self._tails if path not in there]:
            log.warning("%s was removed with %d bytes that were not sent", path.name, self._tails.pop(path).unsent)
        for path in there:
            if path not in self._tails:
                self._tails[path] = _Tail(path)

    def _ship(self, tail: "_Tail", *, final: bool) -> None:
        while True:
            batch, used, lost = tail.next(self._batch_bytes, final=final)
            if batch:
                self._send(batch)
            if used == 0:
                return
            tail.acknowledge(used, lost, batch[-1].header.seq if batch else None)

    def _send(self, batch: list[Frame]) -> None:
        receipt = self._post(b"".join(frame.raw for frame in batch))
        last = batch[-1].header
        if receipt.watermarks.get(last.client, 0) < last.seq:
            raise ValueError(f"the answer does not acknowledge frame {last.seq} of {last.client}")
        for item in receipt.rejected:
            self.refused.append(Refused(item.item, item.code))
            log.warning("the server did not keep %s: %s", item.item or f"frame {item.sequence}", item.code)


class _Ack(msgspec.Struct):
    offset: int = 0
    seq: int = 0
    lost: int = 0


class _Tail:
    """One spool file and how far the server has it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ack_path = path.with_name(path.name + ".ack")
        self._ack = self._read_ack()
        self._window = READ_BYTES
        self.unsent = 0  # when it was last looked at

    @property
    def lost(self) -> int:
        return self._ack.lost

    def left(self) -> int:
        self.unsent = max(self.path.stat().st_size - self._ack.offset, 0)
        return self.unsent

    def next(self, batch_bytes: int, *, final: bool) -> tuple[list[Frame], int, int]:
        """Return frames of at most `batch_bytes` (or one), the bytes that they take in the file, and those lost."""
        while True:
            with self.path.open("rb") as file:
                file.seek(self._ack.offset)
                data = file.read(self._window)
            whole_file = len(data) < self._window
            found = frames.decode(data, final=final and whole_file)
            if found.frames or found.used or whole_file:
                self._window = READ_BYTES
                break
            self._window *= 2  # one frame larger than the window
        batch: list[Frame] = []
        size = 0
        for frame in found.frames:
            if batch and size + len(frame.raw) > batch_bytes:
                break
            batch.append(frame)
            size += len(frame.raw)
        if len(batch) == len(found.frames):
            return batch, found.used, found.lost
        end = data.index(batch[-1].raw) + len(batch[-1].raw) if found.lost else size
        return batch, end, end - size

    def acknowledge(self, used: int, lost: int, seq: int | None) -> None:
        self._ack = _Ack(self._ack.offset + used, seq or self._ack.seq, self._ack.lost + lost)
        if lost:
            log.warning("skipped %d bytes of %s that belong to no whole frame", lost, self.path.name)
        part = self._ack_path.with_name(self._ack_path.name + ".part")
        part.write_bytes(msgspec.json.encode(self._ack))
        part.replace(self._ack_path)

    def _read_ack(self) -> _Ack:
        try:
            ack = msgspec.json.decode(self._ack_path.read_bytes(), type=_Ack)
        except (OSError, msgspec.MsgspecError):
            return _Ack()
        return ack if ack.offset <= self.path.stat().st_size else _Ack()


class Link:
    """One server as the sender sees it: makes outside runs, takes frames and files. Tries once; patience is the Shipper's."""

    def __init__(self, login: Login, *, transport: httpx.BaseTransport | None = None) -> None:
        self._server = Connection(login, patience_s=0.0, transport=transport)

    def create(self, begin: Begin) -> Known:
        """Make the run of `begin.key`, or find the one that was made before."""
        request = OutsideRunRequest(
            project=begin.project or "demo",
            name=begin.name,
            tags=begin.tags,
            key=begin.key,
            started_us=begin.started_us,
        )
        view = self._server.post("/api/v1/outside-runs", RunView, request, key=begin.key)
        return Known(run_id=view.id, ref=view.ref, url=f"{self._server.url}/runs/{view.id}")

    def frames(self, run_id: str, batch: bytes) -> FramesReceipt:
        path = f"/api/v1/runs/{run_id}/frames"
        return self._server.decode(
            self._server.send("POST", path, content=batch, content_type=FRAMES_TYPE), FramesReceipt
        )

    def put_file(self, path: Path) -> tuple[str, int]:
        """Store a file's bytes and return their digest and size."""
        digest = file_digest(path)
        asked = HasRequest(file_digests=[digest])
        if digest in self._server.post("/api/v1/blobs/has", HasReply, asked).missing:
            with path.open("rb") as file:
                self._server.send("PUT", f"/api/v1/blobs/{digest}", content=file, content_type=BYTES_TYPE, repeat=False)
        return digest, path.stat().st_size

    def close(self) -> None:
        self._server.close()


def file_digest(path: Path) -> str:
    """Return the BLAKE3 of a file's bytes."""
    hasher = blake3()
    with path.open("rb") as file:
        while block := file.read(2**20):
            hasher.update(block)
    return hasher.hexdigest()


class Sending:
    """Sends one outside folder: makes its run when the server answers, then ships frames and saved files."""

    def __init__(self, folder: OutsideFolder, link: Link) -> None:
        self._folder, self._link = folder, link
        self._known = folder.known
        self._files: Writer | None = None
        self.finished = False  # the trainer's last frame is acknowledged: it logs no more
        self.shipper = Shipper(folder.path, self._post)

    def step(self, *, final: bool = False, force: bool = False) -> int:
        """Ship once and return the bytes that still wait; notes beside the spool whether the server answers."""
        left = self.shipper.ship_once(final=final, force=force)
        if left == 0 and self._known is None:
            left = 1  # nothing logged yet: the run itself is to be made
            self._make()
        broken = self.shipper.last_error
        self._folder.set_offline(str(broken) or type(broken).__name__ if broken else "")
        return left

    def close(self) -> None:
        if self._files is not None:
            self._files.close()

    def _make(self) -> None:
        try:
            self._run()
        except Exception as broken:
            self.shipper.last_error = broken

    def _run(self) -> Known:
        if self._known is None:
            self._known = self._link.create(self._folder.begin)
            self._folder.write_known(self._known)
        return self._known

    def _post(self, batch: bytes) -> FramesReceipt:
        known = self._run()
        said = frames.decode(batch).frames
        uploaded = [self._upload(frame, known) for frame in said if frame.header.kind == frames.FILE]
        if any(uploaded) and self._files is not None:
            self.shipper.ship_file(self._files.path)  # before the batch, which may end the run
        receipt = self._link.frames(known.run_id, batch)
        self.finished |= any(frame.header.kind == frames.FINISH for frame in said)
        return receipt

    def _upload(self, frame: Frame, known: Known) -> bool:
        """Store the file that a frame names, and say its digest in a frame of our own; False where there is none."""
        named = frames.decode_document(frame.body)
        path = self._folder.output / str(named.get("path", ""))
        if "digest" in named or not path.is_file() or not path.resolve().is_relative_to(self._folder.output.resolve()):
            return False
        digest, size = self._link.put_file(path)
        if self._files is None:
            self._files = Writer(self._folder.path, run=known.run_id)
        self._files.append(frames.FILE, frames.encode_document({**named, "digest": digest, "size": size}))
        return True


def sync(root: Path | None = None, *, login: Login, timeout_s: float = 60.0) -> list[tuple[Known | None, int]]:
    """Ship the folders of outside runs below `root` (default: all of this machine).

    Returns the run and the bytes still waiting, for each folder that was not done; folders that another sender is busy
    with are left to it.
    """
    results: list[tuple[Known | None, int]] = []
    link = Link(login)
    try:
        for folder in outside.folders(root or outside.spool_home()):
            if folder.done:
                continue
            with _Claim(folder) as claimed:
                if claimed:
                    results.append(_drain(folder, link, timeout_s=timeout_s))
    finally:
        link.close()
    return results


def _drain(folder: OutsideFolder, link: Link, *, timeout_s: float) -> tuple[Known | None, int]:
    sending = Sending(folder, link)
    final = not _runs(_trainer(folder))
    deadline = time.monotonic() + timeout_s
    left = sending.step(final=final, force=True)
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        left = sending.step(final=final)
    sending.close()
    if left == 0 and (final or sending.finished):
        folder.set_done()
    return folder.known, left


class _Claim:
    """The right to send a folder: one process at a time."""

    def __init__(self, folder: OutsideFolder) -> None:
        self._path = folder.path / ".sender.lock"
        self._file = -1

    def __enter__(self) -> bool:
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def __exit__(self, *_: object) -> None:
        os.close(self._file)


def follow(folder: OutsideFolder, login: Login) -> None:
    """Send a folder until its trainer is gone and everything is acknowledged, or the server stays away.

    What could not be sent stays; `trackbed sync` sends it later.
    """
    trainer = _trainer(folder)
    link = Link(login)
    sending = Sending(folder, link)
    gone_s: float | None = None
    with _Claim(folder) as claimed:
        while claimed:
            final = gone_s is not None
            left = sending.step(final=final)
            if left == 0 and (final or sending.finished):
                folder.set_done()
                break
            if gone_s is None and not _runs(trainer):
                gone_s = time.monotonic()
                continue
            if gone_s is not None and sending.shipper.last_error and time.monotonic() - gone_s > OFFLINE_S:
                break
            _pause(trainer)
    sending.close()
    link.close()


def _pause(trainer: psutil.Process | None) -> None:
    """Wait until it is worth sending again: a batch a beat, sooner when the trainer is gone."""
    deadline = time.monotonic() + BEAT_S
    time.sleep(0.1)
    while time.monotonic() < deadline and _runs(trainer):
        time.sleep(0.1)


def _trainer(folder: OutsideFolder) -> psutil.Process | None:
    """Return the process that logs into the folder; None where it is gone and its number perhaps another's."""
    begin = folder.begin
    try:
        process = psutil.Process(begin.pid)
        return process if process.create_time() * 1e6 <= begin.started_us + 1e6 else None
    except psutil.Error:
        return None


def _runs(process: psutil.Process | None) -> bool:
    """Whether it is the same process, not one that has its number now, nor one that only waits to be reaped."""
    try:
        return process is not None and process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def main(argv: list[str]) -> int:
    """`python -m trackbed.client.sender FOLDER`, with TRACKBED_URL and TRACKBED_TOKEN in the environment."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # Ctrl-C in the terminal is for the trainer
    follow(OutsideFolder(Path(argv[0])), need())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
