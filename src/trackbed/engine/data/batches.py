"""A rank's share of a step, cut out of the shard."""

# Shapes: B micro-batch, T tokens.

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from trackbed.engine.data.order import SampleOrder, share
from trackbed.engine.numerics.ops import IGNORED
from trackbed.formats.tokens import Shard


@dataclass(frozen=True)
class StepBatch:
    """What one rank does in one step. `tokens` counts the targets of all ranks: what the loss is divided by."""

    micro: list[tuple[Tensor, Tensor]]  # (token_BT, target_BT), int64
    tokens: int


class Windows:
    """A shard as windows of `seq` tokens and the `seq` tokens that follow each by one.

    Window i begins at token i·seq; each token but the first is a target exactly once. The last window is filled up with
    targets that are not counted.
    """

    def __init__(self, shard: Shard, seq: int) -> None:
        self.shard = shard
        self.seq = seq
        self.targets = len(shard.tokens) - 1
        self.count = -(-self.targets // seq)

    def targets_of(self, index: int) -> int:
        """Return how many targets of a window are counted."""
        return min(self.seq, self.targets - index * self.seq)

    def cut(self, indices: list[int]) -> tuple[Tensor, Tensor]:
        """Return tokens and targets of these windows, each (B, T) int64."""
        token_BT = np.zeros((len(indices), self.seq), dtype=np.int64)
        target_BT = np.full((len(indices), self.seq), IGNORED, dtype=np.int64)
        for row, index in enumerate(indices):
            begin, counted = index * self.seq, self.targets_of(index)
            token_BT[row, :counted] = self.shard.tokens[begin : begin + counted]
            target_BT[row, :counted] = self.shard.tokens[begin + 1 : begin + counted + 1]
        return torch.from_numpy(token_BT), torch.from_numpy(target_BT)

    def nothing(self) -> tuple[Tensor, Tensor]:
        """Return one window of which no target is counted: what a rank does while others have more."""
        return torch.zeros((1, self.seq), dtype=torch.int64), torch.full((1, self.seq), IGNORED)

    def counted(self, target_BT: Tensor) -> int:
        """Return how many targets of a batch are counted."""
        return int((target_BT != IGNORED).sum())


@dataclass(frozen=True)
class BatchPlan:
    """How a global batch is cut: `batch` windows a step, `micro_batch` at a time on each of `world_size` ranks."""

    batch: int
    micro_batch: int
    rank: int
    world_size: int


def step_batch(windows: Windows, order: SampleOrder, plan: BatchPlan, *, consumed: int) -> StepBatch:
    """Return this rank's part of the global batch that begins at `consumed`.

    The count of all ranks' targets is arithmetic, so no rank has to ask another.
    """
    mine = [order.at(position) for position in share(
        consumed, batch=plan.batch, rank=plan.rank, world_size=plan.world_size
    )]  # fmt: skip
    everyone = (order.at(position) for position in range(consumed, consumed + plan.batch))
    return StepBatch(
        micro=[windows.cut(mine[at : at + plan.micro_batch]) for at in range(0, len(mine), plan.micro_batch)],
        tokens=sum(windows.targets_of(index) for index in everyone),
    )


def held_out_batches(windows: Windows, plan: BatchPlan, *, most: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield a rank's part of a fixed draw of at most `most` windows, the same draw for every layout."""
    order = SampleOrder(windows.count, seed)
    mine = [order.at(position) for position in range(plan.rank, min(most, windows.count), plan.world_size)]
    for at in range(0, len(mine), plan.micro_batch):
        yield windows.cut(mine[at : at + plan.micro_batch])
