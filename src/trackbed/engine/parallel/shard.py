"""A model's parameters cut over the ranks by FSDP2, and which rows a rank holds."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

from trackbed.engine.parallel.ranks import Group, local, whole


def shard_model(model: nn.Module, blocks: list[nn.Module], group: Group, *, precision: str) -> None:
    """Cut every parameter along its rows over the ranks, in place; alone, do nothing.

    The parameters must be equal on all ranks already. `bf16` computes in bfloat16, and keeps parameters, sums of
    gradients and the optimizer in float32. Gradients are added over the ranks, not averaged: the step divides by tokens.
    """
    if group.mesh is None:
        return
    half = torch.bfloat16 if precision == "bf16" else None
    # Inputs stay as they are: the tables of the rotary positions must keep float32.
    policy = MixedPrecisionPolicy(param_dtype=half, reduce_dtype=torch.float32, cast_forward_inputs=False)
    for block in [*blocks, model]:
        fully_shard(block, mesh=group.mesh, mp_policy=policy)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)  # gloo has no scaled sum


def computing(group: Group, *, precision: str) -> AbstractContextManager[object]:
    """Return the context of forward passes: bfloat16 by autocast where there are no shards whose policy says so."""
    if precision == "bf16" and group.mesh is None:
        return torch.autocast(group.device.type, dtype=torch.bfloat16)
    return nullcontext()


def sync_gradients(model: nn.Module, *, sync: bool) -> None:
    """Say whether the next backward pass exchanges gradients; only the last micro-step of a step does."""
    if isinstance(model, FSDPModule):
        model.set_requires_gradient_sync(sync)


def rows_of(rows: int, *, rank: int, world_size: int) -> range:
    """Return the rows of a parameter that a rank holds: blocks of ⌈rows / world size⌉, the last ones shorter or empty."""
    block = -(-rows // world_size)
    return range(min(rows, rank * block), min(rows, (rank + 1) * block))


def local_parameters(model: nn.Module) -> dict[str, Tensor]:
    """Return every parameter's rows that lie here, by name; they share memory with the model."""
    return {name: local(weight.detach()) for name, weight in model.named_parameters()}


def full_parameters(model: nn.Module) -> dict[str, Tensor]:
    """Return copies of all parameters in full, on the CPU of every rank; a collective."""
    return {name: whole(weight.detach()).cpu().clone() for name, weight in model.named_parameters()}


def sum_of_squares(model: nn.Module) -> float:
    """Return Σg² over the gradients that lie here, in float64."""
    norms = [
        torch.linalg.vector_norm(local(weight.grad), dtype=torch.float64)
        for weight in model.parameters()
        if weight.grad is not None
    ]
    return torch.stack(norms).square().sum().item() if norms else 0.0


def scale_gradients(model: nn.Module, factor: float) -> None:
    for weight in model.parameters():
        if weight.grad is not None:
            local(weight.grad).mul_(factor)
