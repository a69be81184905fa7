"""Stages as a graph: in which order they run, and what each is given of its run. Pure."""

from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from trackbed.wire.spec import DataPin, Resources, Spec, Stage


def next_stage(stages: Sequence[Stage], done: Collection[str]) -> int | None:
    """Return the position of the first stage that is not done and whose needs all are; None where nothing is left."""
    left = [at for at, stage in enumerate(stages) if stage.name not in done]
    return next((at for at in left if all(need in done for need in stages[at].needs)), None)


def ready_stages(stages: Sequence[Stage], done: Collection[str]) -> list[int]:
    """Return the positions of the stages that are not done and whose needs all are: they may run at the same time."""
    return [
        at for at, stage in enumerate(stages) if stage.name not in done and all(need in done for need in stage.needs)
    ]


def order(stages: Sequence[Stage]) -> list[int]:
    """Return the positions in the order in which the stages run. A stage on a circle is left out; specs have none."""
    done: list[str] = []
    positions: list[int] = []
    while (at := next_stage(stages, done)) is not None:
        positions.append(at)
        done.append(stages[at].name)
    return positions


def params_for(spec: Spec, stage: Stage | None) -> dict[str, Any]:
    """Return the params that a stage (None: a run without stages) is given."""
    if stage is None:
        return spec.params
    params = {**spec.params, **stage.params}
    named = stage.uses.params if stage.uses else None
    return params if named is None else {name: value for name, value in params.items() if name in named}


def data_for(spec: Spec, stage: Stage | None) -> dict[str, DataPin]:
    """Return the inputs of the run that a stage is given."""
    named = stage.uses.data if stage and stage.uses else None
    return spec.data if named is None else {name: pin for name, pin in spec.data.items() if name in named}


def tree_for(stage: Stage | None, tree: str) -> str:
    """Return the digest of the tree that a stage finds in its working folder."""
    return (stage.uses.tree if stage and stage.uses and stage.uses.files is not None else "") or tree


def resources_for(spec: Spec, stage: Stage | None) -> Resources:
    return (stage.resources if stage else None) or spec.resources


def launcher_for(spec: Spec, stage: Stage | None) -> str:
    return (stage.launcher if stage else None) or spec.launcher


def is_named(path: str, names: Iterable[str]) -> bool:
    """Whether a path of a tree is one of the named files, lies below a named folder, or fits a pattern.

    A pattern is matched part by part: `*.py` is every such file at the top, `lib/*` everything below lib.
    """
    parts = path.split("/")
    for name in names:
        wanted = [part for part in name.split("/") if part not in ("", ".")]
        if len(wanted) <= len(parts) and all(fnmatchcase(p, w) for p, w in zip(parts, wanted, strict=False)):
            return True
    return False
