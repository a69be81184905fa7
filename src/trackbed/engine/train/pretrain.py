"""The recipe `pretrain` on one rank: prepare, resume if there is something to resume from, step, save, finish.

The order of a step is the promise: ask to stop, cut the batch at the cursor, update, tell, save. So a checkpoint of step n
holds exactly what n updates made, and the run that goes on from it cannot be told from one that was never interrupted.
"""

import platform
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import torch

from trackbed.engine.callbacks import Host, Voice
from trackbed.engine.checkpoint.cursor import LoopState
from trackbed.engine.checkpoint.restore import load_weights, restore
from trackbed.engine.checkpoint.save import clear_leftovers, prune, save
from trackbed.engine.checkpoint.state import Identity, Trained
from trackbed.engine.config import RunConfig, digest_of
from trackbed.engine.data.batches import BatchPlan, Windows, step_batch
from trackbed.engine.data.corpus import Corpus, prepare
from trackbed.engine.data.order import SampleOrder
from trackbed.engine.model.decoder import Decoder
from trackbed.engine.numerics import exact
from trackbed.engine.optim.adamw import make_optimizer
from trackbed.engine.parallel.ranks import Group
from trackbed.engine.parallel.shard import shard_model
from trackbed.engine.report import StepReport
from trackbed.engine.step import Stepper
from trackbed.engine.train.finish import Result, finish

KEPT_ON_DISK = 2


class Outcome(StrEnum):
    FINISHED = "finished"
    STOPPED = "stopped"  # asked to; a checkpoint of that step is on the disk


@dataclass(frozen=True)
class Folders:
    """Where this rank reads and writes. `latest`: the checkpoint to go on from; `weights`: a model to begin with."""

    corpus: Path
    output: Path
    checkpoints: Path
    scratch: Path
    latest: Path | None = None
    weights: Path | None = None


def pretrain(config: RunConfig, folders: Folders, host: Host, *, group: Group, threads: int) -> Outcome:
    """Train to the last step, or to the one at which the host says stop. All ranks call it alike.

    Raises:
        BadInput, Damaged, Conflict: as the stairs below; the process group is then left to die with the process.
    """
    exact.settle(exact=config.exact, threads=threads)
    corpus = prepare(
        folders.corpus, folders.scratch, share=config.numbers.held_out, builder=group.ranks.first_on_node
    )  # fmt: skip
    loop = _Loop(config, folders, host, corpus, _build(config, group, corpus, threads=threads))
    loop.begin()
    outcome = loop.run()
    if outcome is Outcome.FINISHED:
        finish(loop.machine.stepper, corpus, config, loop.voice, result=loop.result())
    return outcome


def layout_of(config: RunConfig, group: Group, *, threads: int) -> dict[str, Any]:
    """Return what the last bits depend on, besides the settings."""
    cpu = f"cpu {platform.machine()} {torch.backends.cpu.get_cpu_capability()}"
    return {
        "world_size": group.ranks.world_size,
        "micro_batch": config.micro_batch,
        "threads": threads,
        "exact": config.exact,
        "device": torch.cuda.get_device_name() if group.device.type == "cuda" else cpu,
        "torch": str(torch.__version__),
    }


@dataclass(frozen=True)
class _Machine:
    """What takes the steps: sharded model, optimizer, windows of the corpus in their order."""

    trained: Trained
    stepper: Stepper
    identity: Identity
    windows: Windows
    order: SampleOrder
    plan: BatchPlan
    group: Group


def _build(config: RunConfig, group: Group, corpus: Corpus, *, threads: int) -> _Machine:
    numbers, ranks = config.numbers, group.ranks
    exact.seed(numbers.seed)  # so that all ranks begin with the same parameters
    model = Decoder(numbers.shape).to(group.device)
    shard_model(model, list(model.blocks), group, precision=numbers.precision)
    optimizer = make_optimizer(model, lr=numbers.lr, weight_decay=numbers.weight_decay)
    document = {**numbers.document(), "data": corpus.digest}
    windows = Windows(corpus.train, numbers.shape.seq)
    return _Machine(
        trained=Trained(model, optimizer),
        stepper=Stepper(model, optimizer, numbers.schedule, group, clip=numbers.clip, precision=numbers.precision),
        identity=Identity(document, digest_of(document), layout_of(config, group, threads=threads)),
        windows=windows,
        order=SampleOrder(windows.count, numbers.seed),
        plan=BatchPlan(numbers.batch, config.micro_batch, rank=ranks.rank, world_size=ranks.world_size),
        group=group,
    )


class _Loop:
    def __init__(self, config: RunConfig, folders: Folders, host: Host, corpus: Corpus, machine: _Machine) -> None:
        self.config, self.folders, self.host, self.corpus, self.machine = config, folders, host, corpus, machine
        self.voice = Voice(host, first=machine.group.ranks.first, steps_total=config.numbers.steps)
        self.state = LoopState()
        self.saved_step = -1
        self.saved_s = time.monotonic()

    def begin(self) -> None:
        """Go on from the newest checkpoint, else begin with given weights, else with fresh ones."""
        clear_leftovers(self.folders.checkpoints, self.machine.group)
        facts = self.corpus.facts()
        self.voice.define_metrics()
        self.voice.say(
            f"{self.config.recipe}: {self.config.numbers.shape.parameters:,} parameters, {facts['files']} files, "
            f"{facts['train_tokens']:,} tokens to train on, {facts['held_out_tokens']:,} held out, "
            f"{self.machine.group.ranks.world_size} ranks"
        )
        if self.folders.latest is not None:
            self.state, same = restore(
                self.folders.latest, self.machine.trained, self.machine.identity, group=self.machine.group
            )
            self.saved_step = self.state.step
            how = "exactly" if same else "on another layout, so equal within rounding only"
            self.voice.say(f"resumed from step {self.state.step}, {how}")
        elif self.folders.weights is not None:
            load_weights(self.folders.weights, self.machine.trained.model, group=self.machine.group)
            self.voice.say("began with given weights")

    def run(self) -> Outcome:
        steps, rhythm = self.config.numbers.steps, self.config.rhythm
        while self.state.step < steps:
            if self.host.should_stop(self.state.step):
                self._save()
                self.voice.say(f"asked to stop: left at step {self.state.step}, saved")
                return Outcome.STOPPED
            before = self.state
            agreed = self._step()
            due = rhythm.due(before, self.state, samples=self.machine.windows.count)
            if agreed or due or self.state.step == steps:
                self._save()
        return Outcome.FINISHED

    def _step(self) -> bool:
        """Take one update; return whether all ranks agreed that it is time for a checkpoint, by the clock."""
        begun_s = time.monotonic()
        with self.host.phase("data"):
            batch = step_batch(
                self.machine.windows, self.machine.order, self.machine.plan, consumed=self.state.consumed
            )
        step = self.state.step + 1
        wish = self.config.rhythm.wished(begun_s - self.saved_s)
        update = self.machine.stepper.update(batch, step=step, wish=wish, phase=self.host.phase)
        self.state = LoopState(step, self.state.consumed + self.machine.plan.batch, self.state.tokens + batch.tokens)
        self.voice.stepped(
            StepReport(
                step=step,
                loss=update.loss,
                lr=update.lr,
                grad_norm=update.grad_norm,
                tokens=batch.tokens,
                seconds=time.monotonic() - begun_s,
            )
        )
        return update.agreed

    def result(self) -> Result:
        return Result(state=self.state, output=self.folders.output, layout=self.machine.identity.layout)

    def _save(self) -> None:
        if self.saved_step == self.state.step:
            return
        with self.host.phase("save"):
            save(
                self.folders.checkpoints, self.machine.trained, self.state, self.machine.identity,
                group=self.machine.group,
            )  # fmt: skip
        self.saved_step, self.saved_s = self.state.step, time.monotonic()
        if self.machine.group.ranks.first_on_node:
            prune(self.folders.checkpoints, keep=KEPT_ON_DISK, protected=self.folders.latest)
