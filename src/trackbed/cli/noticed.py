"""What was noticed about a run, for people: its anomalies, its slow steps."""

from typing import TYPE_CHECKING

from trackbed.base.units import format_duration
from trackbed.cli import output
from trackbed.cli.context import say, word

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trackbed.wire.marks import Anomaly, StepsReply

_SHOWN = 20  # of the slow steps; all: --json


def marks_text(marks: "list[str]") -> str:
    """`!spike !stalled`, in the chosen language."""
    return " ".join(f"!{word(f'anomaly.{mark}', mark)}" for mark in marks)


def print_anomalies(anomalies: "list[Anomaly]") -> None:
    if not anomalies:
        return
    output.line()
    names = ("noticed", "metric", "step", "points", "value", "worst", "expected", "since", "until", "waits_for")
    rows = [
        [
            word(f"anomaly.{one.kind}", one.kind), one.key, _steps(one), one.count, *_values(one),
            output.when(one.opened_us), say("cli.still") if one.open else output.when(one.closed_us), one.waits_for,
        ]
        for one in anomalies
    ]  # fmt: skip
    output.table([say(f"cli.word.{name}") for name in names], rows)


def _steps(one: "Anomaly") -> str:
    return str(one.first_step) if one.first_step == one.last_step else f"{one.first_step}–{one.last_step}"


def _values(one: "Anomaly") -> list[str]:
    if one.kind == "stalled":  # seconds, and told by `since`
        return ["", "", format_duration(float(one.expected)) if one.expected is not None else ""]
    return [output.number(one.value), output.number(one.worst), output.number(one.expected)]


def print_steps(steps: "StepsReply") -> None:
    """Usual time and split, the slowest steps with what they were spent on, and the ranks where there are several."""
    if steps.median_s is None:
        output.note(say("cli.no_steps"))
        return
    split = f": {_split(steps.split)}" if steps.split else ""
    output.line(say("cli.steps_usual", steps=steps.steps, usual=_seconds(steps.median_s), split=split))
    if steps.slow:
        kept = sorted(steps.slow, key=lambda one: -one.seconds)[:_SHOWN]
        code = "cli.steps_slow" if len(kept) == steps.slow_total else "cli.steps_slow_kept"
        output.line()
        output.line(say(code, total=steps.slow_total, kept=len(kept)))
        names = ("step", "attempt", "took", "usual", "cause", "split", "straggler")
        rows = [
            [
                one.step, one.attempt or "", _seconds(one.seconds), _seconds(one.median_s), one.cause, _split(one.split),
                "" if one.straggler is None else f"{one.straggler} ({_seconds(one.straggler_s)})",
            ]
            for one in sorted(kept, key=lambda one: (one.attempt, one.step))
        ]  # fmt: skip
        output.table([say(f"cli.word.{name}") for name in names], rows)
    if len(steps.ranks) > 1:
        output.line()
        head = [say(f"cli.word.{name}") for name in ("rank", "step", "works")]
        output.table(head, [[one.rank, one.step, _seconds(one.work_s)] for one in steps.ranks])


def _split(split: "Mapping[str, float]") -> str:
    parts = sorted(split.items(), key=lambda part: -part[1])
    return ", ".join(f"{name} {_seconds(spent)}" for name, spent in parts if spent > 0)


def _seconds(value: float) -> str:
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.2f} s" if value < 60 else format_duration(value)
