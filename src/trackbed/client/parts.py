"""Where parts of a checkpoint go, and when all of them are in."""

import shutil
from pathlib import Path


def checkpoint_entry(home: Path, source: Path, step: int) -> Path:
    """Return the entry of the checkpoints folder that a path is, or was copied to."""
    if source.resolve().parent == home.resolve():
        return home / source.name
    numbered = source.name.rstrip("0123456789").rstrip("-_") and source.name[-1:].isdigit()
    entry = home / (source.name if numbered else f"step-{step}")
    if source.is_dir():
        shutil.copytree(source, entry, dirs_exist_ok=True)
    else:
        entry.mkdir(exist_ok=True)
        shutil.copy2(source, entry / source.name)
    return entry


def all_in(entry: Path, rank: int, ranks: int) -> bool:
    """Note that a local rank has written its part; True for the one that completes it."""
    if ranks <= 1:
        return True
    parts = entry.with_name(f".{entry.name}.parts")
    parts.mkdir(exist_ok=True)
    (parts / str(rank)).touch()
    return len(list(parts.iterdir())) >= ranks
