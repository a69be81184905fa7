"""The learning rate, a pure function of the step. No torch, no state."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """Straight up over `warmup` steps, then half a cosine down to `floor` times the peak at the last step."""

    peak: float
    warmup: int
    steps: int
    floor: float = 0.1

    def at(self, step: int) -> float:
        """Return the rate of update `step`, counted from 1."""
        if step <= self.warmup:
            return self.peak * step / self.warmup
        done = (step - self.warmup) / max(1, self.steps - self.warmup)
        return self.peak * (self.floor + (1 - self.floor) * 0.5 * (1 + math.cos(math.pi * min(1.0, done))))
