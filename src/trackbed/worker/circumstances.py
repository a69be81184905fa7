"""What a rank finds around itself: recipe, params, folders, from the variables of a job or of a person's shell."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from trackbed.base.errors import BadInput
from trackbed.engine.checkpoint.rhythm import Rhythm
from trackbed.formats.checkpoint import step_of


class _Policy(msgspec.Struct):
    every_steps: int | None = None
    every_s: float | None = None
    every_epoch: bool = False


class _Job(msgspec.Struct):
    """The part of `$TRACKBED_CONTROL/job.json` that we read; the supervisor writes it."""

    recipe: str = ""
    seed: int = 0
    determinism: str = "exact"
    checkpoint: _Policy = msgspec.field(default_factory=_Policy)


@dataclass(frozen=True)
class Surroundings:
    """`in_job`: a supervisor is above us and the SDK can join."""

    in_job: bool
    recipe: str
    params: dict[str, Any]
    seed: int
    determinism: str
    rhythm: Rhythm | None
    threads: int
    output: Path
    checkpoints: Path
    scratch: Path
    latest: Path | None
    weights: Path | None


def look_around(arguments: list[str], env: Mapping[str, str]) -> Surroundings:
    """Return what this rank is to do and where.

    Raises:
        BadInput: `worker_no_recipe`, `worker_params_unreadable`.
    """
    control = env.get("TRACKBED_CONTROL", "")
    job = _read_job(Path(control)) if control else _Job(seed=_number(env, "TRACKBED_SEED", 0))
    recipe = arguments[0] if arguments else job.recipe or env.get("TRACKBED_RECIPE", "")
    if not recipe:
        raise BadInput("worker_no_recipe")
    output = Path(env.get("TRACKBED_OUTPUT") or "output").absolute()
    checkpoints = Path(env.get("TRACKBED_CHECKPOINTS") or output.parent / "checkpoints")
    in_job = bool(control and env.get("TRACKBED_RUN"))
    given = env.get("TRACKBED_FROM", "")
    return Surroundings(
        in_job=in_job,
        recipe=recipe,
        params=_read_params(env.get("TRACKBED_PARAMS", "")),
        seed=job.seed,
        determinism=job.determinism,
        rhythm=_rhythm(job.checkpoint),
        threads=max(1, _number(env, "OMP_NUM_THREADS", 1)),
        output=output,
        checkpoints=checkpoints,
        scratch=Path(env.get("TRACKBED_SCRATCH") or Path(tempfile.gettempdir()) / "trackbed-scratch"),
        latest=_latest(checkpoints, in_job=in_job),
        weights=Path(given) if given else None,
    )


def _read_job(control: Path) -> _Job:
    path = control / "job.json"
    return msgspec.json.decode(path.read_bytes(), type=_Job) if path.is_file() else _Job()


def _read_params(path: str) -> dict[str, Any]:
    if not path:
        return {}
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError) as fault:
        raise BadInput("worker_params_unreadable", path=path, what=str(fault)) from fault


def _rhythm(policy: _Policy) -> Rhythm | None:
    rhythm = Rhythm(steps=policy.every_steps or 0, seconds=policy.every_s or 0.0, epochs=policy.every_epoch)
    return None if rhythm == Rhythm() else rhythm


def _latest(checkpoints: Path, *, in_job: bool) -> Path | None:
    """Return what to go on from. In a job only what `latest` points to: the supervisor chose it, alike for all nodes."""
    chosen = checkpoints / "latest"
    if chosen.exists():
        return chosen.resolve()
    if in_job or not checkpoints.is_dir():
        return None
    found = [(step, path) for path in checkpoints.iterdir() if (step := step_of(path.name)) is not None]
    return max(found)[1] if found else None


def _number(env: Mapping[str, str], name: str, default: int) -> int:
    text = env.get(name, "")
    return int(text) if text.isdecimal() else default
