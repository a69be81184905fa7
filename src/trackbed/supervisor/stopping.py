"""Orders to end the ranks, carried out so that all of them leave at the same step. Times come in: no clock here.

    control/stop.json       {order, kind, reason, grace, grace_s}   written at the order, gone when it is withdrawn
    control/calls/<rank>    this rank calls `should_stop` at all
    control/asked/<rank>    the step at which the rank met the order
    control/verdict.json    {order, stop_at}    1 + the greatest step asked; no stop_at: never (withdrawn)

Who takes part: ranks that were seen to call `should_stop`; while nobody was seen, those that write a spool of the SDK and have
not logged two steps yet (an order may come before the first call). The verdict waits until each of them has asked or ended,
or half of the grace is gone. The signal goes out at once where nobody
takes part. Where somebody does, it waits for half of the grace, for all ranks: the others of the same program usually follow
the answer of the one that asks, and a signal would end them before they hear it.

Source: ARCHITECTURE, "Stopping"; the rank's side is `client.stopping`.
"""

import logging
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from trackbed.clusters.node_folder import NodeFolder, replace
from trackbed.domain.states import OrderKind
from trackbed.formats import spool as frames
from trackbed.wire.attempts import Order

_LOOKED_AT_BYTES = 2**20  # of a rank's spool; two steps lie at its beginning


@dataclass(frozen=True)
class Actions:
    """What the caller must do now."""

    signal: frozenset[int] = frozenset()  # ranks to be signalled, once each
    kill: bool = False  # the grace is over: KILL the whole tree


class Stopping:
    """The orders of one attempt. One thread uses it."""

    def __init__(self, folder: NodeFolder) -> None:
        self._control, self._asked, self._spool = folder.control, folder.asked, folder.spool
        self.order: Order | None = None
        self.kind: OrderKind | None = None
        self.verdict_at: int | None = None
        self.deadline_s = 0.0
        self._begun_s = self._half_s = 0.0
        self._signalled: set[int] = set()
        self._silent: set[Path] = set()

    def begin(self, order: Order, now_s: float) -> None:
        """Carry out an order; a second one while the first is carried out changes its kind and may shorten the grace."""
        kind = OrderKind(order.kind)
        if self.order is not None:
            self.kind = kind
            self.deadline_s = min(self.deadline_s, now_s + order.grace_s)
            return
        self.order, self.kind, self.verdict_at = order, kind, None
        self._begun_s, self.deadline_s = now_s, now_s + order.grace_s
        self._half_s = now_s + order.grace_s / 2
        for path in [*self._asked.glob("*"), self._control / "verdict.json"]:
            path.unlink(missing_ok=True)
        words = {
            "order": order.id, "kind": order.kind, "reason": order.reason or order.kind,
            "grace": order.grace_s, "grace_s": order.grace_s,
        }  # fmt: skip
        if not self._write("stop.json", words):
            self._half_s = now_s  # nobody can be asked: the signal goes out at once

    def withdraw(self) -> bool:
        """Take the order back if no rank was told to leave yet; return whether that was so."""
        if self.order is None or self.verdict_at is not None or self._signalled:
            return False
        self._write("verdict.json", {"order": self.order.id, "stop_at": None})
        (self._control / "stop.json").unlink(missing_ok=True)
        self.order = self.kind = None
        return True

    def tick(self, now_s: float, *, askers: AbstractSet[int], processes: AbstractSet[int]) -> Actions:
        """Look at who asked, give the verdict when it is due, and return what to do.

        `askers` are the numbers under which ranks that still run may ask, `processes` those that can be signalled; they
        differ where one process starts the ranks of its node itself.
        """
        if self.order is None:
            return Actions()
        if now_s >= self.deadline_s:
            return Actions(kill=True)
        asked, half = self._read_asked(), now_s >= self._half_s
        takers = (self._takers() | set(asked)) & askers
        if self.verdict_at is None and asked and (half or takers <= set(asked)):
            self.verdict_at = 1 + max(asked.values())
            words = {"order": self.order.id, "stop_at": self.verdict_at}
            if not self._write("verdict.json", words):
                half = True
        told = frozenset(processes - self._signalled) if half or not (takers or asked) else frozenset[int]()
        self._signalled |= told
        return Actions(signal=told)

    def _write(self, name: str, words: dict[str, Any]) -> bool:
        """Write a file that ranks read; False where it cannot be written (disk full), which must not end the run."""
        try:
            replace(self._control / name, msgspec.json.encode(words))
        except OSError as fault:
            logging.getLogger("trackbed.stopping").warning("%s was not written: %s", name, fault)
            return False
        return True

    def _takers(self) -> set[int]:
        callers = {int(path.name) for path in (self._control / "calls").glob("*") if path.name.isdigit()}
        if callers:
            return callers
        return {rank for rank, path in self._spools() if not self._goes_without_asking(path)}

    def _spools(self) -> list[tuple[int, Path]]:
        named = [(path.name.partition("-")[0], path) for path in self._spool.glob("*-cli_*.tbs")]
        return [(int(rank), path) for rank, path in named if rank.isdigit()]

    def _goes_without_asking(self, path: Path) -> bool:
        """Whether a rank has logged two steps: it would have asked by now."""
        if path in self._silent:
            return True
        try:
            with path.open("rb") as file:
                found = frames.decode(file.read(_LOOKED_AT_BYTES), final=False).frames
            steps = {
                step for f in found if f.header.kind == frames.METRICS for step in frames.decode_metrics(f.body).step
            }
        except (OSError, ValueError):
            return False
        if len(steps) > 1:
            self._silent.add(path)
        return len(steps) > 1

    def _read_asked(self) -> dict[int, int]:
        asked: dict[int, int] = {}
        for path in self._asked.glob("*"):
            try:
                asked[int(path.name)] = int(path.read_text())
            except (ValueError, OSError):
                continue  # a name of another kind, or not there any more
        return asked
