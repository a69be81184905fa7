"""States of runs and attempts, causes of an end, and the one table of legal moves.

Run:      draft → preparing → queued ⇄ held → starting → running → stopping → (queued | paused | terminal)
Attempt:  assigned → starting → running → saving → exited(cause), or superseded
"""

from enum import StrEnum

from trackbed.base.errors import Conflict


class RunState(StrEnum):
    DRAFT = "draft"
    PREPARING = "preparing"
    QUEUED = "queued"
    HELD = "held"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    PAUSED = "paused"
    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"


class AttemptState(StrEnum):
    ASSIGNED = "assigned"
    STARTING = "starting"
    RUNNING = "running"
    SAVING = "saving"
    EXITED = "exited"
    SUPERSEDED = "superseded"


class Cause(StrEnum):
    """Why an attempt ended, from the supervisor's evidence."""

    DONE = "done"
    USER_ERROR = "user_error"
    KILLED = "killed"
    OOM_HOST = "oom_host"
    OOM_CARD = "oom_card"
    NODE = "node"
    LOST = "lost"
    NETWORK = "network"
    STORAGE = "storage"
    ENVIRONMENT = "environment"
    HUNG = "hung"
    LIMIT = "limit"
    PREEMPTED = "preempted"
    STOPPED = "stopped"
    PAUSED = "paused"
    # of a run that never started:
    NEEDS = "needs"
    DEADLINE = "deadline"


class OrderKind(StrEnum):
    """Why a supervisor is told to end its ranks."""

    STOP = "stop"
    PAUSE = "pause"
    PREEMPT = "preempt"
    LIMIT = "limit"
    SUPERSEDED = "superseded"


class Priority(StrEnum):
    URGENT = "urgent"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"
    IDLE = "idle"

    @property
    def rank(self) -> int:
        """0 goes first."""
        return list(Priority).index(self)


TERMINAL = frozenset({RunState.FINISHED, RunState.FAILED, RunState.STOPPED})
ACTIVE = frozenset({RunState.STARTING, RunState.RUNNING, RunState.STOPPING})
ATTEMPT_ENDED = frozenset({AttemptState.EXITED, AttemptState.SUPERSEDED})

_WAITING = {RunState.STARTING, RunState.STOPPED, RunState.FAILED, RunState.HELD, RunState.QUEUED}
RUN_MOVES: dict[RunState, frozenset[RunState]] = {
    RunState.DRAFT: frozenset({RunState.PREPARING, RunState.STOPPED}),
    RunState.PREPARING: frozenset({RunState.QUEUED, RunState.HELD, RunState.STOPPED, RunState.FAILED}),
    # straight to `finished` where earlier runs left the products of all its stages
    RunState.QUEUED: frozenset({*_WAITING - {RunState.QUEUED}, RunState.FINISHED}),
    RunState.HELD: frozenset({RunState.QUEUED, RunState.PREPARING, RunState.STOPPED, RunState.FAILED}),
    RunState.STARTING: frozenset({RunState.RUNNING, RunState.STOPPING, RunState.QUEUED, RunState.PAUSED, *TERMINAL}),
    RunState.RUNNING: frozenset({RunState.STOPPING, RunState.QUEUED, RunState.PAUSED, *TERMINAL}),
    RunState.STOPPING: frozenset({RunState.RUNNING, RunState.QUEUED, RunState.PAUSED, *TERMINAL}),
    RunState.PAUSED: frozenset({RunState.QUEUED, RunState.STOPPED}),
    RunState.FINISHED: frozenset(),
    # resume / retry within the resume window (`preparing` where its environment is not packed); an outside run is reopened
    # by its own spool
    RunState.FAILED: frozenset({RunState.QUEUED, RunState.PREPARING, RunState.RUNNING}),
    RunState.STOPPED: frozenset({RunState.QUEUED, RunState.PREPARING}),
}

ATTEMPT_MOVES: dict[AttemptState, frozenset[AttemptState]] = {
    AttemptState.ASSIGNED: frozenset({AttemptState.STARTING, AttemptState.RUNNING, *ATTEMPT_ENDED}),
    AttemptState.STARTING: frozenset({AttemptState.RUNNING, AttemptState.SAVING, *ATTEMPT_ENDED}),
    AttemptState.RUNNING: frozenset({AttemptState.SAVING, *ATTEMPT_ENDED}),
    AttemptState.SAVING: frozenset({AttemptState.RUNNING, *ATTEMPT_ENDED}),
    AttemptState.EXITED: frozenset(),
    AttemptState.SUPERSEDED: frozenset(),
}

# How often an attempt's end by this cause is answered by a new attempt. `None`: not counted, always.
DEFAULT_RETRIES: dict[Cause, int | None] = {
    Cause.DONE: 0,
    Cause.USER_ERROR: 0,
    Cause.KILLED: 3,
    Cause.OOM_HOST: 0,
    Cause.OOM_CARD: 1,
    Cause.NODE: 3,
    Cause.LOST: 3,
    Cause.NETWORK: 3,
    Cause.STORAGE: 3,
    Cause.ENVIRONMENT: 1,
    Cause.HUNG: 1,
    Cause.LIMIT: 0,
    Cause.PREEMPTED: None,
    Cause.STOPPED: 0,
    Cause.PAUSED: 0,
    Cause.NEEDS: 0,
    Cause.DEADLINE: 0,
}


def retry_delay_s(failures: int) -> float:
    """Return the back-off before try `failures` + 1: 10 s × 2ⁿ, at most 10 min; the first retry is at once.

    The first is immediate because a killed rank is the common case and its cards are still warm.
    """
    return 0.0 if failures <= 1 else min(10.0 * 2 ** (failures - 2), 600.0)


def move_run(state: RunState, to: RunState) -> RunState:
    """Return `to` if the move is legal.

    Raises:
        Conflict: `illegal_move`, with both states and what is allowed.
    """
    if to not in RUN_MOVES[state]:
        allowed = ", ".join(sorted(RUN_MOVES[state])) or "nothing"
        raise Conflict("illegal_move", state=state.value, to=to.value, allowed=allowed)
    return to


def move_attempt(state: AttemptState, to: AttemptState) -> AttemptState:
    """Return `to` if the move is legal; `Conflict` otherwise."""
    if to not in ATTEMPT_MOVES[state]:
        allowed = ", ".join(sorted(ATTEMPT_MOVES[state])) or "nothing"
        raise Conflict("illegal_move", state=state.value, to=to.value, allowed=allowed)
    return to
