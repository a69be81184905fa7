"""The ranks of a run: identity from the launcher's variables, and the collectives outside of the model.

Every tensor that goes into a collective of ours is contiguous: gloo gives wrong numbers for others, without an error.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

import msgspec
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from trackbed.base.errors import BadInput

AXIS = "shard"
# What gloo and NCCL say, in torch 2.13; they have no class of their own for it.
_LOST_MARKS = (
    "Connection closed by peer", "Connection reset by peer", "Broken pipe", "Timed out waiting", "timed out",
    "Connection refused", "Socket closed", "NCCL communicator was aborted",
)  # fmt: skip


@dataclass(frozen=True)
class Ranks:
    """Who this process is among how many. Without a launcher: alone."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> "Ranks":
        """Read RANK, WORLD_SIZE, LOCAL_RANK.

        Raises:
            BadInput: `ranks_unreadable`, they are no numbers or do not fit each other.
        """
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
        given = {name: env.get(name, "") for name in names}
        try:
            rank, world_size = int(given["RANK"] or 0), int(given["WORLD_SIZE"] or 1)
            local_rank = int(given["LOCAL_RANK"] or rank)
        except ValueError as fault:
            raise BadInput("ranks_unreadable", given=given) from fault
        if not 0 <= rank < world_size or local_rank < 0:
            raise BadInput("ranks_unreadable", given=given)
        return cls(rank=rank, world_size=world_size, local_rank=local_rank)

    @property
    def first(self) -> bool:
        """The one rank that speaks for all."""
        return self.rank == 0

    @property
    def first_on_node(self) -> bool:
        """The one rank of this node that makes what the node shares."""
        return self.local_rank == 0


class Group:
    """The ranks that train together. Alone, every call is free.

    A rank that dies makes the others fail within `timeout_s`, instead of torch's half hour.
    """

    def __init__(self, ranks: Ranks, *, timeout_s: float) -> None:
        self.ranks = ranks
        self.device = torch.device("cuda", ranks.local_rank) if torch.cuda.is_available() else torch.device("cpu")
        self.mesh: DeviceMesh | None = None
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
        if ranks.world_size > 1:
            dist.init_process_group(
                "nccl" if self.device.type == "cuda" else "gloo",
                rank=ranks.rank,
                world_size=ranks.world_size,
                timeout=timedelta(seconds=timeout_s),
            )
            self.mesh = init_device_mesh(self.device.type, (ranks.world_size,), mesh_dim_names=(AXIS,))

    def sums(self, values: list[float]) -> list[float]:
        """Return the sum of each value over all ranks, the same bits on every rank.

        Gathered and added in the order of ranks in float64: a reduction's own order may depend on the buffer.
        """
        if self.mesh is None:
            return values
        mine = torch.tensor(values, dtype=torch.float64, device=self.device)
        return torch.stack(self._gather(mine)).sum(dim=0).tolist()

    def gather(self, record: Any) -> list[Any]:
        """Return every rank's record (anything JSON can say), in the order of ranks."""
        if self.mesh is None:
            return [record]
        raw = msgspec.json.encode(record)
        longest = int(max(length.item() for length in self._gather(torch.tensor([len(raw)], device=self.device))))
        mine = torch.tensor(list(raw.ljust(longest)), dtype=torch.uint8, device=self.device)
        return [msgspec.json.decode(bytes(part.tolist())) for part in self._gather(mine)]

    def _gather(self, mine: Tensor) -> list[Tensor]:
        mine = mine.contiguous()
        parts = [torch.empty_like(mine) for _ in range(self.ranks.world_size)]
        dist.all_gather(parts, mine)
        return parts

    def barrier(self) -> None:
        if self.mesh is not None:
            self.sums([0.0])

    def close(self) -> None:
        """Leave together: a rank that leaves early can take the exit status of the others with it."""
        if self.mesh is not None:
            self.barrier()
            dist.destroy_process_group()
            self.mesh = None


def whole(tensor: Tensor) -> Tensor:
    """Return all of a tensor, on every rank; a collective where it is sharded."""
    gathered = getattr(tensor, "full_tensor", None)
    return tensor if gathered is None else cast(Tensor, gathered())


def local(tensor: Tensor) -> Tensor:
    """Return the part of a tensor that lies here, sharing its memory."""
    own = getattr(tensor, "to_local", None)
    return tensor if own is None else cast(Tensor, own())


def is_lost_peer(error: BaseException) -> bool:
    """Whether an error says that another rank is gone or silent, rather than that something is wrong here."""
    return isinstance(error, dist.DistError) or (
        isinstance(error, RuntimeError) and any(mark in str(error) for mark in _LOST_MARKS)
    )
