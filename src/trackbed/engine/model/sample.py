"""Text out of a decoder."""

import torch

from trackbed.engine.model.decoder import Decoder, Past
from trackbed.engine.model.shape import END_OF_DOCUMENT


@torch.no_grad()
def sample(model: Decoder, prompt: bytes, *, tokens: int, temperature: float, seed: int) -> bytes:
    """Return the prompt and up to `tokens` bytes that the model goes on with; the same bytes for the same seed.

    It stops at the end of a document, and where the model's context is full.
    """
    generator = torch.Generator().manual_seed(seed)
    written = list(prompt[: model.shape.seq - 1])
    pasts = [Past() for _ in range(model.shape.layers)]
    logits_BTV = model(torch.tensor([[END_OF_DOCUMENT, *written]]), pasts)
    for _ in range(min(tokens, model.shape.seq - len(written) - 1)):
        chances_V = torch.softmax(logits_BTV[0, -1].float() / temperature, dim=-1)
        token = int(torch.multinomial(chances_V, 1, generator=generator))
        if token == END_OF_DOCUMENT:
            break
        written.append(token)
        logits_BTV = model(torch.tensor([[token]]), pasts)
    return bytes(written)
