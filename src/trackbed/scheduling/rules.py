"""Which waiting runs start now, on which cards, and who must make room. Pure: the same facts give the same plan.

The rules, in order:

1. Priority, then place in the queue; a preempted run keeps its place. A run that is held, backing off or waiting for
   another run is passed over, as is one that no inventory could ever hold.
2. Gang or nothing: all nodes of a run are found in one decision, each with all of its cards, of one kind.
3. Best fit: the nodes that are left with the fewest cards, so that whole nodes stay whole.
4. The first run that does not fit is the *head* of its cards: what is behind it may take a card that the head could use
   only if its time limit ends before the head's earliest start. Runs of other cards are not held up by it.
5. `urgent` makes strictly lower priorities leave, and anybody makes `idle` leave. Victims are whole attempts, the lowest
   priority first, the youngest first, as few as will do; nothing is stopped unless that makes the run fit. What is
   already leaving is counted before anything else is stopped, so that planning twice stops nothing twice.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trackbed.domain.states import Priority

Slot = tuple[str, int]  # node, index of the card


@dataclass(frozen=True)
class Card:
    index: int
    kind: str = "cpu"
    memory_bytes: int = 0


@dataclass(frozen=True)
class Node:
    """A machine of the pool. `usable` is false where nothing new may start (cordoned, unreachable)."""

    name: str
    cards: tuple[Card, ...] = ()
    labels: frozenset[str] = frozenset()
    usable: bool = True
    blocked: frozenset[int] = frozenset()  # cards that nobody may take: held by what is not in `running`, or unknown

    def answers_to(self, label: str) -> bool:
        return label == self.name or label in self.labels


@dataclass(frozen=True)
class Waiting:
    """A run in the queue, with what one attempt of it takes."""

    run_id: str
    ref: str
    priority: Priority
    place_us: int
    cards_per_node: int = 1
    nodes: int = 1
    kind: str = "any"
    card_memory_bytes: int = 0
    only: tuple[str, ...] = ()
    not_: tuple[str, ...] = ()
    time_limit_s: float | None = None
    grace_s: float = 0.0  # after the limit the ranks still save for so long
    not_before_us: int = 0
    held: bool = False
    needs: tuple[str, ...] = ()  # refs of runs that have not finished yet

    @property
    def order(self) -> tuple[int, int, str]:
        return (self.priority.rank, self.place_us, self.run_id)

    def ends_us(self, start_us: int) -> int | None:
        return None if self.time_limit_s is None else start_us + int((self.time_limit_s + self.grace_s) * 1e6)


@dataclass(frozen=True)
class Running:
    """An attempt that holds cards. `leaving` ones were told to go; `leaving_for` is the run that they make room for."""

    attempt_id: str
    run_id: str
    priority: Priority
    slots: frozenset[Slot]
    started_us: int = 0
    ends_us: int | None = None  # the latest end that its time limit allows
    leaving: bool = False
    leaving_for: str = ""
    fixed: bool = False  # may not be asked to leave (it does not answer, say)


@dataclass(frozen=True)
class Start:
    run_id: str
    slots: tuple[Slot, ...]  # node by node, cards in order; for a run without cards: one slot with index -1

    def by_node(self) -> dict[str, list[int]]:
        nodes: dict[str, list[int]] = {}
        for node, index in self.slots:
            nodes.setdefault(node, []).extend([index] if index >= 0 else [])
        return nodes


@dataclass(frozen=True)
class Preemption:
    attempt_id: str
    run_id: str
    for_run: str


@dataclass(frozen=True)
class Why:
    """Why a run waits: a code with a sentence in the catalogues, and the values."""

    code: str
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Plan:
    starts: tuple[Start, ...]
    preemptions: tuple[Preemption, ...]
    reasons: Mapping[str, Why]  # every waiting run that does not start has one


@dataclass(frozen=True)
class _Head:
    ref: str
    wants: frozenset[Slot]  # every card of the pool that it could use
    start_us: int | None  # the earliest start that time limits promise; None: nobody knows


class _Pool:
    """Cards by what they are, fixed during one plan."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.cards = {(node.name, card.index): card for node in self.nodes.values() for card in node.cards}
        self._matching: dict[tuple[Any, ...], frozenset[Slot]] = {}

    def matching(self, run: Waiting) -> frozenset[Slot]:
        """Every card that the run could ever use, busy or not."""
        key = (run.kind, run.card_memory_bytes, run.only, run.not_)
        found = self._matching.get(key)
        if found is None:
            found = frozenset(
                slot
                for slot, card in self.cards.items()
                if run.kind in ("any", card.kind)
                and card.memory_bytes >= run.card_memory_bytes
                and admits(self.nodes[slot[0]], run.only, run.not_)
            )
            self._matching[key] = found
        return found

    def fit(self, run: Waiting, slots: Iterable[Slot]) -> tuple[Slot, ...] | None:
        """Place the whole gang on the given cards by best fit, or not at all."""
        if run.cards_per_node == 0:
            return None
        by_kind: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for slot in self.matching(run).intersection(slots):
            by_kind[self.cards[slot].kind][slot[0]].append(slot[1])
        best: tuple[int, str, tuple[Slot, ...]] | None = None
        for kind, nodes in by_kind.items():
            enough = sorted(
                (len(indexes) - run.cards_per_node, name)
                for name, indexes in nodes.items()
                if len(indexes) >= run.cards_per_node
            )[: run.nodes]
            if len(enough) < run.nodes:
                continue
            left = sum(spare for spare, _ in enough)
            chosen = tuple(
                (name, index)
                for name in sorted(n for _, n in enough)
                for index in sorted(nodes[name])[: run.cards_per_node]
            )
            if best is None or (left, kind) < best[:2]:
                best = (left, kind, chosen)
        return best[2] if best else None


def admits(node: Node, only: Iterable[str], not_: Iterable[str]) -> bool:
    """Whether the labels of a spec allow the node: all of `only`, none of `not`."""
    return all(node.answers_to(label) for label in only) and not any(node.answers_to(label) for label in not_)


def may_preempt(wants: Priority, has: Priority) -> bool:
    """`urgent` over strictly lower priorities; anybody but `idle` over `idle`."""
    if has is Priority.IDLE:
        return wants is not Priority.IDLE
    return wants is Priority.URGENT and has.rank > wants.rank


def could_ever_fit(run: Waiting, nodes: Iterable[Node]) -> bool:
    """Whether the pool, emptied, would hold the run."""
    return _could_ever_fit(run, _Pool(nodes))


def _could_ever_fit(run: Waiting, pool: _Pool) -> bool:
    if run.cards_per_node == 0:
        return any(admits(node, run.only, run.not_) for node in pool.nodes.values())
    return pool.fit(run, pool.cards) is not None


def largest_node(nodes: Iterable[Node]) -> tuple[str, int]:
    """Name and number of cards of the node with the most; ("", 0) for an empty pool."""
    return max(((node.name, len(node.cards)) for node in nodes), key=lambda it: (it[1], it[0]), default=("", 0))


def plan(now_us: int, waiting: Iterable[Waiting], nodes: Iterable[Node], running: Iterable[Running]) -> Plan:
    """Return what to start, whom to ask to leave, and why everything else waits.

    `nodes` holds the whole inventory, `running` every attempt that holds cards of it.
    """
    return _Planner(now_us, list(waiting), _Pool(nodes), list(running)).plan()


class _Planner:
    def __init__(self, now_us: int, waiting: list[Waiting], pool: _Pool, running: list[Running]) -> None:
        self.now_us = now_us
        self.pool = pool
        self.waiting = sorted(waiting, key=lambda run: run.order)
        self.running = running
        self.heads: list[_Head] = []
        self.starts: list[Start] = []
        self.preemptions: list[Preemption] = []
        self.reasons: dict[str, Why] = {}
        self.stopped: set[str] = set()
        taken = {slot for attempt in running for slot in attempt.slots}
        self.free: set[Slot] = {
            slot
            for slot in pool.cards
            if slot not in taken and pool.nodes[slot[0]].usable and slot[1] not in pool.nodes[slot[0]].blocked
        }
        queued = {run.run_id for run in waiting}
        self.coming: dict[str, set[Slot]] = defaultdict(set)  # run they are kept for ("" = anybody's) → cards
        for attempt in running:
            if attempt.leaving and not attempt.fixed:
                self.coming[attempt.leaving_for if attempt.leaving_for in queued else ""] |= self._usable(attempt)

    def _usable(self, attempt: Running) -> set[Slot]:
        return {
            slot
            for slot in attempt.slots
            if slot in self.pool.cards
            and self.pool.nodes[slot[0]].usable
            and slot[1] not in self.pool.nodes[slot[0]].blocked
        }

    def plan(self) -> Plan:
        for place, run in enumerate(self.waiting):
            why = self._passed_over(run) or self._serve(run, ahead=place)
            if why is not None:
                self.reasons[run.run_id] = why
        return Plan(tuple(self.starts), tuple(self.preemptions), self.reasons)

    def _passed_over(self, run: Waiting) -> Why | None:
        if run.held:
            return Why("held")
        if run.needs:
            return Why("needs", {"needs": ", ".join(run.needs)})
        if run.not_before_us > self.now_us:
            return Why("backoff", {"seconds": 10 * -(-(run.not_before_us - self.now_us) // 10_000_000)})
        if not _could_ever_fit(run, self.pool):
            node, largest = largest_node(self.pool.nodes.values())
            return Why(
                "too_large",
                {"nodes": run.nodes, "cards_per_node": run.cards_per_node, "kind": run.kind,
                 "node": node or "-", "largest": largest, "pool_nodes": len(self.pool.nodes)},
            )  # fmt: skip
        return None

    def _serve(self, run: Waiting, *, ahead: int) -> Why | None:
        if run.cards_per_node == 0:
            return self._start_without_cards(run)
        allowed = self._allowed(run, self.free)
        slots = self.pool.fit(run, allowed)
        if slots is not None:
            self._start(run, slots)
            return None
        # What is already leaving comes next: it costs nobody anything.
        leaving = self._allowed(run, self.coming[run.run_id] | self.coming[""])
        slots = self.pool.fit(run, allowed | leaving)
        if slots is not None:
            self._claim(run, slots)
            return Why("making_room", {"cards": len(slots)})
        victims = self._victims(run, allowed | leaving)
        if victims:
            freed = {slot for victim in victims for slot in self._usable(victim)}
            slots = self.pool.fit(run, allowed | leaving | self._allowed(run, freed))
            assert slots is not None  # victims are chosen so that it fits
            self.stopped |= {victim.attempt_id for victim in victims}
            self.preemptions += [Preemption(victim.attempt_id, victim.run_id, run.run_id) for victim in victims]
            self.coming[run.run_id] |= freed
            self._claim(run, slots)
            return Why("making_room", {"cards": len(slots)})
        return self._wait(run, ahead=ahead)

    def _start_without_cards(self, run: Waiting) -> Why | None:
        usable = [node.name for node in self.pool.nodes.values() if node.usable and admits(node, run.only, run.not_)]
        if not usable:
            return Why("cards_busy", {"wanted": 0, "free": len(self.free), "total": len(self.pool.cards)})
        self._start(run, ((min(usable), -1),))
        return None

    def _start(self, run: Waiting, slots: tuple[Slot, ...]) -> None:
        self.starts.append(Start(run.run_id, slots))
        self.free -= set(slots)
        if run.cards_per_node:
            self.running.append(
                Running(
                    "", run.run_id, run.priority, frozenset(slots), self.now_us, run.ends_us(self.now_us), fixed=True
                )
            )

    def _claim(self, run: Waiting, slots: tuple[Slot, ...]) -> None:
        """Keep the cards for the run until all of them are free; what it does not need of its victims is anybody's."""
        claimed = set(slots)
        self.free -= claimed
        self.coming[""] |= self.coming.pop(run.run_id, set())
        self.coming[""] -= claimed

    def _allowed(self, run: Waiting, slots: set[Slot]) -> set[Slot]:
        """The cards that the run may take without delaying a head."""
        ends_us = run.ends_us(self.now_us)
        left = set(slots)
        for head in self.heads:
            if ends_us is None or head.start_us is None or ends_us > head.start_us:
                left -= head.wants
        return left

    def _victims(self, run: Waiting, have: set[Slot]) -> list[Running]:
        """The smallest set of attempts whose leaving makes the run fit; empty where no set does."""
        candidates = [
            attempt
            for attempt in self.running
            if not attempt.leaving
            and not attempt.fixed
            and attempt.attempt_id not in self.stopped
            and may_preempt(run.priority, attempt.priority)
            and self._allowed(run, self._usable(attempt)) & self.pool.matching(run)
        ]
        candidates.sort(key=lambda it: (-it.priority.rank, -it.started_us, it.attempt_id))
        chosen: list[Running] = []
        for attempt in candidates:
            chosen.append(attempt)
            if self._fits_with(run, have, chosen):
                break
        else:
            return []
        # Put each back, the most worth keeping first, and see whether it is needed at all.
        for attempt in reversed(list(chosen)):
            rest = [other for other in chosen if other is not attempt]
            if self._fits_with(run, have, rest):
                chosen = rest
        return chosen

    def _fits_with(self, run: Waiting, have: set[Slot], victims: Iterable[Running]) -> bool:
        freed = {slot for victim in victims for slot in self._usable(victim)}
        return self.pool.fit(run, have | self._allowed(run, freed)) is not None

    def _wait(self, run: Waiting, *, ahead: int) -> Why:
        wants = self.pool.matching(run)
        in_front = next((head for head in self.heads if head.wants & wants), None)
        covered: set[Slot] = set()
        for head in self.heads:
            covered |= head.wants
        if not wants <= covered:
            self.heads.append(_Head(run.ref, wants, self._earliest_start(run)))
        if in_front is not None:
            return Why("behind", {"head": in_front.ref, "ahead": ahead})
        return Why(
            "cards_busy",
            {"wanted": run.cards_per_node * run.nodes, "free": len(self.free & wants), "total": len(wants)},
        )

    def _earliest_start(self, run: Waiting) -> int | None:
        """When time limits promise enough cards; None while an attempt without a limit is in the way."""
        slots = self.free | self.coming[""] | self.coming[run.run_id]
        limited = [attempt for attempt in self.running if attempt.ends_us is not None]
        for attempt in sorted(limited, key=lambda it: it.ends_us or 0):
            slots |= self._usable(attempt)
            if self.pool.fit(run, slots) is not None:
                return max(attempt.ends_us or 0, self.now_us)
        return None
