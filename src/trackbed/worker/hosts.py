"""The two worlds around a rank: the SDK in a job, or files and the screen."""

import json
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from trackbed.client.run import Run
from trackbed.engine.report import MetricDefinition


class JobHost:
    """Passes everything on to the run that this process joined. What a person may read goes to stdout, which is kept."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def should_stop(self, step: int) -> bool:
        return self._run.should_stop(step)

    def define(self, definition: MetricDefinition) -> None:
        self._run.define_metric(
            definition.key, goal=definition.goal, unit=definition.unit, deterministic=definition.deterministic
        )

    def log(self, metrics: dict[str, float], *, step: int) -> None:
        self._run.log(metrics, step=step)

    def phase(self, name: str) -> AbstractContextManager[object]:
        return self._run.phase(name)

    def progress(self, step: int, steps_total: int, seconds_left: float | None) -> None:
        self._run.progress(step, steps_total, seconds_left)

    def say(self, line: str) -> None:
        say(line)


class AloneHost:
    """Without a job: metrics go to `metrics.jsonl` of the output, and nobody asks to stop."""

    def __init__(self, output: Path, *, first: bool) -> None:
        self._path = output / "metrics.jsonl"
        self._first = first
        if first:
            output.mkdir(parents=True, exist_ok=True)

    def should_stop(self, step: int) -> bool:
        del step
        return False

    def define(self, definition: MetricDefinition) -> None:
        del definition

    def log(self, metrics: dict[str, float], *, step: int) -> None:
        if not self._first:
            return
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, **metrics}) + "\n")

    def phase(self, name: str) -> AbstractContextManager[object]:
        del name
        return nullcontext()

    def progress(self, step: int, steps_total: int, seconds_left: float | None) -> None:
        del step, steps_total, seconds_left

    def say(self, line: str) -> None:
        say(line)


def say(line: str) -> None:
    """Show a line at once, also through a pipe."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
