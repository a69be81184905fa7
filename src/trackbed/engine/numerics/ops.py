"""The kernels of the decoder, in plain torch."""

# Shapes: B batch, T tokens, V vocabulary, N heads, H head width (even), R half of H.

import torch
from torch import Tensor
from torch.nn import functional

IGNORED = -100  # a target that is not counted


def rotary_tables(tokens: int, head_width: int, *, base: float = 10_000.0) -> tuple[Tensor, Tensor]:
    """Return cosines and sines, (T, R) float32, of the angles by which positions turn.

    Source: RoFormer, arXiv:2104.09864, section 3.4.2.
    """
    rates_R = base ** (-torch.arange(0, head_width, 2, dtype=torch.float64) / head_width)
    angles_TR = torch.outer(torch.arange(tokens, dtype=torch.float64), rates_R)
    return angles_TR.cos().float(), angles_TR.sin().float()


def rotate(x_BNTH: Tensor, cos_TR: Tensor, sin_TR: Tensor) -> Tensor:
    """Turn query or key heads by their positions; shape and dtype of x, arithmetic in float32."""
    left_BNTR, right_BNTR = x_BNTH.float().chunk(2, dim=-1)
    turned_BNTH = torch.cat(
        (left_BNTR * cos_TR - right_BNTR * sin_TR, left_BNTR * sin_TR + right_BNTR * cos_TR), dim=-1
    )
    return turned_BNTH.to(x_BNTH.dtype)


def summed_loss(logits_BTV: Tensor, target_BT: Tensor) -> Tensor:
    """Return the sum (float32 scalar) of the cross-entropy over all counted targets; the caller divides.

    A sum, because the mean of means is wrong as soon as two micro-batches hold unequal numbers of targets.
    """
    return functional.cross_entropy(
        logits_BTV.float().flatten(0, 1), target_BT.flatten(), ignore_index=IGNORED, reduction="sum"
    )
