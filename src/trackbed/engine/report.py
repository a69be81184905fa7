"""What a training run says of itself: numbers of a step, numbers of the end, and the lines people read. No torch."""

from dataclasses import asdict, dataclass, field
from typing import Any

from trackbed.base.units import format_duration


@dataclass(frozen=True)
class StepReport:
    """One optimizer update. `loss` is the mean over all target tokens of the global batch, nats per token."""

    step: int
    loss: float
    lr: float
    grad_norm: float
    tokens: int
    seconds: float

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / self.seconds if self.seconds > 0 else 0.0

    def metrics(self) -> dict[str, float]:
        return {"loss": self.loss, "lr": self.lr, "grad_norm": self.grad_norm, "tokens_per_s": self.tokens_per_s}


@dataclass(frozen=True)
class MetricDefinition:
    """How a metric is to be read. `deterministic`: a reproduction must give the same bits."""

    key: str
    goal: str
    unit: str
    deterministic: bool


METRICS = (
    MetricDefinition("loss", "min", "nats/token", True),
    MetricDefinition("lr", "", "", True),
    MetricDefinition("grad_norm", "", "", True),
    MetricDefinition("tokens_per_s", "max", "tokens/s", False),
    MetricDefinition("eval/loss", "min", "nats/token", True),
    MetricDefinition("eval/tokens", "", "tokens", True),
)


@dataclass(frozen=True)
class FinalReport:
    """What the last stage leaves as `report.json`."""

    recipe: str
    steps: int
    parameters: int
    tokens_trained: int
    eval_loss: float
    eval_tokens: int
    sample: str
    corpus: dict[str, Any]
    layout: dict[str, Any]
    params: dict[str, Any] = field(default_factory=dict[str, Any])

    def document(self) -> dict[str, Any]:
        return asdict(self)


def _whole(seconds: float) -> str:
    return f"{seconds:.0f}s" if seconds < 59.5 else format_duration(seconds)


def step_line(report: StepReport, *, steps_total: int, seconds_left: float | None) -> str:
    """`step 120/240  loss 2.8133  lr 2.9e-03  |g| 0.61  4120 tok/s  1m31s left`."""
    left = "" if seconds_left is None else f"  {_whole(seconds_left)} left"
    return (
        f"step {report.step}/{steps_total}  loss {report.loss:.4f}  lr {report.lr:.2e}"
        f"  |g| {report.grad_norm:.2f}  {report.tokens_per_s:.0f} tok/s{left}"
    )
