"""The last stage: evaluate on what was held out, and leave the model, a sample and a report in the output folder."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from trackbed.engine.callbacks import Voice
from trackbed.engine.checkpoint.cursor import LoopState
from trackbed.engine.config import RunConfig
from trackbed.engine.data.batches import BatchPlan, Windows, held_out_batches
from trackbed.engine.data.corpus import Corpus
from trackbed.engine.model.decoder import Decoder
from trackbed.engine.model.sample import sample
from trackbed.engine.model.shape import END_OF_DOCUMENT, ModelShape
from trackbed.engine.parallel.shard import full_parameters
from trackbed.engine.report import FinalReport
from trackbed.engine.step import Stepper

_DRAW = 0x5EED  # seed of the evaluation's draw: the same samples for every run over the same corpus


@torch.no_grad()
def evaluate(stepper: Stepper, corpus: Corpus, config: RunConfig) -> tuple[float, int]:
    """Return the mean loss over the held-out targets that were drawn, and their number; a collective.

    Every rank makes the same number of forward passes (sharded parameters are gathered together), with an empty share
    where its part of the draw is shorter.
    """
    windows = Windows(corpus.held_out, config.numbers.shape.seq)
    ranks = stepper.group.ranks
    most = config.ending.eval_samples
    plan = BatchPlan(batch=most, micro_batch=config.micro_batch, rank=ranks.rank, world_size=ranks.world_size)
    share = -(-min(most, windows.count) // ranks.world_size)
    passes = -(-share // config.micro_batch)
    mine = list(held_out_batches(windows, plan, most=most, seed=_DRAW))
    mine += [windows.nothing()] * (passes - len(mine))
    summed = counted = 0.0
    stepper.model.eval()
    for token_BT, target_BT in mine:
        summed += stepper.loss_of(token_BT, target_BT).double().item()
        counted += windows.counted(target_BT)
    stepper.model.train()
    total, tokens = stepper.group.sums([summed, counted])
    return total / tokens, int(tokens)


@dataclass(frozen=True)
class Result:
    """What the loop hands over: where it ended, where to write, on what it ran."""

    state: LoopState
    output: Path
    layout: dict[str, Any]


def finish(stepper: Stepper, corpus: Corpus, config: RunConfig, voice: Voice, *, result: Result) -> None:
    """Evaluate, then let the first rank write model, sample and report; a collective."""
    numbers = config.numbers
    loss, tokens = evaluate(stepper, corpus, config)
    voice.log({"eval/loss": loss, "eval/tokens": float(tokens)}, step=numbers.steps)
    voice.say(f"held-out loss {loss:.4f} nats a byte over {tokens} tokens of {corpus.held_out_files} files")
    weights = full_parameters(stepper.model)
    if stepper.group.ranks.first:
        model = Decoder(numbers.shape)
        model.load_state_dict(weights)
        text = sample(
            model,
            config.ending.prompt.encode(),
            tokens=config.ending.sample_tokens,
            temperature=config.ending.temperature,
            seed=numbers.seed,
        )
        report = FinalReport(
            recipe=config.recipe,
            steps=numbers.steps,
            parameters=numbers.shape.parameters,
            tokens_trained=result.state.tokens,
            eval_loss=loss,
            eval_tokens=tokens,
            sample=text.decode("utf-8", "replace"),
            corpus=corpus.facts(),
            layout=result.layout,
            params=config.params,
        )
        _write(result.output, weights, numbers.shape, report, text)
        voice.say("sample:\n" + report.sample)
    stepper.group.barrier()


def _write(output: Path, weights: dict[str, torch.Tensor], shape: ModelShape, report: FinalReport, text: bytes) -> None:
    folder = output / "model"
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / "model.safetensors")
    _write_json(folder / "config.json", {
        "architecture": "trackbed.decoder/1", "d_model": shape.d_model, "layers": shape.layers, "heads": shape.heads,
        "hidden": shape.hidden, "context": shape.seq, "vocabulary": shape.vocabulary, "parameters": shape.parameters,
    })  # fmt: skip
    _write_json(folder / "tokenizer.json", {
        "type": "bytes", "vocabulary": shape.vocabulary, "end_of_document": END_OF_DOCUMENT,
        "about": "token n below 256 is the byte n; 256 ends a document",
    })  # fmt: skip
    (output / "sample.txt").write_bytes(text + b"\n")
    _write_json(output / "report.json", report.document())


def _write_json(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
