"""What the products of a stage depend on, as parts with names; their key, and which parts differ. Pure.

Everything that the program of a stage can see through us is a part: what is not a part is not given to it, or (its run's id,
the node, the clock) is nothing that a product may depend on. So the same key is the same product, and where the keys
differ, the names of the parts say why.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from blake3 import blake3

from trackbed.wire.runs import Reason
from trackbed.wire.spec import Spec, Stage
from trackbed.workflow.graph import data_for, launcher_for, params_for, resources_for, tree_for

Parts = dict[str, str]  # name → value as text: a digest, or canonical JSON
_SHOWN = 60  # characters of a value in a reason
_NAMED = 6  # parts in a reason


class Earlier(NamedTuple):
    """A result that was recorded: of which run, and what it depended on."""

    run_id: str
    ref: str
    parts: Parts


def parts_of(
    spec: Spec, stage: Stage, *, tree: str, environment: str, inputs: Mapping[str, str], program: str
) -> Parts:
    """Return what the products of a stage depend on.

    `inputs` are the digests of the products that it takes, `program` is the version of what runs recipes.
    """
    resources = resources_for(spec, stage)
    every = spec.checkpoint
    parts: dict[str, Any] = {
        "stage": stage.name,
        "files": tree_for(stage, tree),
        "environment": environment,
        "run": stage.run,
        "recipe": stage.recipe,
        "program": program if stage.recipe else "",
        "seed": spec.seed,
        "determinism": spec.determinism,
        "from": [spec.from_.digest, spec.from_.state] if spec.from_ else "",
        "launcher": launcher_for(spec, stage),
        "cards_per_node": resources.cards_per_node,
        "nodes": resources.nodes,
        "kind": resources.kind,
        "cpus_per_card": resources.cpus_per_card,
        "checkpoint": [every.every_steps, every.every_s, every.every_epoch],
    }
    parts |= {f"params.{name}": value for name, value in params_for(spec, stage).items()}
    parts |= {f"data.{name}": [pin.digest, pin.kind] for name, pin in data_for(spec, stage).items()}
    parts |= {f"inputs.{name}": digest for name, digest in inputs.items()}
    parts |= {f"env.{name}": value for name, value in spec.env.items()}
    parts |= {f"produces.{name}": path for name, path in stage.produces.items()}
    return {name: _text(value) for name, value in parts.items()}


def key_of(parts: Parts) -> str:
    """Return the digest of the parts; equal for equal parts only."""
    return "b3:" + blake3(_text(sorted(parts.items())).encode()).hexdigest()


def differences(now: Parts, before: Parts) -> list[str]:
    """Return the names of the parts that differ, the files of the tree first, then by name."""
    names = [name for name in {**now, **before} if now.get(name) != before.get(name)]
    return sorted(names, key=lambda name: (name != "files", name))


def nearest(now: Parts, earlier: Iterable[Earlier]) -> Earlier | None:
    """Return the result that fewest parts differ from; the first of several."""
    return min(earlier, key=lambda one: len(differences(now, one.parts)), default=None)


def why_missed(now: Parts, earlier: Iterable[Earlier]) -> Reason:
    """Say why nothing that was recorded fits: there is nothing, or what differs from the nearest."""
    near = nearest(now, earlier)
    if near is None:
        return Reason(code="cache_first", params={"stage": json.loads(now["stage"])})
    names = differences(now, near.parts)
    shown = [_shown(name, near.parts.get(name), now.get(name)) for name in names[:_NAMED]]
    more = [f"+{len(names) - _NAMED}"] if len(names) > _NAMED else []
    return Reason(code="cache_differs", params={"run": near.ref, "differs": ", ".join([*shown, *more]), "parts": names})


def _shown(name: str, before: str | None, now: str | None) -> str:
    """`params.lr: 0.1 → 0.2`; of what is told by a digest, and of long values, the name only."""
    words = [("-" if value is None else value) for value in (before, now)]
    if any("b3:" in word or len(word) > _SHOWN for word in words):
        return name
    return f"{name}: {words[0]} → {words[1]}"


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
