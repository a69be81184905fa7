"""What a checkpoint belongs to, and which tensors a rank's part holds."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from trackbed.engine.optim.adamw import moments
from trackbed.engine.parallel.ranks import local

GENERATOR = "rng.torch"
MODEL, MEAN, SQUARE = "model.", "exp_avg.", "exp_avg_sq."


@dataclass(frozen=True)
class Identity:
    """What a checkpoint belongs to. `config` decides the numbers; `layout` their last bits."""

    config: dict[str, Any]
    config_digest: str
    layout: dict[str, Any]


@dataclass(frozen=True)
class Trained:
    """The tensors that training changes."""

    model: nn.Module
    optimizer: torch.optim.AdamW


def local_tensors(trained: Trained) -> dict[str, Tensor]:
    """Return all tensors of this rank's part by their name in the file; they share memory with the live ones."""
    tensors: dict[str, Tensor] = {}
    for name, weight in trained.model.named_parameters():
        state = moments(trained.optimizer, weight)
        tensors[MODEL + name] = local(weight.detach())
        tensors[MEAN + name] = local(state["exp_avg"])
        tensors[SQUARE + name] = local(state["exp_avg_sq"])
    return tensors


def set_step_counts(trained: Trained, step: int) -> None:
    """Tell AdamW how many updates its moments have seen."""
    for weight in trained.model.parameters():
        moments(trained.optimizer, weight)["step"].fill_(step)
