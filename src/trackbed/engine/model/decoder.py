"""A decoder-only transformer: RMSNorm before each part, rotary positions, fused attention, SwiGLU, an untied head."""

# Shapes: B batch, T tokens, D model width, F hidden width, V vocabulary, N heads, H head width, R half of H, P tokens seen.

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from trackbed.engine.model.shape import ModelShape
from trackbed.engine.numerics.ops import rotary_tables, rotate


class Past:
    """Keys and values of the tokens that a layer has seen; grows as sampling goes on."""

    def __init__(self) -> None:
        self.k_BNPH: Tensor | None = None
        self.v_BNPH: Tensor | None = None

    def extend(self, k_BNTH: Tensor, v_BNTH: Tensor) -> tuple[Tensor, Tensor]:
        """Return what was seen and what is new, in one."""
        if self.k_BNPH is not None and self.v_BNPH is not None:
            k_BNTH = torch.cat((self.k_BNPH, k_BNTH), dim=2)
            v_BNTH = torch.cat((self.v_BNPH, v_BNTH), dim=2)
        self.k_BNPH, self.v_BNPH = k_BNTH, v_BNTH
        return k_BNTH, v_BNTH

    def __len__(self) -> int:
        return 0 if self.k_BNPH is None else self.k_BNPH.shape[2]


class Attention(nn.Module):
    """Causal self-attention; queries and keys are normed, which keeps high learning rates stable (arXiv:2302.05442)."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.qkv = nn.Linear(shape.d_model, 3 * shape.d_model, bias=False)
        self.out = nn.Linear(shape.d_model, shape.d_model, bias=False)

    def forward(self, x_BTD: Tensor, cos_TR: Tensor, sin_TR: Tensor, past: Past | None = None) -> Tensor:
        batch, tokens, width = x_BTD.shape
        split = self.qkv(x_BTD).view(batch, tokens, 3, self.heads, width // self.heads)
        q_BNTH, k_BNTH, v_BNTH = split.permute(2, 0, 3, 1, 4)
        q_BNTH = rotate(functional.rms_norm(q_BNTH, q_BNTH.shape[-1:]), cos_TR, sin_TR)
        k_BNTH = rotate(functional.rms_norm(k_BNTH, k_BNTH.shape[-1:]), cos_TR, sin_TR)
        if past is not None:
            k_BNTH, v_BNTH = past.extend(k_BNTH, v_BNTH)
        # A single token may look at everything before it, so only more than one needs the mask.
        mixed_BNTH = functional.scaled_dot_product_attention(q_BNTH, k_BNTH, v_BNTH, is_causal=tokens > 1)
        return self.out(mixed_BNTH.transpose(1, 2).reshape(batch, tokens, width))


class GatedLayer(nn.Module):
    """SwiGLU, arXiv:2002.05202."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.gate_up = nn.Linear(shape.d_model, 2 * shape.hidden, bias=False)
        self.down = nn.Linear(shape.hidden, shape.d_model, bias=False)

    def forward(self, x_BTD: Tensor) -> Tensor:
        gate_BTF, up_BTF = self.gate_up(x_BTD).chunk(2, dim=-1)
        return self.down(functional.silu(gate_BTF) * up_BTF)


class Block(nn.Module):
    """One layer: the unit that is sharded, and gathered only while it works."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(shape.d_model)
        self.attention = Attention(shape)
        self.gated_norm = nn.RMSNorm(shape.d_model)
        self.gated = GatedLayer(shape)

    def forward(self, x_BTD: Tensor, cos_TR: Tensor, sin_TR: Tensor, past: Past | None = None) -> Tensor:
        x_BTD = x_BTD + self.attention(self.attention_norm(x_BTD), cos_TR, sin_TR, past)
        return x_BTD + self.gated(self.gated_norm(x_BTD))


class Decoder(nn.Module):
    """Tokens in, logits out. Parameters are float32; made equal on every rank by seeding before the call."""

    cos_TR: Tensor  # noqa: N815 - a buffer carries its shape like any tensor
    sin_TR: Tensor  # noqa: N815

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.shape = shape
        self.embed = nn.Embedding(shape.vocabulary, shape.d_model)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.d_model)
        self.head = nn.Linear(shape.d_model, shape.vocabulary, bias=False)
        cos_TR, sin_TR = rotary_tables(shape.seq, shape.head_width)
        self.register_buffer("cos_TR", cos_TR, persistent=False)
        self.register_buffer("sin_TR", sin_TR, persistent=False)
        self._initialize()

    def _initialize(self) -> None:
        """Normal weights of variance 1/fan-in, residual outputs divided by √(2·layers), a head of zeros.

        The zero head makes the first loss exactly ln(vocabulary): a check that costs nothing.
        """
        for name, weight in self.named_parameters():
            if weight.dim() < 2:
                continue
            spread = 0.5 if name == "embed.weight" else weight.shape[1] ** -0.5
            if name.endswith(("attention.out.weight", "gated.down.weight")):
                spread /= math.sqrt(2 * self.shape.layers)
            nn.init.normal_(weight, std=spread)
        nn.init.zeros_(self.head.weight)

    def forward(self, token_BT: Tensor, pasts: list[Past] | None = None) -> Tensor:
        """Return logits (B, T, V) of windows of at most `shape.seq` tokens.

        With `pasts` (one a layer, grown in place) the tokens go on where those end: all at once if they are empty, one
        at a time after that.
        """
        begin = len(pasts[0]) if pasts else 0
        cos_TR = self.cos_TR[begin : begin + token_BT.shape[1]]
        sin_TR = self.sin_TR[begin : begin + token_BT.shape[1]]
        x_BTD = self.embed(token_BT)
        for index, block in enumerate(self.blocks):
            x_BTD = block(x_BTD, cos_TR, sin_TR, pasts[index] if pasts else None)
        return self.head(self.norm(x_BTD))
