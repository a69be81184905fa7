"""Between a training loop and its spool file: takes what is logged in a microsecond, writes it within 100 ms.

The caller only appends to a queue, which is atomic: no lock that a signal handler or another thread could meet. A thread
converts, packs and writes; it also reads tensors that live on a device, so that the caller never waits for one.
"""

import atexit
import os
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, SupportsFloat, cast

import msgspec

from trackbed.base import messages
from trackbed.client.spool import Writer
from trackbed.formats import spool as frames

FLUSH_S = 0.05
POINTS_PER_FRAME = 16_384
DOCUMENT_BYTES = 512 * 1024  # of params or summary entries in one frame, unless one alone is larger
KEPT_BYTES = 64 * 2**20  # of frames that the disk refuses, before the oldest is given up
_PLAIN = frozenset({float, int, bool})


class Problems:
    """What could not be recorded: counted each time, said once a kind on stderr, never raised."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def report(self, code: str, **params: object) -> None:
        self.counts[code] += 1
        if self.counts[code] == 1:
            say(code, **params)


def say(code: str, **params: object) -> None:
    """Write a sentence of the catalogue to stderr; a closed stderr is no reason to stop."""
    lang = "zh" if os.environ.get("LC_ALL", os.environ.get("LANG", "")).startswith("zh") else "en"
    try:
        sys.stderr.write(f"trackbed: {messages.render(code, params, lang)}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass


class _Points(NamedTuple):
    values: dict[str, Any]
    step: int
    ts: int


class _Document(NamedTuple):
    kind: str
    body: bytes
    n: int


class OnDevice(NamedTuple):
    """A copy of a tensor made on its stream; `wait` returns when the copy has happened."""

    tensor: Any
    wait: Callable[[], None] | None

    def read(self) -> Any:
        if self.wait is not None:
            self.wait()
        return self.tensor.item()


class Recorder:
    """One writer of one process. Every method may be called from any thread and from a signal handler."""

    def __init__(self, writer: Writer | None, problems: Problems) -> None:
        self._writer = writer
        self._problems = problems
        self._queue: deque[_Points | _Document] = deque()
        self._kept: deque[_Document] = deque()
        self._kept_bytes = 0
        self._good_names: set[str] = set()
        self._draining = threading.Lock()
        self._drainer = 0
        self._stop = threading.Event()
        self.forked = False
        self.idle: Callable[[], None] | None = None  # called about once a second by the thread
        _recorders.append(self)
        self._thread = threading.Thread(target=self._loop, name="trackbed-spool", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def points(self, values: Mapping[str, Any], step: int, ts: int) -> None:
        """Take a copy of named values. What is a number by then is recorded; the rest is reported."""
        if self._writer is None or self.forked or self._stop.is_set():
            self._refuse()
            return
        copy = dict(values)
        if not _PLAIN.issuperset(map(type, copy.values())):
            for key, value in copy.items():
                if type(value) not in _PLAIN:
                    copy[key] = _taken(value)
        self._queue.append(_Points(copy, step, ts))

    def document(self, kind: str, document: Any, n: int = 1) -> None:
        """Record a document as one frame. A value that no format knows is written as its text."""
        if self._writer is None or self.forked or self._stop.is_set():
            self._refuse()
            return
        try:
            body = _encoder.encode(document)
        except Exception as broken:
            self._problems.report("document_unwritable", kind=kind, error=repr(broken))
            return
        if len(body) > frames.MAX_BODY_BYTES:
            self._problems.report("document_too_large", kind=kind, size=len(body), limit=frames.MAX_BODY_BYTES)
            return
        self._queue.append(_Document(kind, body, n))

    def entries(self, kind: str, entries: Mapping[str, Any]) -> None:
        """Record named entries (params, summary) in as many frames as their sizes ask for."""
        batch: dict[str, msgspec.Raw] = {}
        size = 0
        for name, value in entries.items():
            if not self._name_ok(name):
                continue
            try:
                packed = _encoder.encode(value)
            except OverflowError:  # a whole number that 64 bits do not hold: its digits are kept as text
                packed = _encoder.encode(digits_as_text(value))
                self._problems.report("value_as_text", name=name)
            except Exception as broken:
                self._problems.report("value_unwritable", name=name, error=repr(broken))
                continue
            if batch and size + len(packed) > DOCUMENT_BYTES:
                self.document(kind, batch, len(batch))
                batch, size = {}, 0
            batch[name] = msgspec.Raw(packed)
            size += len(packed) + len(name)
        if batch:
            self.document(kind, batch, len(batch))

    def flush(self, *, timeout_s: float = 5.0) -> None:
        """Return when everything logged before is in the file, or the time is over."""
        me = threading.get_ident()
        if self.forked or self._drainer == me:  # a signal handler inside a flush of its own thread, which goes on
            return
        if not self._draining.acquire(timeout=timeout_s):
            return
        try:
            self._drainer = me
            self._drain()
        finally:
            self._drainer = 0
            self._draining.release()

    def close(self) -> None:
        """Write what is left and close the file; further logging is refused."""
        if self.forked or self._stop.is_set():
            return
        self._stop.set()
        self.flush()
        if self._writer is not None:
            self._writer.close()
        _recorders.remove(self)
        atexit.unregister(self.close)

    def _refuse(self) -> None:
        self._problems.report("logged_in_forked_child" if self.forked else "logged_after_finish")

    def _loop(self) -> None:
        beat = 0
        while not self._stop.wait(FLUSH_S):
            if self._queue or self._kept:
                self.flush()
            beat += 1
            if self.idle is not None and beat % 20 == 0:
                self.idle()

    def _drain(self) -> None:
        columns = frames.new_metrics()
        index: dict[str, int] = {}
        while self._queue:
            item = self._queue.popleft()
            if isinstance(item, _Points):
                self._add(columns, index, item)
                if len(columns.key) < POINTS_PER_FRAME:
                    continue
                self._keep_points(columns)
            else:
                self._keep_points(columns)
                self._keep(item)
            columns, index = frames.new_metrics(), {}
        self._keep_points(columns)
        self._write()

    def _add(self, columns: frames.Metrics, index: dict[str, int], item: _Points) -> None:
        names, key_ids, steps, stamps, values = columns
        for name, value in item.values.items():
            number = value if type(value) is float else self._number(name, value)
            if number is None:
                continue
            at = index.get(name)
            if at is None:
                if name not in self._good_names and not self._name_ok(name):
                    continue
                at = index[name] = len(names)
                names.append(name)
            key_ids.append(at)
            steps.append(item.step)
            stamps.append(item.ts)
            values.append(number)

    def _number(self, name: Any, value: Any) -> float | None:
        """Return the value as a float; None, and a report, where it is no number."""
        try:
            if isinstance(value, OnDevice):
                value = value.read()
            elif isinstance(value, Exception):
                raise value
            if type(value) not in _PLAIN and (isinstance(value, str | bytes) or not isinstance(value, SupportsFloat)):
                self._problems.report("value_no_number", name=name, type=type(value).__name__)
                return None
            number = float(value)
            if type(value) is int and int(number) != value:
                self._problems.report("value_rounded", name=name, value=value)
            return number
        except Exception as broken:
            self._problems.report("value_unreadable", name=name, error=repr(broken))
            return None

    def _name_ok(self, name: Any) -> bool:
        if isinstance(name, str) and name.isprintable() and 0 < len(name) <= frames.MAX_NAME_CHARS:
            self._good_names.add(name)
            return True
        self._problems.report("name_bad", name=repr(name)[:200], limit=frames.MAX_NAME_CHARS)
        return False

    def _keep_points(self, columns: frames.Metrics) -> None:
        if len(columns.key):
            self._keep(_Document(frames.METRICS, frames.encode_metrics(columns), len(columns.key)))

    def _keep(self, item: _Document) -> None:
        self._kept.append(item)
        self._kept_bytes += len(item.body)

    def _write(self) -> None:
        while self._writer is not None and self._kept:
            try:
                self._writer.append(*self._kept[0])
            except Exception as broken:  # a full disk may get room again: keep, within bounds
                self._problems.report("spool_unwritable", path=self._writer.path, error=repr(broken))
                while self._kept_bytes > KEPT_BYTES:
                    given_up = self._kept.popleft()
                    self._kept_bytes -= len(given_up.body)
                    self._problems.report("frames_given_up", limit=KEPT_BYTES)
                return
            self._kept_bytes -= len(self._kept.popleft().body)


def now_us() -> int:
    return time.time_ns() // 1000


def _taken(value: Any) -> Any:
    """Return what can be read later without the caller noticing: a number, or a copy on the value's own device."""
    try:
        if hasattr(value, "detach"):
            if value.device.type == "cpu":
                return value.item()
            copy = value.detach().clone()
            return OnDevice(copy, _copied(copy))
        if hasattr(value, "item"):
            # numpy's scalars are on this side; other arrays with `item` cannot be changed, so reading waits
            return value.item() if type(value).__module__ == "numpy" else OnDevice(value, None)
    except Exception as broken:
        return broken
    return value


def _copied(copy: Any) -> Callable[[], None] | None:
    """Return a wait for the copy, which was put on the current stream of its device (the thread has another)."""
    torch: Any = sys.modules.get("torch")
    backend = getattr(torch, copy.device.type, None)
    if backend is None or not hasattr(backend, "Event"):
        return None
    event = backend.Event()
    event.record(backend.current_stream(copy.device))
    return event.synchronize


def _as_document(value: Any) -> Any:
    if hasattr(value, "item") and getattr(value, "size", 1) == 1:
        return value.item()
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


def digits_as_text(value: Any) -> Any:
    """Return a document in which whole numbers that 64 bits do not hold are texts."""
    if type(value) is int:
        return value if -(2**63) <= value < 2**64 else str(value)
    if isinstance(value, dict):
        return {key: digits_as_text(inner) for key, inner in cast(dict[Any, Any], value).items()}
    if isinstance(value, list | tuple):
        return [digits_as_text(inner) for inner in cast(Sequence[Any], value)]
    return value


_encoder = msgspec.msgpack.Encoder(enc_hook=_as_document)
_recorders: list[Recorder] = []


def _forked() -> None:
    for recorder in _recorders:
        recorder.forked = True


os.register_at_fork(after_in_child=_forked)
