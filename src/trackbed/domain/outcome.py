"""What follows when an attempt has ended: the next state of its run. Pure.

The evidence decides first, then what people wished, then the budget of the cause: a run that ended `done` while a stop was
asked is finished; what would have been a new attempt becomes a pause where a pause was asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from trackbed.domain.states import DEFAULT_RETRIES, Cause, RunState, retry_delay_s


class Wish(StrEnum):
    """What people asked of a run that has an attempt; "" nothing. Stronger ones replace weaker ones."""

    NONE = ""
    PAUSE = "pause"
    STOP = "stop"


@dataclass(frozen=True)
class Next:
    """`counted`: the end uses up one retry of its cause. `next_stage`: the run goes on with its next stage."""

    state: RunState
    cause: Cause
    delay_s: float = 0.0
    counted: bool = False
    next_stage: bool = False
    budget: int = 0  # of the cause; with `used` it says why a run failed


def after_attempt(
    cause: Cause,
    *,
    wish: Wish = Wish.NONE,
    retries: Mapping[str, int] | None = None,
    used: Mapping[str, int] | None = None,
    more_stages: bool = False,
) -> Next:
    """Return where the run goes after its attempt ended by `cause`.

    `retries` are the counts of the spec, `used` how many ends of each cause were answered by a new attempt so far.
    """
    if cause is Cause.DONE:
        if not more_stages:
            return Next(RunState.FINISHED, cause)
        return Next(_wished(wish, RunState.QUEUED), cause, next_stage=True)
    if cause is Cause.STOPPED or wish is Wish.STOP:
        return Next(RunState.STOPPED, cause)
    if cause is Cause.PAUSED:
        return Next(RunState.PAUSED, cause)
    if cause is Cause.PREEMPTED:
        return Next(_wished(wish, RunState.QUEUED), cause)
    budget = budget_of(cause, retries or {})
    spent = (used or {}).get(cause.value, 0)
    if budget is None or spent < budget:
        delay = 0.0 if wish is Wish.PAUSE else retry_delay_s(spent + 1)
        return Next(
            _wished(wish, RunState.QUEUED), cause, delay_s=delay, counted=budget is not None, budget=budget or 0
        )
    return Next(RunState.FAILED, cause, budget=budget)


def budget_of(cause: Cause, retries: Mapping[str, int]) -> int | None:
    """Return how many new attempts an end by the cause may be given; None: as many as it takes."""
    return retries[cause.value] if cause.value in retries else DEFAULT_RETRIES[cause]


def _wished(wish: Wish, otherwise: RunState) -> RunState:
    return {Wish.STOP: RunState.STOPPED, Wish.PAUSE: RunState.PAUSED}.get(wish, otherwise)
