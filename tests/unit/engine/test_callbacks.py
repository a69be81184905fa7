"""How often the loop speaks."""

from contextlib import AbstractContextManager, nullcontext

from trackbed.engine.callbacks import Voice
from trackbed.engine.report import METRICS, MetricDefinition, StepReport


class Listener:
    def __init__(self) -> None:
        self.metrics: dict[int, dict[str, float]] = {}
        self.progress_steps: list[tuple[int, float | None]] = []
        self.lines: list[str] = []
        self.defined: list[MetricDefinition] = []

    def should_stop(self, step: int) -> bool:
        return False

    def define(self, definition: MetricDefinition) -> None:
        self.defined.append(definition)

    def log(self, metrics: dict[str, float], *, step: int) -> None:
        self.metrics[step] = metrics

    def phase(self, name: str) -> AbstractContextManager[object]:
        return nullcontext()

    def progress(self, step: int, steps_total: int, seconds_left: float | None) -> None:
        self.progress_steps.append((step, seconds_left))

    def say(self, line: str) -> None:
        self.lines.append(line)


def _train(listener: Listener, *, first: bool, steps: int, step_s: float) -> None:
    now = [0.0]
    voice = Voice(listener, first=first, steps_total=steps, clock_s=lambda: now[0])
    voice.define_metrics()
    for step in range(1, steps + 1):
        now[0] += step_s
        voice.stepped(StepReport(step=step, loss=2.5, lr=1e-3, grad_norm=0.5, tokens=1000, seconds=step_s))


def test_every_step_is_logged_but_lines_come_every_five_seconds() -> None:
    listener = Listener()
    _train(listener, first=True, steps=100, step_s=0.2)
    assert list(listener.metrics) == list(range(1, 101))
    assert len(listener.lines) == 5
    assert listener.lines[-1].startswith("step 100/100  loss 2.5000")
    assert 20 <= len(listener.progress_steps) <= 50
    assert listener.progress_steps[-1] == (100, 0.0)


def test_the_time_left_is_the_steps_left_at_the_pace_so_far() -> None:
    listener = Listener()
    _train(listener, first=True, steps=10, step_s=1.0)
    assert [round(left, 6) for _, left in listener.progress_steps[1:] if left is not None] == [
        8,
        7,
        6,
        5,
        4,
        3,
        2,
        1,
        0,
    ]


def test_only_the_first_rank_speaks_the_others_mark_their_steps() -> None:
    listener = Listener()
    _train(listener, first=False, steps=3, step_s=1.0)
    assert (listener.metrics, listener.lines, listener.defined) == ({1: {}, 2: {}, 3: {}}, [], [])


def test_what_a_reproduction_must_repeat_is_declared() -> None:
    assert {m.key for m in METRICS if m.deterministic} == {"loss", "lr", "grad_norm", "eval/loss", "eval/tokens"}
