"""A checkpoint to the disk: parts staged by all ranks, then one manifest and one rename.

What is there under its final name is complete and fsynced, whenever the power goes.
"""

import os
import shutil
from pathlib import Path

import msgspec
from safetensors.torch import save_file

from trackbed.engine.checkpoint.cursor import LoopState
from trackbed.engine.checkpoint.state import GENERATOR, Identity, Trained, local_tensors
from trackbed.engine.numerics.exact import generator_state
from trackbed.engine.parallel.ranks import AXIS, Group
from trackbed.formats import checkpoint as form


def part_name(rank: int) -> str:
    return f"rank-{rank:05d}.safetensors"


def clear_leftovers(folder: Path, group: Group) -> None:
    """Remove what an earlier process staged and did not finish; call before the first save."""
    folder.mkdir(parents=True, exist_ok=True)
    if group.ranks.first_on_node:
        for left in [*folder.glob(".staged-*"), *folder.glob(".gone-*")]:
            shutil.rmtree(left, ignore_errors=True)
    group.barrier()


def save(folder: Path, trained: Trained, state: LoopState, identity: Identity, *, group: Group) -> Path:
    """Write the checkpoint of this step and return its folder; a collective, complete on return on every node.

    The parts lie on each rank's node; every node gets the same manifest of all parts.
    """
    staged = folder / form.staged_name_of(state.step)
    staged.mkdir(parents=True, exist_ok=True)
    part = _write_part(staged / part_name(group.ranks.rank), trained, rank=group.ranks.rank)
    parts = [msgspec.convert(each, form.Part) for each in group.gather(part)]
    target = folder / form.name_of(state.step)
    if group.ranks.first_on_node:
        manifest = form.Manifest(
            step=state.step,
            world_size=group.ranks.world_size,
            mesh={AXIS: group.ranks.world_size},
            config=identity.config_digest,
            layout=identity.layout,
            state={"consumed": state.consumed, "tokens": state.tokens, "config": identity.config},
            parts=parts,
        )
        form.write_durably(staged / form.MANIFEST, form.encode(manifest))
        _publish(staged, target)
    group.barrier()
    return target


def _write_part(path: Path, trained: Trained, *, rank: int) -> form.Part:
    tensors = {name: tensor.cpu().contiguous() for name, tensor in local_tensors(trained).items()}
    tensors[GENERATOR] = generator_state()
    save_file(tensors, path)
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return form.describe_part(path, rank=rank)


def _publish(staged: Path, target: Path) -> None:
    """Rename into place; what stood there (a try that was replayed) goes, and never lies there half."""
    if target.is_dir():
        gone = target.with_name(f".gone-{target.name}.{os.getpid()}")
        target.rename(gone)
        shutil.rmtree(gone)
    staged.rename(target)
    form.sync_folder(target.parent)


def prune(folder: Path, *, keep: int, protected: Path | None) -> list[str]:
    """Remove all but the newest `keep` checkpoints, and never the one that this attempt started from."""
    found = sorted(
        (step, path) for path in folder.iterdir() if path.is_dir() and (step := form.step_of(path.name)) is not None
    )
    spared = None if protected is None else protected.resolve()
    removed: list[str] = []
    for _, path in found[:-keep]:
        if path.is_symlink() or path.resolve() == spared:
            continue
        gone = path.with_name(f".gone-{path.name}.{os.getpid()}")
        path.rename(gone)  # a reader sees all of it or nothing
        shutil.rmtree(gone, ignore_errors=True)
        removed.append(path.name)
    return removed
