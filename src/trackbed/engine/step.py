"""One optimizer update over all ranks: micro-steps, one exchange of gradients, one of scalars, clipping, AdamW."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trackbed.base.errors import BadInput
from trackbed.engine.data.batches import StepBatch
from trackbed.engine.numerics.ops import summed_loss
from trackbed.engine.optim.adamw import set_rate
from trackbed.engine.optim.schedule import Schedule
from trackbed.engine.parallel.ranks import Group
from trackbed.engine.parallel.shard import computing, scale_gradients, sum_of_squares, sync_gradients


@dataclass(frozen=True)
class Update:
    """What an update was. `agreed` is true on every rank where `wish` was true on the first one."""

    loss: float
    lr: float
    grad_norm: float
    agreed: bool


@dataclass(frozen=True)
class Stepper:
    """Takes updates. All ranks call it alike; the numbers that it returns have the same bits on all of them."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    schedule: Schedule
    group: Group
    clip: float
    precision: str

    def update(
        self, batch: StepBatch, *, step: int, wish: bool = False, phase: Callable[[str], AbstractContextManager[object]] = nullcontext
    ) -> Update:  # fmt: skip
        """Take update `step` (counted from 1) with the global batch of which `batch` is this rank's share.

        The loss is divided by the targets of the whole global batch, over ranks and micro-steps, not by those of a
        micro-step: means of means are wrong. `wish` rides along with the scalars, so that asking costs no collective.

        Raises:
            BadInput: `loss_not_finite`, on all ranks, before the parameters are touched.
        """
        lr = self.schedule.at(step)
        with phase("compute"):  # the exchange of gradients happens inside of the last backward pass
            summed = self._accumulate(batch)
            squares_here = sum_of_squares(self.model)
        wished = 1.0 if wish and self.group.ranks.first else 0.0
        with phase("communication"):
            total, squares, agreed = self.group.sums([summed, squares_here, wished])
        loss, grad_norm = total / batch.tokens, math.sqrt(squares)
        if not (math.isfinite(loss) and math.isfinite(grad_norm)):
            raise BadInput("loss_not_finite", step=step, loss=loss, grad_norm=grad_norm, lr=lr)
        with phase("compute"):
            if grad_norm > self.clip:
                scale_gradients(self.model, self.clip / grad_norm)
            set_rate(self.optimizer, lr)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        return Update(loss=loss, lr=lr, grad_norm=grad_norm, agreed=agreed > 0)

    def _accumulate(self, batch: StepBatch) -> float:
        """Add up gradients of the mean loss; return this rank's sum of losses, in float64."""
        losses: list[Tensor] = []
        for index, (token_BT, target_BT) in enumerate(batch.micro):
            sync_gradients(self.model, sync=index == len(batch.micro) - 1)
            loss = self.loss_of(token_BT, target_BT)
            (loss / batch.tokens).backward()
            losses.append(loss.detach().double())
        return torch.stack(losses).sum().item()

    def loss_of(self, token_BT: Tensor, target_BT: Tensor) -> Tensor:
        """Return the summed loss of a micro-batch."""
        device = self.group.device
        with computing(self.group, precision=self.precision):
            logits_BTV = self.model(token_BT.to(device))
        return summed_loss(logits_BTV, target_BT.to(device))
