"""What every part of the supervisor shares about its attempt: folder, state on disk, voices to the server."""

import contextlib
import logging
import threading
import time
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from trackbed.client.spool import Writer
from trackbed.clusters import NodeFolder
from trackbed.clusters.node_folder import AttemptFacts
from trackbed.clusters.processes import boot_id
from trackbed.formats.spool import Line, Metrics
from trackbed.supervisor.grant import Door
from trackbed.supervisor.lease import Lease, Server
from trackbed.supervisor.prepare import Preparation
from trackbed.supervisor.sender import Sender
from trackbed.supervisor.stopping import Stopping
from trackbed.wire.attempts import LeaseRequest, NodeSlot, OutputEntry, OutputsReport
from trackbed.wire.surroundings import EnvironmentFound

_Phase = Literal["starting", "running", "saving", "ended"]


class Facts:
    """`state.json`, changed by several threads, whole on disk after each change."""

    def __init__(self, folder: NodeFolder, value: AttemptFacts) -> None:
        self._folder, self.value = folder, value
        self._lock = threading.Lock()

    def change(self, **fields: Any) -> None:
        with self._lock:
            self.value = msgspec.structs.replace(self.value, **fields)
            try:
                self._folder.write_state(self.value)
            except OSError as fault:  # a full disk must not end the run
                logging.getLogger("trackbed.supervisor").warning("state.json was not written: %s", fault)


class Attempt:
    """One attempt on one node. `salvaged`: its supervisor is dead, and somebody else does the last work."""

    def __init__(self, root: Path, *, salvaged: bool = False) -> None:
        self.folder = NodeFolder(root)
        self.given = self.folder.assignment()
        self.salvaged = salvaged
        self.log = logging.getLogger("trackbed.supervisor")
        self.facts = Facts(self.folder, self.folder.state() or AttemptFacts())
        self.preparation = Preparation(self.given, self.folder, Door(self.given, self.folder.cache / "index"))
        self.stopping = Stopping(self.folder)
        self.sender = Sender(self.folder, Server(self.given), keep_file=self._keep_file)
        self.lease = Lease(Server(self.given), self._lease_request, heartbeat_s=self.given.lease.heartbeat_s)
        self.order_seen = ""
        self._found: tuple[EnvironmentFound, float] | None = None  # and since when it is to be told
        self._writers: dict[int, Writer] = {}
        self._writers_lock = threading.Lock()

    @property
    def slot(self) -> NodeSlot:
        """The cards of this node."""
        return self.given.nodes[self.given.node_rank] if self.given.nodes else NodeSlot(node="local")

    def say(self, text: str) -> None:
        """A line of ours, in our log and in the run's (stream `trackbed`)."""
        self.log.info("%s", text)
        with contextlib.suppress(OSError):  # a full disk must not end the run
            self.write_lines(self.given.node_rank, [Line(now_us(), "trackbed", "info", text.encode())])

    def write_lines(self, rank: int, lines: list[Line]) -> None:
        """Put lines of a rank into the spool; OSError when the disk is full."""
        self._writer(rank).lines(lines)

    def write_metrics(self, points: Metrics) -> None:
        self._writer(self.given.node_rank).metrics(points)

    def note(self, kind: str, data: dict[str, object]) -> None:
        """Put an event of ours on the record."""
        self._writer(self.given.node_rank).event(kind, data)

    def close_writers(self) -> None:
        with self._writers_lock:
            for writer in self._writers.values():
                writer.close()

    def keep_blob(self, path: Path) -> tuple[str, int]:
        """Put a file into the store; return its digest and size."""
        digest, size = self.preparation.store.put_blob(path)
        return str(digest), size

    def _writer(self, rank: int) -> Writer:
        with self._writers_lock:
            if rank not in self._writers:
                number = sum(1 for _ in self.folder.spool.glob(f"supervisor-{rank}-*.tbs"))
                self._writers[rank] = Writer(
                    self.folder.spool / f"supervisor-{rank}-{number}.tbs",
                    run=self.given.run_id, attempt=self.given.number, rank=rank,
                )  # fmt: skip
            return self._writers[rank]

    def _keep_file(self, path: str, kind: str) -> None:
        """Archive a file that the program saved on the way (called by the sender before it ships that news)."""
        place = self.folder.output / path
        if not place.is_file() or not place.resolve().is_relative_to(self.folder.output.resolve()):
            return
        digest, size = self.preparation.store.put_blob(place)
        entry = OutputEntry(path=path, size_bytes=size, file_digest=digest, kind=kind or "other")
        self.sender.journal.add(OutputsReport(epoch=self.given.epoch, entries=[entry], partial=True))

    def tell_found(self, found: EnvironmentFound) -> None:
        """Tell the server of the environment of this node, with each request until one is answered."""
        self._found = found, time.monotonic()

    def _lease_request(self) -> LeaseRequest:
        facts = self.facts.value
        found = self._found
        untold = found is not None and self.lease.renewed_s < found[1]
        return LeaseRequest(
            epoch=self.given.epoch, node=self.slot.node, node_rank=self.given.node_rank, boot_id=boot_id(),
            phase=cast(_Phase, facts.phase), ranks=[rank.report() for rank in facts.ranks],
            backlog_bytes=self.sender.backlog_bytes, order_seen=self.order_seen,
            environment=found[0] if found is not None and untold else None,
        )  # fmt: skip


def now_us() -> int:
    return time.time_ns() // 1000
