"""The numbers that make a decoder what it is. No torch."""

from dataclasses import dataclass

END_OF_DOCUMENT = 256
BYTE_VOCABULARY = 257  # every byte, and the end of a document


@dataclass(frozen=True)
class ModelShape:
    """A byte-level decoder. `seq` is the longest context that it is trained on."""

    d_model: int
    layers: int
    heads: int
    seq: int
    vocabulary: int = BYTE_VOCABULARY

    @property
    def head_width(self) -> int:
        return self.d_model // self.heads

    @property
    def hidden(self) -> int:
        """Width of the gated layer: 8/3 of the model's, up to a multiple of 32, as SwiGLU (arXiv:2002.05202) wants."""
        return -(-self.d_model * 8 // 3 // 32) * 32

    @property
    def parameters(self) -> int:
        """Number of trained values."""
        per_layer = 4 * self.d_model**2 + 3 * self.d_model * self.hidden + 2 * self.d_model
        return 2 * self.vocabulary * self.d_model + self.layers * per_layer + self.d_model
