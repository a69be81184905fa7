"""A checkpoint from the disk into live tensors, whatever number of ranks wrote it.

A rank reads the rows that it holds now from the parts in which they lie. With the same number of ranks that is its own
part, whole; so the exact resume and the resharding one are the same code.
"""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn

from trackbed.base.errors import Conflict, Damaged
from trackbed.engine.checkpoint.cursor import LoopState
from trackbed.engine.checkpoint.state import (
    GENERATOR,
    MODEL,
    Identity,
    Trained,
    local_tensors,
    set_step_counts,
)
from trackbed.engine.numerics.exact import restore_generator
from trackbed.engine.parallel.ranks import Group
from trackbed.engine.parallel.shard import local_parameters, rows_of
from trackbed.formats import checkpoint as form


def restore(folder: Path, trained: Trained, identity: Identity, *, group: Group) -> tuple[LoopState, bool]:
    """Fill the model and the optimizer; return where the loop stands, and whether the layout is the same.

    Raises:
        Damaged: `checkpoint_damaged`, before anything is used of a part whose digest does not match.
        Conflict: `checkpoint_other_config`, it continues another run of numbers.
    """
    manifest = form.read(folder)
    if manifest.config != identity.config_digest:
        raise Conflict("checkpoint_other_config", step=manifest.step, fields=_differing(manifest, identity))
    same_ranks = manifest.world_size == group.ranks.world_size
    with ExitStack() as opened:
        parts = _open_parts(folder, manifest, group, opened, only_own=same_ranks)
        for name, target in local_tensors(trained).items():
            _fill(target, name, _rows(trained.model, name), parts, manifest=manifest, group=group)
        if same_ranks:
            restore_generator(parts[group.ranks.rank].get_tensor(GENERATOR))
    set_step_counts(trained, manifest.step)
    state = LoopState(
        step=manifest.step, consumed=int(manifest.state["consumed"]), tokens=int(manifest.state.get("tokens", 0))
    )
    return state, manifest.layout == identity.layout


def load_weights(source: Path, model: nn.Module, *, group: Group) -> None:
    """Fill only the parameters, from a checkpoint folder or from a folder with a whole `model.safetensors`.

    Raises:
        Damaged: `checkpoint_damaged`, a parameter is missing or has another shape.
    """
    rows = {name: weight.shape[0] for name, weight in model.named_parameters()}
    with ExitStack() as opened:
        if (source / form.MANIFEST).is_file():
            manifest = form.read(source)
            parts = _open_parts(source, manifest, group, opened, only_own=False)
            prefix = MODEL
        else:
            manifest = None
            parts = {0: opened.enter_context(_open(source / "model.safetensors"))}
            prefix = ""
        for name, target in local_parameters(model).items():
            _fill(target, prefix + name, rows[name], parts, manifest=manifest, group=group)


def _open_parts(
    folder: Path, manifest: form.Manifest, group: Group, opened: ExitStack, *, only_own: bool
) -> dict[int, Any]:
    wanted = [part for part in manifest.parts if not only_own or part.rank == group.ranks.rank]
    return {part.rank: opened.enter_context(_open(form.verify_part(folder, part))) for part in wanted}


def _open(path: Path) -> Any:
    return safe_open(path, framework="pt")


def _rows(model: nn.Module, name: str) -> int:
    return model.get_parameter(name.split(".", 1)[1]).shape[0]


def _fill(
    target: Tensor, name: str, rows: int, parts: dict[int, Any], *, manifest: form.Manifest | None, group: Group
) -> None:
    """Copy the rows of this rank out of the parts that hold them; `manifest` None means one part with all rows."""
    mine = rows_of(rows, rank=group.ranks.rank, world_size=group.ranks.world_size)
    filled = 0
    for rank, part in parts.items():
        theirs = range(rows) if manifest is None else rows_of(rows, rank=rank, world_size=manifest.world_size)
        begin, end = max(mine.start, theirs.start), min(mine.stop, theirs.stop)
        if begin >= end:
            continue
        try:
            taken: Tensor = part.get_slice(name)[begin - theirs.start : end - theirs.start]
        except Exception as fault:  # safetensors has one class for every fault
            raise Damaged("checkpoint_damaged", where=name, what=str(fault)) from fault
        if taken.shape[1:] != target.shape[1:] or taken.shape[0] != end - begin:
            raise Damaged("checkpoint_damaged", where=name, what=f"shape {tuple(taken.shape)}")
        with torch.no_grad():
            target[begin - mine.start : end - mine.start].copy_(taken)
        filled += end - begin
    if filled != len(mine):
        raise Damaged("checkpoint_damaged", where=name, what=f"{len(mine) - filled} rows are in no part")


def _differing(manifest: form.Manifest, identity: Identity) -> str:
    """Name the settings that differ, with both values."""
    theirs: dict[str, Any] = manifest.state.get("config", {})
    names = sorted(set(theirs) | set(identity.config))
    changed = [name for name in names if theirs.get(name) != identity.config.get(name)]
    return ", ".join(f"{name} {theirs.get(name)!r} -> {identity.config.get(name)!r}" for name in changed)
