"""What every engine can do: say what there is, start an attempt, watch it, make sure that it is gone.

An engine executes; it decides nothing. The truth about an attempt is its supervisor's folder, never the engine alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from trackbed.clusters.accelerators import CardFacts
from trackbed.wire.attempts import Assignment


@dataclass(frozen=True)
class Caps:
    """What the engine can; asked instead of its name."""

    placing: bool = True  # our planner picks nodes and cards; false: the site's scheduler does
    reattach: bool = True  # attempts outlive the server
    grace_max_s: float | None = None
    salvages: bool = True


class Phase(StrEnum):
    """As observed. LOST: nobody works on it and its exit report is not answered; salvage it."""

    STARTING = "starting"
    RUNNING = "running"
    EXITED = "exited"
    LOST = "lost"


@dataclass(frozen=True)
class Handle:
    attempt_id: str
    run_id: str
    epoch: int
    node: str
    folder: str = ""


@dataclass(frozen=True)
class Observation:
    """`evidence`: supervisor_alive, salvaging, ranks_alive, reports_left, exit_acked, phase, boot_changed, and the like."""

    attempt_id: str
    phase: Phase
    evidence: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class NodeFacts:
    """A machine with its cards. `state`: ready | draining | unreachable | gone."""

    name: str
    address: str = "127.0.0.1"
    state: str = "ready"
    cards: tuple[CardFacts, ...] = ()
    cpus: int = 0
    memory_bytes: int = 0
    boot_id: str = ""
    labels: frozenset[str] = frozenset()


class Engine(Protocol):
    """Synchronous and safe to call from any thread; each call may take a fraction of a second."""

    name: str
    caps: Caps

    def inventory(self) -> list[NodeFacts]:
        """Return the nodes as they are now."""
        ...

    def submit(self, assignment: Assignment) -> Handle:
        """Start the supervisor of an attempt; a second call with the same attempt id starts nothing."""
        ...

    def observe(self, attempt_ids: Iterable[str]) -> list[Observation]:
        """Return what can be seen of each; an unknown id is LOST with `folder: missing`, and `alive` where that is known."""
        ...

    def kill(self, attempt_id: str) -> None:
        """KILL the supervisor and every process of the attempt. The last resort: an order asks first."""
        ...

    def confirm_gone(self, attempt_id: str, *, timeout_s: float = 10.0) -> bool:
        """Return whether every process of the attempt is gone; only then are its cards free."""
        ...

    def salvage(self, attempt_id: str) -> None:
        """Start the last work for a dead supervisor; does nothing while somebody works on the folder."""
        ...

    def adopt(self) -> list[Handle]:
        """Return all attempts that are not finished, after a restart of the server."""
        ...

    def clean(self, *, keep_s: float = 7 * 86400.0) -> list[str]:
        """Remove folders of attempts that finished longer ago than `keep_s` and have all reports answered."""
        ...
