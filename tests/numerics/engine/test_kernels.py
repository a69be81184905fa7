"""Kernels against plain twins, the cached forward against the whole one, one update against a loop written out."""

import math
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from trackbed.base.errors import BadInput
from trackbed.engine.data.batches import StepBatch
from trackbed.engine.model.decoder import Decoder, Past
from trackbed.engine.model.sample import sample
from trackbed.engine.model.shape import ModelShape
from trackbed.engine.numerics.ops import IGNORED, rotary_tables, rotate, summed_loss
from trackbed.engine.optim.adamw import make_optimizer
from trackbed.engine.optim.schedule import Schedule
from trackbed.engine.parallel.ranks import Group, Ranks
from trackbed.engine.parallel.shard import rows_of
from trackbed.engine.step import Stepper

pytestmark = pytest.mark.torch
SHAPE = ModelShape(d_model=32, layers=2, heads=2, seq=24)


def _model(seed: int = 0) -> Decoder:
    torch.manual_seed(seed)
    model = Decoder(SHAPE)
    nn.init.normal_(model.head.weight, std=0.2)  # a head of zeros would hide everything below it
    return model


def test_a_head_is_turned_as_complex_numbers_are() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, 10, 8)
    turned = rotate(x, *rotary_tables(10, 8))
    plane = torch.complex(x[..., :4].double(), x[..., 4:].double())
    angles = torch.outer(torch.arange(10), 10_000.0 ** (-torch.arange(4) / 4)).double()
    wanted = plane * torch.polar(torch.ones_like(angles), angles)
    torch.testing.assert_close(torch.cat((wanted.real, wanted.imag), -1).float(), turned, atol=1e-5, rtol=0)


def test_the_score_of_two_turned_heads_depends_on_their_distance_only() -> None:
    torch.manual_seed(0)
    tables = rotary_tables(20, 8)
    q, k = (torch.randn(1, 1, 1, 8).expand(1, 1, 20, 8) for _ in range(2))
    scores = (rotate(q, *tables) @ rotate(k, *tables).transpose(-1, -2))[0, 0]
    for distance in (0, 3, 11):
        line = scores.diagonal(-distance)
        torch.testing.assert_close(line, line[:1].expand_as(line), atol=1e-5, rtol=0)


def test_the_loss_is_a_sum_over_counted_targets_only() -> None:
    torch.manual_seed(0)
    logits, target = torch.randn(2, 5, 7), torch.randint(0, 7, (2, 5))
    target[1, 3:] = IGNORED
    plain = -sum(
        float(functional.log_softmax(logits[b, t].double(), -1)[target[b, t]])
        for b in range(2) for t in range(5) if target[b, t] != IGNORED
    )  # fmt: skip
    assert summed_loss(logits, target).item() == pytest.approx(plain, rel=1e-6)
    assert summed_loss(logits, torch.full((2, 5), IGNORED)).item() == 0.0


def test_the_shape_knows_the_number_of_parameters() -> None:
    assert sum(weight.numel() for weight in Decoder(SHAPE).parameters()) == SHAPE.parameters


def test_an_untrained_model_holds_every_byte_equally_likely() -> None:
    loss = summed_loss(Decoder(SHAPE)(torch.zeros((1, 4), dtype=torch.int64)), torch.zeros((1, 4), dtype=torch.int64))
    assert loss.item() / 4 == pytest.approx(math.log(257), abs=1e-5)


def test_a_token_sees_nothing_that_comes_later() -> None:
    model = _model()
    first = torch.randint(0, 257, (1, 24))
    second = first.clone()
    second[0, 15:] = torch.randint(0, 257, (9,))
    with torch.no_grad():
        torch.testing.assert_close(model(first)[:, :15], model(second)[:, :15], atol=1e-5, rtol=0)


def test_one_token_at_a_time_gives_the_logits_of_the_whole() -> None:
    model = _model()
    tokens = torch.randint(0, 257, (1, 24))
    pasts = [Past() for _ in range(SHAPE.layers)]
    with torch.no_grad():
        parts = [model(tokens[:, :7], pasts)] + [model(tokens[:, at : at + 1], pasts) for at in range(7, 24)]
        torch.testing.assert_close(torch.cat(parts, dim=1), model(tokens), atol=1e-5, rtol=0)


def test_a_sample_is_the_same_for_the_same_seed_and_ends_where_the_context_does() -> None:
    model = _model()
    first, again, other = (sample(model, b"def ", tokens=500, temperature=1.0, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert first.startswith(b"def ")
    assert len(first) <= SHAPE.seq


def _stepper(model: nn.Module, *, clip: float, schedule: Schedule) -> Stepper:
    return Stepper(
        model=model,
        optimizer=make_optimizer(model, lr=1.0, weight_decay=0.1),
        schedule=schedule,
        group=Group(Ranks(), timeout_s=1),
        clip=clip,
        precision="fp32",
    )


def _batch(seed: int, micro: int) -> StepBatch:
    torch.manual_seed(seed)
    token, target = torch.randint(0, 257, (2, 4, 24))
    target[3, 5:] = IGNORED  # so that a mean of means would be wrong
    parts = list(zip(token.split(micro), target.split(micro), strict=True))
    return StepBatch(micro=parts, tokens=int((target != IGNORED).sum()))


@pytest.mark.parametrize("micro", [4, 1])
def test_updates_equal_those_of_a_loop_written_out(micro: int) -> None:
    schedule = Schedule(peak=0.01, warmup=2, steps=6)
    ours, plain = _model(3), _model(3)
    stepper = _stepper(ours, clip=0.5, schedule=schedule)
    groups: list[dict[str, Any]] = [
        {"params": [w for w in plain.parameters() if w.dim() > 1], "weight_decay": 0.1},
        {"params": [w for w in plain.parameters() if w.dim() < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.95), foreach=False)
    for step in range(1, 7):
        update = stepper.update(_batch(step, micro), step=step)
        whole = _batch(step, 4)
        ((token, target),) = whole.micro
        loss = functional.cross_entropy(plain(token).flatten(0, 1), target.flatten(), ignore_index=IGNORED)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(plain.parameters(), 0.5)
        for group in optimizer.param_groups:
            group["lr"] = schedule.at(step)
        optimizer.step()
        assert update.loss == pytest.approx(loss.item(), abs=1e-5)
        assert update.grad_norm == pytest.approx(norm.item(), rel=1e-4)
        assert update.lr == schedule.at(step)


def test_a_loss_that_is_no_number_leaves_the_parameters_as_they_were() -> None:
    model = _model()
    with torch.no_grad():
        model.head.weight[0, 0] = math.inf
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    with pytest.raises(BadInput, match="Lower lr"):
        _stepper(model, clip=1.0, schedule=Schedule(1.0, 0, 10)).update(_batch(0, 4), step=3)
    assert all(torch.equal(before[name], weight) for name, weight in model.named_parameters())


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 257])
@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 8])
def test_every_row_lies_on_one_rank_as_torch_cuts_them(rows: int, world_size: int) -> None:
    held = [rows_of(rows, rank=rank, world_size=world_size) for rank in range(world_size)]
    assert [row for part in held for row in part] == list(range(rows))
    if rows:
        chunks = torch.arange(rows).chunk(world_size)
        assert [list(part) for part in held if part] == [chunk.tolist() for chunk in chunks]
