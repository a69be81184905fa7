"""An engine without processes: attempts are records that a test moves. Nodes can be cut off, supervisors can die.

What is true in this world (`processes`) and what the engine can see of it (`observe`) are two things, as in life.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trackbed.base.errors import Unavailable
from trackbed.clusters.accelerators import CardFacts
from trackbed.clusters.engine import Caps, Handle, NodeFacts, Observation, Phase
from trackbed.wire.attempts import Assignment


@dataclass
class FakeProcess:
    """One attempt on its node. `running`: its ranks; `supervised`: who would speak for them."""

    assignment: Assignment
    running: bool = True
    supervised: bool = True
    phase: str = "starting"
    exit_acked: bool = False

    @property
    def cards(self) -> frozenset[tuple[str, int]]:
        return frozenset((slot.node, card) for slot in self.assignment.nodes for card in slot.cards)

    @property
    def node(self) -> str:
        return self.assignment.nodes[0].node


@dataclass
class FakeEngine:
    """`nodes`: name → number of cards. `cut_off` nodes are not seen and cannot be told anything."""

    nodes: Mapping[str, int] = field(default_factory=lambda: {"n1": 4})
    kind: str = "cpu"
    labels: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    name: str = "fake"
    caps: Caps = field(default_factory=Caps)
    processes: dict[str, FakeProcess] = field(default_factory=dict[str, FakeProcess])
    cut_off: set[str] = field(default_factory=set[str])
    refuse_submits: int = 0
    salvaged: list[str] = field(default_factory=list[str])
    killed: list[str] = field(default_factory=list[str])

    def inventory(self) -> list[NodeFacts]:
        return [
            NodeFacts(
                name=name,
                state="unreachable" if name in self.cut_off else "ready",
                cards=tuple(CardFacts(index, self.kind, 40 * 2**30) for index in range(count)),
                labels=self.labels.get(name, frozenset()),
            )
            for name, count in self.nodes.items()
        ]

    def submit(self, assignment: Assignment) -> Handle:
        if self.refuse_submits:
            self.refuse_submits -= 1
            raise Unavailable("engine_refused", what="asked to by the test")
        self.processes.setdefault(assignment.attempt_id, FakeProcess(assignment))
        return self._handle(self.processes[assignment.attempt_id])

    def _handle(self, process: FakeProcess) -> Handle:
        told = process.assignment
        return Handle(told.attempt_id, told.run_id, told.epoch, process.node)

    def observe(self, attempt_ids: Iterable[str]) -> list[Observation]:
        return [self._observe(attempt_id) for attempt_id in attempt_ids]

    def _observe(self, attempt_id: str) -> Observation:
        process = self.processes.get(attempt_id)
        if process is None:
            return Observation(attempt_id, Phase.LOST, {"folder": "missing"})
        if process.node in self.cut_off:
            return Observation(attempt_id, Phase.LOST, {"unreachable": True})
        if process.exit_acked:
            return Observation(attempt_id, Phase.EXITED, {"exit_acked": True})
        if not process.supervised:
            return Observation(attempt_id, Phase.LOST, {"supervisor_alive": False, "ranks_alive": process.running})
        return Observation(attempt_id, Phase.RUNNING, {"supervisor_alive": True})

    def kill(self, attempt_id: str) -> None:
        self.killed.append(attempt_id)
        process = self._reach(attempt_id)
        process.running = process.supervised = False

    def confirm_gone(self, attempt_id: str, *, timeout_s: float = 10.0) -> bool:
        process = self.processes.get(attempt_id)
        return process is None or not (process.running or process.supervised)

    def salvage(self, attempt_id: str) -> None:
        """Note the wish; the test plays the salvager and reports for it."""
        self._reach(attempt_id).running = False
        self.salvaged.append(attempt_id)

    def _reach(self, attempt_id: str) -> FakeProcess:
        process = self.processes[attempt_id]
        if process.node in self.cut_off:
            raise Unavailable("engine_refused", what=f"{process.node} is cut off")
        return process

    def adopt(self) -> list[Handle]:
        return [self._handle(process) for process in self.processes.values() if not process.exit_acked]

    def clean(self, *, keep_s: float = 7 * 86400.0) -> list[str]:
        return []
