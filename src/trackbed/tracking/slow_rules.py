"""Which steps took too long, on what they spent it, and which rank the others waited for; and when a run has stopped moving. Pure.

A rank that uses `run.phase(...)` logs `time/step_s` and `time/<phase>_s` with its steps. Of one that does not, the time
between the points of two steps is all there is, and it is enough to see that a step was slow.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

import msgspec

PREFIX, SUFFIX = "time/", "_s"
STEP = "time/step_s"
WAITING = "communication"  # the phase in which a rank waits for the others: no work of its own
OTHER = "other"  # the part of a step that no phase claims
WINDOW = 64
WARM = 20  # steps of an attempt before one may be called slow
SLOW_TIMES = 2.5  # the median
SLOW_SIGMAS = 8.0
SLOW_EXCESS_S = 0.05
STRAGGLES_TIMES = 1.5  # the median of the others
REMEMBERED = 32  # steps for which the other ranks may still report
STUCK_TIMES = 10.0  # the usual time of a step
STUCK_LEAST_S = 60.0
MOST_RANKS = 4096
_SIGMA = 1.4826


class Beat(msgspec.Struct, array_like=True):
    """The last steps of one rank. `work`: the last few steps' seconds outside of communication."""

    version: int = 0
    step: int = -(2**63)
    ts: int = 0
    gaps: list[float] = []
    work: dict[int, float] = {}
    usual_work_s: float = 0.0


class Slow(msgspec.Struct, array_like=True):
    """A slow step of the lowest rank. `split`: seconds by phase; `cause`: the phase that took most more than usual."""

    step: int
    ts: int
    seconds: float
    median_s: float
    attempt: int = 0
    split: dict[str, float] = {}
    cause: str = ""
    straggler: int = -1  # the rank that the others waited for; -1: none, or nobody knows
    straggler_s: float = 0.0


class Pace(msgspec.Struct, array_like=True):
    """What has to be known of a run's steps to judge the next one."""

    ranks: dict[int, Beat] = {}
    usual: dict[str, list[float]] = {}  # of the lowest rank, by phase
    slow: list[Slow] = []  # those for which ranks may still report
    slow_total: int = 0
    steps_total: int = 0
    moved_us: int = 0  # when a step last arrived here
    longest_s: float = 0.0  # between two arrivals: what this run has shown that it may take


@dataclass
class _Step:
    ts: int
    phases: dict[str, float]


def feed(pace: Pace, rank: int, version: int, points: list[tuple[str, int, int, float]], now_us: int) -> list[Slow]:
    """Take points (key, step, ts, value) of one rank; return the slow steps that are new or say more than before."""
    if rank not in pace.ranks and len(pace.ranks) >= MOST_RANKS:
        return []
    beat = pace.ranks.setdefault(rank, Beat(version=version))
    if version > beat.version:
        pace.ranks[rank] = beat = Beat(version=version)
    if version < beat.version:
        return []
    told: dict[int, Slow] = {}
    for step, seen in sorted(_steps(points).items()):
        if step < beat.step or (step == beat.step and not seen.phases):
            continue
        moved = step > beat.step
        gap_s = seen.phases.get("step") or (_gap(beat, step, seen.ts) if moved else None)
        if moved:
            beat.step, beat.ts = step, max(seen.ts, beat.ts)
            _arrived(pace, now_us)
        if gap_s is None:
            continue
        work = _work(seen.phases, gap_s)
        beat.work[step] = work
        beat.usual_work_s = work if not beat.usual_work_s else beat.usual_work_s + (work - beat.usual_work_s) / 16
        while len(beat.work) > REMEMBERED:
            del beat.work[min(beat.work)]
        if rank == min(pace.ranks):
            slow = _judge(pace, beat, step, seen, gap_s)
            if slow is not None:
                told[step] = slow
        beat.gaps.append(gap_s)
        del beat.gaps[:-WINDOW]
    for slow in _straggling(pace):
        told[slow.step] = slow
    return list(told.values())


def _steps(points: list[tuple[str, int, int, float]]) -> dict[int, _Step]:
    found: dict[int, _Step] = {}
    for key, step, ts, value in points:
        if key.startswith("system/"):
            continue  # their step is a time
        at = found.setdefault(step, _Step(ts, {}))
        if key.startswith(PREFIX) and key.endswith(SUFFIX) and 0 <= value < 1e9:
            at.phases[key[len(PREFIX) : -len(SUFFIX)]] = value
    return found


def _gap(beat: Beat, step: int, ts: int) -> float | None:
    if not beat.ts or ts <= beat.ts:
        return None
    return (ts - beat.ts) / 1e6 / (step - beat.step)


def _arrived(pace: Pace, now_us: int) -> None:
    if pace.moved_us:
        pace.longest_s = max(pace.longest_s, (now_us - pace.moved_us) / 1e6)
    pace.moved_us = max(pace.moved_us, now_us)


def _work(phases: Mapping[str, float], gap_s: float) -> float:
    return max(0.0, gap_s - phases.get(WAITING, 0.0))


def _judge(pace: Pace, beat: Beat, step: int, seen: _Step, gap_s: float) -> Slow | None:
    pace.steps_total += 1
    split = {name: spent for name, spent in seen.phases.items() if name != "step"}
    if split:
        split[OTHER] = max(0.0, gap_s - sum(split.values()))
    slow: Slow | None = None
    if len(beat.gaps) >= WARM:
        usual = median(beat.gaps)
        sigma = _SIGMA * median([abs(one - usual) for one in beat.gaps])
        if gap_s > max(SLOW_TIMES * usual, usual + SLOW_SIGMAS * sigma, usual + SLOW_EXCESS_S):
            over = {name: spent - median(pace.usual.get(name) or [0.0]) for name, spent in split.items()}
            cause = max(over, key=over.__getitem__) if over else ""
            slow = Slow(step, seen.ts, gap_s, usual, beat.version >> 24, split, cause)
            pace.slow_total += 1
            pace.slow.append(slow)
            del pace.slow[:-REMEMBERED]
    for name, spent in split.items():
        usual_of = pace.usual.setdefault(name, [])
        usual_of.append(spent)
        del usual_of[:-WINDOW]
    return slow


def _straggling(pace: Pace) -> list[Slow]:
    """Look for the rank that worked longest in a slow step while the others waited; ranks report one after another."""
    told: list[Slow] = []
    for slow in pace.slow:
        spent = {rank: beat.work[slow.step] for rank, beat in pace.ranks.items() if slow.step in beat.work}
        if len(spent) < 2:
            continue
        last = max(spent, key=spent.__getitem__)
        others = median(value for rank, value in spent.items() if rank != last)
        named = last if spent[last] > max(STRAGGLES_TIMES * others, others + SLOW_EXCESS_S) else -1
        if named != slow.straggler:
            slow.straggler, slow.straggler_s = named, spent[last] if named >= 0 else 0.0
            told.append(slow)
    return told


@dataclass(frozen=True)
class Stuck:
    """No step for too long. `behind`: ranks that are steps behind the first ones, for which those wait."""

    step: int
    since_us: int
    usual_s: float
    limit_s: float
    behind: tuple[int, ...] = ()


def stuck(pace: Pace, now_us: int, *, since_us: int = 0) -> Stuck | None:
    """Return since when the run makes no step, if that is ten times its usual step and longer than ever before.

    `since_us`: silence before it was not the run's (this server was not there to hear it).
    """
    moving = {rank: beat for rank, beat in pace.ranks.items() if beat.gaps}
    if not moving:
        return None
    beat = moving[min(moving)]
    usual_s = median(beat.gaps)
    limit_s = max(STUCK_LEAST_S, STUCK_TIMES * usual_s, 2.0 * pace.longest_s)
    if now_us - max(pace.moved_us, since_us) < limit_s * 1e6:
        return None
    newest = max(one.version for one in moving.values())
    here = {rank: one.step for rank, one in moving.items() if one.version == newest}
    furthest = max(here.values())
    behind = tuple(sorted(rank for rank, step in here.items() if step < furthest))
    return Stuck(furthest, pace.moved_us, usual_s, limit_s, behind[:16])
