"""Where the loop stands. No torch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LoopState:
    """`consumed` is the whole state of the data: global samples used so far, by all ranks, over all epochs.

    `tokens` only counts: targets that the loss was taken over.
    """

    step: int = 0
    consumed: int = 0
    tokens: int = 0
