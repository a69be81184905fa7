"""A checkpoint from the disk into live tensors, whatever number of ranks wrote it.

A rank reads the rows that it holds now from the parts in which they lie. With the same number of ranks that is its own
part, whole; so the exact resume and the resharding one are the same code.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from trackbed.base.errors import BadInput, Conflict, Damaged, TrackbedError
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
    """Fill the model and the optimizer; return where the loop stands, and whether the layout is the same. A collective.

    Raises, on all ranks alike:
        Damaged: `checkpoint_damaged`, before anything is used of a part whose digest does not match.
        Conflict: `checkpoint_other_config`, it continues another run of numbers.
    """
    manifest = form.read(folder)
    if manifest.config != identity.config_digest:
        raise Conflict("checkpoint_other_config", step=manifest.step, fields=_differing(manifest, identity))
    same_ranks = manifest.world_size == group.ranks.world_size
    rank = group.ranks.rank
    with ExitStack() as opened:
        source = _together(group, folder, lambda: _open_parts(folder, manifest, opened, rank if same_ranks else None))
        _fill_all(local_tensors(trained), _rows_by_name(trained.model), source, group)
        if same_ranks:
            restore_generator(source.parts[rank].get_tensor(GENERATOR))
    set_step_counts(trained, manifest.step)
    state = LoopState(
        step=manifest.step, consumed=int(manifest.state["consumed"]), tokens=int(manifest.state.get("tokens", 0))
    )
    return state, manifest.layout == identity.layout


def load_weights(folder: Path, model: nn.Module, *, group: Group) -> None:
    """Fill only the parameters, from a checkpoint folder or from a folder with a whole `model.safetensors`. A collective.

    Raises, on all ranks alike:
        Damaged: `checkpoint_damaged`.
        BadInput: `weights_other_shape`, the model there is another one.
    """
    with ExitStack() as opened:
        source = _together(group, folder, lambda: _open_weights(folder, opened))
        targets = {MODEL + name: target for name, target in local_parameters(model).items()}
        _fill_all(targets, _rows_by_name(model), source, group)


@dataclass(frozen=True)
class _Source:
    """Open parts by the rank that wrote them, out of `world_size`; `prefix` is what a parameter's name begins with."""

    parts: dict[int, Any]
    world_size: int
    prefix: str = MODEL


def _open_parts(folder: Path, manifest: form.Manifest, opened: ExitStack, only: int | None) -> _Source:
    wanted = [part for part in manifest.parts if only is None or part.rank == only]
    parts = {part.rank: opened.enter_context(_open(form.verify_part(folder, part))) for part in wanted}
    return _Source(parts, manifest.world_size)


def _open_weights(folder: Path, opened: ExitStack) -> _Source:
    if (folder / form.MANIFEST).is_file():
        return _open_parts(folder, form.read(folder), opened, None)
    path = folder / "model.safetensors"
    if not path.is_file():
        raise Damaged("checkpoint_damaged", where=str(folder), what=f"neither {form.MANIFEST} nor {path.name}")
    return _Source({0: opened.enter_context(_open(path))}, world_size=1, prefix="")


def _open(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt")
    except SafetensorError as fault:
        raise Damaged("checkpoint_damaged", where=str(path), what=str(fault)) from fault


def _together(group: Group, folder: Path, check: Callable[[], _Source]) -> _Source:
    """Return what the check gives, or raise on all ranks when it failed on one: nobody waits for a rank that left."""
    fault: TrackbedError | None = None
    found: _Source | None = None
    try:
        found = check()
    except TrackbedError as caught:
        fault = caught
    failed = group.sums([0.0 if fault is None else 1.0])[0]
    if fault is not None:
        raise fault
    if failed or found is None:
        raise Damaged(
            "checkpoint_damaged", where=str(folder), what=f"{failed:.0f} other ranks could not read their part"
        )
    return found


def _rows_by_name(model: nn.Module) -> dict[str, int]:
    return {name: weight.shape[0] for name, weight in model.named_parameters()}


def _fill_all(targets: dict[str, Tensor], rows: dict[str, int], source: _Source, group: Group) -> None:
    """Copy into every target (named `<kind>.<parameter>`) the rows that this rank holds of it."""
    for name, target in targets.items():
        parameter = name.split(".", 1)[1]
        mine = rows_of(rows[parameter], rank=group.ranks.rank, world_size=group.ranks.world_size)
        wanted = source.prefix + parameter if name.startswith(MODEL) else name
        for rank, part in source.parts.items():
            theirs = rows_of(rows[parameter], rank=rank, world_size=source.world_size)
            _copy_rows(part, wanted, theirs, target, mine)


def _copy_rows(part: Any, name: str, theirs: range, target: Tensor, mine: range) -> None:
    """Copy the rows that a part and a target have in common; check the part's shape even if there are none."""
    if name not in part.keys():  # noqa: SIM118 - a file, not a mapping
        raise BadInput("weights_other_shape", name=name, theirs="none", ours=(len(mine), *target.shape[1:]))
    rows = part.get_slice(name)
    expected = [len(theirs), *target.shape[1:]]
    if rows.get_shape() != expected:
        raise BadInput("weights_other_shape", name=name, theirs=tuple(rows.get_shape()), ours=tuple(expected))
    begin, end = max(mine.start, theirs.start), min(mine.stop, theirs.stop)
    if begin < end:
        with torch.no_grad():
            target[begin - mine.start : end - mine.start].copy_(rows[begin - theirs.start : end - theirs.start])


def _differing(manifest: form.Manifest, identity: Identity) -> str:
    """Name the settings that differ, with both values."""
    theirs: dict[str, Any] = manifest.state.get("config", {})
    names = sorted(set(theirs) | set(identity.config))
    changed = [name for name in names if theirs.get(name) != identity.config.get(name)]
    return ", ".join(f"{name} {theirs.get(name)!r} -> {identity.config.get(name)!r}" for name in changed)
