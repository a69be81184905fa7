"""From what was seen to the cause."""

import pytest

from trackbed.domain.states import Cause, OrderKind
from trackbed.supervisor.evidence import RankEnd, judge


def end(
    rank: int, code: int | None = None, sig: int | None = None, at_s: float = 0.0, *, ours: bool = False
) -> RankEnd:
    return RankEnd(rank, code, sig, int(at_s * 1e6), ours)


def cause(*ends: RankEnd, lines: dict[int, list[str]] | None = None, **said: object) -> Cause:
    return judge(ends, lines or {}, **said).cause  # type: ignore[arg-type]


def test_all_zero_is_done() -> None:
    assert cause(end(0, 0), end(1, 0)) is Cause.DONE


def test_the_first_failure_decides() -> None:
    assert cause(end(0, 1, at_s=5), end(1, None, 11, at_s=1)) is Cause.KILLED
    judged = judge([end(0, 3, at_s=1), end(1, None, 9, at_s=5)], {0: ["boom"]})
    assert judged.cause is Cause.USER_ERROR
    assert judged.evidence["first_rank"] == 0 and judged.evidence["last_lines"] == ["boom"]


def test_a_kill_from_outside_is_not_hidden_by_what_it_broke_a_moment_earlier_on_the_clock() -> None:
    assert cause(end(0, 1, at_s=1.00), end(1, None, 9, at_s=1.02)) is Cause.KILLED


def test_a_shells_128_plus_n_is_the_signal() -> None:
    assert cause(end(0, 137)) is Cause.KILLED
    assert cause(end(0, 255)) is Cause.USER_ERROR


def test_a_rank_that_only_lost_its_peer_is_not_the_cause() -> None:
    assert cause(end(0, 75, at_s=1), end(1, 2, at_s=3)) is Cause.USER_ERROR
    assert cause(end(0, 75), end(1, 75)) is Cause.NETWORK
    assert cause(end(0, 75, at_s=1), end(1, None, 15, at_s=3, ours=True)) is Cause.NETWORK


def test_torchrun_says_how_its_rank_ended() -> None:
    report = ["Root Cause (first observed failure):", "  exitcode  : -9 (pid: 4711)", "  Signal 9 (SIGKILL)"]
    assert cause(end(0, 1), lines={0: report}) is Cause.KILLED
    assert cause(end(0, 1), lines={0: ["Root Cause", "exitcode : 1 (pid: 3)"]}) is Cause.USER_ERROR


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried", Cause.OOM_CARD),
        ("RuntimeError: CUDA out of memory", Cause.OOM_CARD),
        ("MemoryError", Cause.OOM_HOST),
        ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8 TiB", Cause.OOM_HOST),
        ("OSError: [Errno 28] No space left on device", Cause.STORAGE),
        ("ValueError: MemoryError is a word here", Cause.USER_ERROR),
    ],
)
def test_marks_in_the_last_lines_name_it(line: str, wanted: Cause) -> None:
    assert cause(end(0, 1), lines={0: [line]}) is wanted


def test_a_kill_while_the_kernel_was_short_of_memory_is_oom() -> None:
    assert cause(end(0, None, 9), oom_kills=1) is Cause.OOM_HOST
    assert cause(end(0, None, 9), oom_kills=0) is Cause.KILLED


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (OrderKind.STOP, Cause.STOPPED),
        (OrderKind.PAUSE, Cause.PAUSED),
        (OrderKind.PREEMPT, Cause.PREEMPTED),
        (OrderKind.LIMIT, Cause.LIMIT),
    ],
)
def test_what_we_ended_is_the_orders(kind: OrderKind, wanted: Cause) -> None:
    assert cause(end(0, None, 15, ours=True), order=kind) is wanted
    assert cause(end(0, 1, ours=True), order=kind) is wanted
    assert cause(end(0, 0), end(1, 0), order=kind, verdict_at=17) is wanted


def test_ranks_that_ended_well_before_they_were_told_are_done() -> None:
    assert cause(end(0, 0), order=OrderKind.STOP) is Cause.DONE


def test_a_crash_during_an_order_before_any_signal_is_the_programs_own() -> None:
    judged = judge([end(0, 1)], {}, order=OrderKind.PAUSE)
    assert judged.cause is Cause.USER_ERROR and judged.evidence["order"] == "pause"
