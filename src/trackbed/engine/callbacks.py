"""What the loop tells and asks the outside: the port `Host`, and `Voice`, which decides how often.

The engine never knows who is behind the port. In a job it is the SDK; on its own, files and the screen.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from trackbed.engine.report import METRICS, MetricDefinition, StepReport, step_line


class Host(Protocol):
    """The world around a rank. Every rank has one; only the first rank's defines and says."""

    def should_stop(self, step: int) -> bool:
        """Asked once a step on every rank; all ranks get the same answer for the same step."""
        ...

    def define(self, definition: MetricDefinition) -> None: ...

    def log(self, metrics: dict[str, float], *, step: int) -> None:
        """Must not block and not raise. Every rank logs every step, later ranks without metrics."""
        ...

    def phase(self, name: str) -> AbstractContextManager[object]:
        """Say what this rank does while the block runs: data, compute, communication, save."""
        ...

    def progress(self, step: int, steps_total: int, seconds_left: float | None) -> None: ...

    def say(self, line: str) -> None:
        """Show a person a line."""
        ...


class Voice:
    """Speaks for the loop to its host: every number of a step, a line every few seconds."""

    def __init__(
        self,
        host: Host,
        *,
        first: bool,
        steps_total: int,
        clock_s: Callable[[], float] = time.monotonic,
        line_every_s: float = 5.0,
    ) -> None:
        self._host = host
        self._first = first
        self._steps_total = steps_total
        self._clock_s = clock_s
        self._line_every_s = line_every_s
        self._begun: tuple[int, float] | None = None
        self._line_at = self._progress_at = -line_every_s

    def define_metrics(self) -> None:
        for definition in METRICS if self._first else ():
            self._host.define(definition)

    def say(self, line: str) -> None:
        if self._first:
            self._host.say(line)

    def log(self, metrics: dict[str, float], *, step: int) -> None:
        if self._first:
            self._host.log(metrics, step=step)

    def stepped(self, report: StepReport) -> None:
        """Tell of an update; the first one is not timed, because it also warms the kernels up."""
        if not self._first:
            self._host.log({}, step=report.step)  # what its phases took; nothing else of this rank is news
            return
        now_s = self._clock_s()
        self._host.log(report.metrics(), step=report.step)
        left_s = self._seconds_left(report.step, now_s)
        last = report.step == self._steps_total
        if last or now_s - self._progress_at >= 0.5:
            self._progress_at = now_s
            self._host.progress(report.step, self._steps_total, left_s)
        if last or now_s - self._line_at >= self._line_every_s:
            self._line_at = now_s
            self._host.say(step_line(report, steps_total=self._steps_total, seconds_left=left_s))

    def _seconds_left(self, step: int, now_s: float) -> float | None:
        if self._begun is None:
            self._begun = (step, now_s)
            return None
        done, since_s = step - self._begun[0], now_s - self._begun[1]
        return (self._steps_total - step) * since_s / done
