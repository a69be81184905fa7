"""The planner keeps its promises on every pool, and each rule has its story."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from trackbed.domain.states import Priority
from trackbed.scheduling.rules import Card, Node, Plan, Running, Waiting, could_ever_fit, may_preempt, plan

S = 1_000_000


def node(name: str = "n1", cards: int = 8, kind: str = "cpu", labels: tuple[str, ...] = (), **more) -> Node:
    return Node(name, tuple(Card(i, kind, 40 * 2**30) for i in range(cards)), frozenset(labels), **more)


def want(run: str, cards: int = 1, *, at: int = 0, nodes: int = 1, priority: str = "normal", **more) -> Waiting:
    return Waiting(run, run, Priority(priority), at, cards_per_node=cards, nodes=nodes, **more)


def busy(run: str, slots: dict[str, list[int]], *, priority: str = "normal", start: int = 0, **more) -> Running:
    taken = frozenset((n, i) for n, indexes in slots.items() for i in indexes)
    return Running(f"att_{run}", run, Priority(priority), taken, start, **more)


def started(made: Plan) -> dict[str, dict[str, list[int]]]:
    return {start.run_id: start.by_node() for start in made.starts}


def test_runs_of_one_priority_start_in_the_order_of_their_places():
    made = plan(0, [want("b", 4, at=2), want("a", 4, at=1), want("c", 4, at=3)], [node()], [])
    assert list(started(made)) == ["a", "b"]
    assert made.reasons["c"].code == "cards_busy"


def test_a_higher_priority_goes_first_whatever_its_place():
    made = plan(0, [want("low", 8, at=1, priority="low"), want("high", 8, at=9, priority="high")], [node()], [])
    assert list(started(made)) == ["high"]


def test_nobody_passes_a_blocked_head_without_a_time_limit():
    made = plan(0, [want("big", 8, at=1), want("small", 1, at=2)], [node()], [busy("x", {"n1": [0]})])
    assert made.starts == ()
    assert made.reasons["big"].code == "cards_busy"
    assert made.reasons["small"].code == "behind" and made.reasons["small"].params["head"] == "big"


def test_a_run_that_ends_before_the_heads_start_may_pass():
    running = [busy("x", {"n1": [0]}, ends_us=100 * S)]
    short, long = want("short", 1, at=2, time_limit_s=60), want("long", 1, at=3, time_limit_s=200)
    made = plan(0, [want("big", 8, at=1), short, long], [node()], running)
    assert list(started(made)) == ["short"]


def test_the_grace_of_a_limit_counts_before_it_may_pass():
    running = [busy("x", {"n1": [0]}, ends_us=100 * S)]
    made = plan(0, [want("big", 8, at=1), want("s", 1, at=2, time_limit_s=60, grace_s=60)], [node()], running)
    assert made.starts == ()


def test_a_head_of_one_kind_does_not_hold_up_another_kind():
    pool = [node("a", 2, "h100"), node("b", 2, "cpu")]
    made = plan(0, [want("gpu", 2, at=1, kind="h100"), want("cpu", 2, at=2, kind="cpu")], pool, [busy("x", {"a": [0]})])
    assert list(started(made)) == ["cpu"]


def test_a_run_too_large_for_the_pool_says_so_and_blocks_nobody():
    made = plan(0, [want("huge", 16, at=1), want("small", 1, at=2)], [node()], [])
    assert list(started(made)) == ["small"]
    assert made.reasons["huge"].code == "too_large"
    assert made.reasons["huge"].params["largest"] == 8


def test_held_backing_off_and_needing_runs_are_passed_over_with_their_reason():
    waiting = [
        want("held", 8, at=1, held=True),
        want("later", 8, at=2, not_before_us=22 * S),
        want("needs", 8, at=3, needs=("demo#1",)),
        want("now", 8, at=4),
    ]
    made = plan(10 * S, waiting, [node()], [])
    assert list(started(made)) == ["now"]
    assert [made.reasons[r].code for r in ("held", "later", "needs")] == [
        "held",
        "backoff",
        "needs",
    ]
    assert made.reasons["later"].params["seconds"] == 20


def test_a_gang_takes_all_its_nodes_at_once_or_none():
    pool = [node("a", 4), node("b", 4), node("c", 4)]
    assert started(plan(0, [want("g", 4, nodes=3)], pool, [])) == {"g": {n: [0, 1, 2, 3] for n in "abc"}}
    assert plan(0, [want("g", 4, nodes=3)], pool, [busy("x", {"b": [2]})]).starts == ()


def test_the_fullest_node_that_fits_is_taken():
    pool = [node("a", 8), node("b", 4)]
    assert started(plan(0, [want("s", 2)], pool, [])) == {"s": {"b": [0, 1]}}


def test_fragments_of_two_nodes_are_no_place_for_a_one_node_run():
    pool = [node("a", 4), node("b", 4)]
    running = [busy("x", {"a": [0, 1]}), busy("y", {"b": [0, 1]})]
    assert plan(0, [want("r", 4)], pool, running).starts == ()


def test_labels_say_where_a_run_may_go():
    pool = [node("a", 4, labels=("rack=a",)), node("b", 4, labels=("rack=b",))]
    assert started(plan(0, [want("r", 1, only=("rack=b",))], pool, [])) == {"r": {"b": [0]}}
    assert started(plan(0, [want("r", 1, not_=("b",))], pool, [])) == {"r": {"a": [0]}}
    assert plan(0, [want("r", 1, only=("rack=z",))], pool, []).reasons["r"].code == "too_large"


def test_a_run_without_cards_starts_while_every_card_is_busy():
    made = plan(0, [want("big", 8, at=1), want("prep", 0, at=2)], [node()], [busy("x", {"n1": [0]})])
    assert started(made) == {"prep": {"n1": []}}


def test_unknown_cards_and_cordoned_nodes_are_never_given():
    made = plan(0, [want("r", 2)], [node("a", 2, usable=False), node("b", 2, blocked=frozenset({1}))], [])
    assert made.starts == ()
    assert made.reasons["r"].code == "cards_busy"


def test_urgent_asks_only_as_many_to_leave_as_needed_the_youngest_first():
    running = [busy(f"r{i}", {"n1": [2 * i, 2 * i + 1]}, start=i) for i in range(4)]
    made = plan(0, [want("u", 4, priority="urgent")], [node()], running)
    assert {p.run_id for p in made.preemptions} == {"r3", "r2"}
    assert made.reasons["u"].code == "making_room"


def test_the_lowest_priority_leaves_first_even_if_older():
    running = [busy("low", {"n1": [0, 1, 2, 3]}, priority="low", start=1), busy("n", {"n1": [4, 5, 6, 7]}, start=9)]
    made = plan(10, [want("u", 4, priority="urgent")], [node()], running)
    assert [p.run_id for p in made.preemptions] == ["low"]


def test_nothing_is_stopped_where_stopping_would_not_help():
    running = [busy("h", {"n1": [0]}, priority="urgent"), busy("n", {"n1": [1, 2]})]
    made = plan(0, [want("u", 8, priority="urgent")], [node()], running)
    assert made.preemptions == ()


def test_free_and_victim_nodes_are_planned_together():
    pool = [node("a", 4), node("b", 4)]
    made = plan(0, [want("u", 4, nodes=2, priority="urgent")], pool, [busy("n", {"b": [0]})])
    assert [p.run_id for p in made.preemptions] == ["n"]


def test_a_victim_that_turns_out_not_to_be_needed_is_put_back():
    # The youngest alone does not help, the older ones on the other node do.
    pool = [node("a", 4), node("b", 4)]
    running = [
        busy("urgent", {"a": [0]}, priority="urgent"),
        busy("young", {"a": [1]}, start=9),
        busy("old", {"b": [0, 1, 2, 3]}, start=1),
    ]
    made = plan(10, [want("u", 4, priority="urgent")], pool, running)
    assert [p.run_id for p in made.preemptions] == ["old"]


def test_anybody_but_idle_makes_idle_leave():
    running = [busy("i", {"n1": list(range(8))}, priority="idle")]
    assert [p.run_id for p in plan(0, [want("low", 1, priority="low")], [node()], running).preemptions] == ["i"]
    assert plan(0, [want("idle", 1, priority="idle")], [node()], running).preemptions == ()


def test_what_is_already_leaving_is_waited_for_before_anybody_else_is_stopped():
    running = [
        busy("going", {"n1": [0, 1, 2, 3]}, leaving=True, leaving_for="u"),
        busy("staying", {"n1": [4, 5, 6, 7]}),
    ]
    made = plan(0, [want("u", 4, priority="urgent")], [node()], running)
    assert made.preemptions == () and made.starts == ()
    assert made.reasons["u"].code == "making_room"


def test_freed_cards_are_kept_for_the_run_they_were_freed_for():
    running = [busy("going", {"n1": [0, 1]}, leaving=True, leaving_for="u"), busy("stays", {"n1": [6, 7]})]
    made = plan(0, [want("u", 6, priority="urgent"), want("thief", 4, at=1)], [node()], running)
    assert made.starts == () and made.preemptions == ()


def test_preemption_is_strict_between_priorities():
    assert may_preempt(Priority.URGENT, Priority.HIGH)
    assert not may_preempt(Priority.URGENT, Priority.URGENT)
    assert not may_preempt(Priority.HIGH, Priority.LOW)
    assert may_preempt(Priority.LOW, Priority.IDLE)
    assert not may_preempt(Priority.IDLE, Priority.IDLE)


# --- properties ------------------------------------------------------------------------------------------------------

NAMES = ["a", "b", "c"]
priorities = st.sampled_from(list(Priority))
pools = st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["cpu", "h100"])), min_size=1, max_size=3).map(
    lambda sizes: [node(NAMES[i], size, kind) for i, (size, kind) in enumerate(sizes)]
)
limits = st.one_of(st.none(), st.integers(1, 200).map(float))


@st.composite
def situations(draw, *, gaps: bool = True):
    pool = draw(pools)
    slots = [(n.name, card.index) for n in pool for card in n.cards]
    owners = draw(st.lists(st.integers(0, 5), min_size=len(slots), max_size=len(slots)))
    running: list[Running] = []
    for owner in range(1, 6):
        held = frozenset(slot for slot, who in zip(slots, owners, strict=True) if who == owner)
        if held:
            leaving = gaps and draw(st.booleans())
            running.append(
                Running(
                    f"att{owner}", f"run{owner}", draw(priorities), held, draw(st.integers(0, 50)) * S,
                    draw(st.one_of(st.none(), st.integers(60, 400).map(lambda s: s * S))), leaving=leaving,
                )
            )  # fmt: skip
    waiting = [
        Waiting(
            f"w{i}", f"w{i}", draw(priorities), draw(st.integers(0, 3)), draw(st.integers(0, 4)),
            draw(st.integers(1, 3)), draw(st.sampled_from(["any", "any", "cpu", "h100"])), time_limit_s=draw(limits),
            held=draw(st.integers(0, 9)) == 0, not_before_us=draw(st.sampled_from([0, 0, 0, 500])) * S,
        )
        for i in range(draw(st.integers(0, 6)))
    ]  # fmt: skip
    return pool, running, waiting


NOW = 55 * S


def apply(made: Plan, running: list[Running], waiting: list[Waiting]) -> tuple[list[Running], list[Waiting]]:
    by_id = {run.run_id: run for run in waiting}
    victims = {p.attempt_id: p.for_run for p in made.preemptions}
    after = [
        replace(a, leaving=True, leaving_for=victims[a.attempt_id]) if a.attempt_id in victims else a for a in running
    ]
    for start in made.starts:
        run = by_id.pop(start.run_id)
        taken = frozenset(slot for slot in start.slots if slot[1] >= 0)
        after.append(Running(f"new_{run.run_id}", run.run_id, run.priority, taken, NOW, run.ends_us(NOW)))
    return after, list(by_id.values())


@settings(max_examples=150, deadline=None)
@given(situations())
def test_no_card_is_ever_given_twice_and_every_gang_is_whole(case):
    pool, running, waiting = case
    by_id = {run.run_id: run for run in waiting}
    given_out = [slot for attempt in running for slot in attempt.slots]
    made = plan(NOW, waiting, pool, running)
    for start in made.starts:
        run = by_id[start.run_id]
        assert not run.held and run.not_before_us <= NOW
        placed = start.by_node()
        if run.cards_per_node == 0:
            assert list(placed.values()) == [[]]
            continue
        assert len(placed) == run.nodes
        assert all(len(cards) == run.cards_per_node for cards in placed.values())
        kinds = {next(n for n in pool if n.name == name).cards[0].kind for name in placed}
        assert len(kinds) == 1 and (run.kind == "any" or kinds == {run.kind})
        given_out += start.slots
    assert len(given_out) == len(set(given_out))
    assert set(given_out) <= {(n.name, card.index) for n in pool for card in n.cards}


@settings(max_examples=150, deadline=None)
@given(situations())
def test_every_waiting_run_either_starts_or_has_a_reason(case):
    pool, running, waiting = case
    made = plan(NOW, waiting, pool, running)
    began = {start.run_id for start in made.starts}
    assert began | set(made.reasons) == {run.run_id for run in waiting}
    assert not began & set(made.reasons)


@settings(max_examples=150, deadline=None)
@given(situations())
def test_a_run_never_starts_before_an_equal_one_that_stands_in_front_of_it(case):
    """Equal in what it wants and without a time limit: then only the place may decide."""
    pool, running, waiting = case
    waiting = [replace(run, time_limit_s=None) for run in waiting]
    made = plan(NOW, waiting, pool, running)
    began = {start.run_id for start in made.starts}
    for first in waiting:
        for second in waiting:
            same = (first.priority, first.cards_per_node, first.nodes, first.kind) == (
                second.priority, second.cards_per_node, second.nodes, second.kind,
            )  # fmt: skip
            ready = not first.held and first.not_before_us <= NOW
            if same and ready and first.order < second.order and second.run_id in began:
                assert first.run_id in began


@settings(max_examples=200, deadline=None)
@given(situations())
def test_planning_again_changes_nothing(case):
    pool, running, waiting = case
    made = plan(NOW, waiting, pool, running)
    again = plan(NOW, *reversed_args(apply(made, running, waiting), pool))
    assert again.starts == ()
    assert again.preemptions == ()


def reversed_args(state, pool):
    running, waiting = state
    return waiting, pool, running


@settings(max_examples=150, deadline=None)
@given(situations())
def test_victims_are_weaker_and_all_of_them_are_needed(case):
    pool, running, waiting = case
    made = plan(NOW, waiting, pool, running)
    by_run = {run.run_id: run for run in waiting}
    by_attempt = {attempt.attempt_id: attempt for attempt in running}
    for preemption in made.preemptions:
        victim = by_attempt[preemption.attempt_id]
        assert may_preempt(by_run[preemption.for_run].priority, victim.priority)
        assert not victim.leaving
    assert len({p.attempt_id for p in made.preemptions}) == len(made.preemptions)


@settings(max_examples=150, deadline=None)
@given(situations(gaps=False))
def test_what_is_started_behind_a_head_does_not_delay_it(case):
    """Drop everything behind the first blocked run: its earliest start by time limits stays what it was."""
    pool, running, waiting = case
    made = plan(NOW, waiting, pool, running)
    began = {start.run_id: start for start in made.starts}
    ordered = sorted(waiting, key=lambda run: run.order)
    head = next(
        (run for run in ordered if made.reasons.get(run.run_id) and made.reasons[run.run_id].code == "cards_busy"),
        None,
    )
    if head is None or not could_ever_fit(head, pool):
        return
    in_front = [run for run in ordered if run.order <= head.order]
    alone = plan(NOW, in_front, pool, running)
    assert list(alone.starts) == [s for s in made.starts if s.run_id in {r.run_id for r in in_front}]
    for start in began.values():
        run = next(r for r in waiting if r.run_id == start.run_id)
        if run.order < head.order or run.cards_per_node == 0:
            continue
        # it took cards of the head's kind only with an end
        kinds = {next(n for n in pool if n.name == name).cards[0].kind for name in start.by_node()}
        if head.kind in ("any", *kinds):
            assert run.time_limit_s is not None
