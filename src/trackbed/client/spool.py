"""The append-only file that a process writes its frames to. One writer, one file, one client id.

A frame is in the file when `append` returns: it survives the death of the process at once, and a power cut once the
kernel has written it back. The sender (another process) reads from there.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from trackbed.base.entropy import new_id
from trackbed.formats import spool as frames
from trackbed.formats.spool import Header, Line, Metrics

SUFFIX = ".tbs"
LINES_BYTES_PER_FRAME = 512 * 1024


def spool_files(folder: Path) -> list[Path]:
    """Return the spool files of a folder, by name; pipes, links and folders that a program left there are none."""
    return [path for path in sorted(folder.glob(f"*{SUFFIX}")) if path.is_file() and not path.is_symlink()]


class Writer:
    """Append frames to `path`. Threads may share it; a forked child's appends do nothing (its parent owns the file).

    `path` is a file that is not there yet, or a folder: then the file is named after rank and client id in it.

    Raises:
        OSError: the file cannot be made or, from `append`, not be written (disk full); what stands in it stays whole.
    """

    def __init__(
        self, path: Path, *, run: str = "", attempt: int = 0, incarnation: int = 0, rank: int = 0, client: str = ""
    ) -> None:
        self.client = client or new_id("cli")
        self.run, self.attempt, self.incarnation, self.rank = run, attempt, incarnation, rank
        self.path = path / f"{rank}-{self.client}{SUFFIX}" if path.suffix != SUFFIX else path
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._pid = os.getpid()
        self._lock = threading.RLock()  # a signal handler may append while its own thread does:
        self._waiting: deque[tuple[str, bytes, int, int]] = deque()  # then its frame waits here
        self._writing = False
        self._seq = 0
        self._size = 0

    def append(self, kind: str, body: bytes, n: int = 1) -> None:
        """Write one frame; in a forked child, nothing."""
        if os.getpid() != self._pid:
            return
        self._waiting.append((kind, body, n, time.time_ns() // 1000))
        with self._lock:
            if self._writing:
                return  # we are a signal handler inside an append of this thread, which goes on with ours
            self._writing = True
            try:
                while self._waiting:
                    self._write(*self._waiting.popleft())
            finally:
                self._writing = False

    def metrics(self, points: Metrics) -> None:
        self.append(frames.METRICS, frames.encode_metrics(points), len(points.key))

    def lines(self, lines: Sequence[Line]) -> None:
        """Append log lines, in as many frames as their sizes ask for."""
        batch: list[Line] = []
        size = 0
        for line in lines:
            if batch and size + len(line.data) > LINES_BYTES_PER_FRAME:
                self.append(frames.LOG, frames.encode_lines(batch), len(batch))
                batch, size = [], 0
            batch.append(line)
            size += len(line.data) + 32
        if batch:
            self.append(frames.LOG, frames.encode_lines(batch), len(batch))

    def event(self, kind: str, data: dict[str, object]) -> None:
        self.append(frames.EVENT, frames.encode_document({"kind": kind, "data": data}))

    def close(self, *, sync: bool = False) -> None:
        """Close the file; `sync` waits until it is on the disk."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            if self._file >= 0:
                if sync:
                    os.fsync(self._file)
                os.close(self._file)
                self._file = -1

    def _write(self, kind: str, body: bytes, n: int, ts: int) -> None:
        if self._file < 0:
            raise ValueError(f"the spool file {self.path} is closed")
        header = Header(
            kind=kind, run=self.run, attempt=self.attempt, inc=self.incarnation, rank=self.rank,
            client=self.client, seq=self._seq + 1, ts=ts, n=n,
        )  # fmt: skip
        frame = frames.encode(header, body)
        rest = memoryview(frame)
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:
            os.ftruncate(self._file, self._size)  # no torn frame between whole ones
            raise
        self._seq += 1
        self._size += len(frame)
