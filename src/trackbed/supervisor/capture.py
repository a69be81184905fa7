"""Output of the ranks, kept byte by byte: lines end at a newline, carriage returns and broken UTF-8 stay in them.

One thread reads all pipes, so that a rank never waits for a slow disk longer than its pipe is deep.
"""

import contextlib
import os
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from trackbed.formats.spool import Line

MAX_LINE_BYTES = 4 * 2**20  # a longer line is continued in the next one
TAIL_LINES = 50
TAIL_LINE_BYTES = 4096
REDRAWN_S = 2.0  # a progress bar that never ends its line is shown this often
_FLUSH_S = 0.05
_FLUSH_BYTES = 256 * 1024
_HELD_BYTES = 64 * 2**20  # kept in memory while the spool cannot be written (disk full)


class Splitter:
    """Cuts one stream into lines. Pure: bytes and times come in."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._since_s = 0.0

    def feed(self, chunk: bytes, now_s: float) -> list[bytes]:
        """Return the lines that `chunk` completes, without their newline."""
        if not self._rest:
            self._since_s = now_s
        head, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            self._rest += chunk
            return self._overlong()
        lines = bytes(self._rest + head).split(b"\n")
        self._rest, self._since_s = bytearray(tail), now_s
        cut = [piece for line in lines for piece in _pieces(line)]
        return cut + self._overlong()

    def redrawn(self, now_s: float) -> list[bytes]:
        """Return what a progress bar has overwritten, up to its last carriage return, if it waits long enough."""
        if not self._rest or now_s - self._since_s < REDRAWN_S:
            return []
        end = self._rest.rfind(b"\r", 0, len(self._rest) - 1)
        if end < 0:
            return []
        line = bytes(self._rest[: end + 1])
        del self._rest[: end + 1]
        self._since_s = now_s
        return [line]

    def end(self) -> list[bytes]:
        """Return the last line, which no newline ended."""
        line, self._rest = bytes(self._rest), bytearray()
        return [line] if line else []

    def _overlong(self) -> list[bytes]:
        lines: list[bytes] = []
        while len(self._rest) > MAX_LINE_BYTES:
            lines.append(bytes(self._rest[:MAX_LINE_BYTES]))
            del self._rest[:MAX_LINE_BYTES]
        return lines


def _pieces(line: bytes) -> list[bytes]:
    return [line[at : at + MAX_LINE_BYTES] for at in range(0, len(line), MAX_LINE_BYTES)] or [b""]


@dataclass
class _Pipe:
    rank: int
    stream: str
    splitter: Splitter = field(default_factory=Splitter)


class Capture:
    """Reads pipes in a thread of its own and hands lines to `sink(rank, lines)`, which may raise OSError (disk full)."""

    def __init__(self, sink: Callable[[int, list[Line]], None]) -> None:
        self._sink = sink
        self._selector = selectors.DefaultSelector()
        self._pending: dict[int, list[Line]] = {}
        self._pending_bytes = 0
        self._flushed_s = 0.0
        self._tails: dict[int, deque[Line]] = {}
        self._lock = threading.Lock()
        self._ending_s: float | None = None
        self.dropped_lines = 0
        self._thread = threading.Thread(target=self._run, name="capture", daemon=True)

    def add(self, handle: int, rank: int, stream: str) -> None:
        """Read this pipe from now on; it is closed here."""
        os.set_blocking(handle, False)
        with self._lock:
            self._selector.register(handle, selectors.EVENT_READ, _Pipe(rank, stream))

    def start(self) -> None:
        self._thread.start()

    def tail(self, rank: int) -> list[Line]:
        """Return the last lines of a rank."""
        with self._lock:
            return list(self._tails.get(rank, ()))

    def close(self, *, patience_s: float = 2.0) -> None:
        """Read what is left (at most `patience_s`: a stray process may hold a pipe open) and hand it on."""
        if not self._thread.is_alive():
            return
        self._ending_s = time.monotonic() + patience_s
        self._thread.join(patience_s + 10.0)

    def _run(self) -> None:
        while self._beat():
            pass
        for key in list(self._selector.get_map().values()):
            self._forget(key.fd, key.data)
        self._flush(time.monotonic())

    def _beat(self) -> bool:
        """Read what is there; False when everything was read, or patience is over."""
        with self._lock:
            pipes = dict(self._selector.get_map())
        if not pipes and self._ending_s is not None:
            return False
        if pipes:
            for key, _ in self._selector.select(0.05):
                self._read(key.fd, key.data)
        else:
            time.sleep(0.02)
        now_s = time.monotonic()
        for key in pipes.values():
            self._keep(key.data, key.data.splitter.redrawn(now_s))
        if now_s - self._flushed_s >= _FLUSH_S or self._pending_bytes >= _FLUSH_BYTES:
            self._flush(now_s)
        return self._ending_s is None or now_s <= self._ending_s

    def _read(self, handle: int, pipe: _Pipe) -> None:
        try:
            chunk = os.read(handle, 1 << 18)
        except BlockingIOError:
            return
        if chunk:
            self._keep(pipe, pipe.splitter.feed(chunk, time.monotonic()))
        else:
            self._forget(handle, pipe)

    def _forget(self, handle: int, pipe: _Pipe) -> None:
        self._keep(pipe, pipe.splitter.end())
        with self._lock, contextlib.suppress(KeyError):
            self._selector.unregister(handle)
        os.close(handle)

    def _keep(self, pipe: _Pipe, lines: list[bytes]) -> None:
        if not lines:
            return
        now_us = time.time_ns() // 1000
        made = [Line(now_us, pipe.stream, "", line) for line in lines]
        self._pending.setdefault(pipe.rank, []).extend(made)
        self._pending_bytes += sum(len(line) for line in lines)
        with self._lock:
            self._tails.setdefault(pipe.rank, deque(maxlen=TAIL_LINES)).extend(made[-TAIL_LINES:])

    def _flush(self, now_s: float) -> None:
        self._flushed_s = now_s
        for rank, lines in list(self._pending.items()):
            try:
                self._sink(rank, lines)
            except (OSError, ValueError):
                if self._pending_bytes <= _HELD_BYTES:
                    continue  # the disk is full: tried again at the next flush
                self.dropped_lines += len(lines)  # said in the exit report
            del self._pending[rank]
        self._pending_bytes = sum(len(line.data) for lines in self._pending.values() for line in lines)


def readable(lines: list[Line]) -> list[str]:
    """Return lines for people: last state of a progress bar, broken bytes replaced, very long ones cut and said so."""
    texts: list[str] = []
    for line in lines:
        shown = line.data.rstrip(b"\r").rpartition(b"\r")[2]
        text = shown[:TAIL_LINE_BYTES].decode("utf-8", "replace")
        texts.append(f"{text}… (+{len(shown) - TAIL_LINE_BYTES} bytes)" if len(shown) > TAIL_LINE_BYTES else text)
    return texts
