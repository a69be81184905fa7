"""A run's settings: from a recipe and the person's parameters to one checked, hashable record. No torch."""

from dataclasses import asdict, dataclass
from typing import Any

import msgspec
from blake3 import blake3

from trackbed.base.errors import BadInput, Fault
from trackbed.engine import recipes
from trackbed.engine.checkpoint.rhythm import Rhythm
from trackbed.engine.model.shape import ModelShape
from trackbed.engine.optim.schedule import Schedule


@dataclass(frozen=True)
class Numbers:
    """What every number of the training depends on. Its digest is in each checkpoint."""

    shape: ModelShape
    steps: int
    batch: int
    lr: float
    warmup: int
    weight_decay: float
    clip: float
    precision: str
    held_out: float
    seed: int

    @property
    def schedule(self) -> Schedule:
        return Schedule(peak=self.lr, warmup=self.warmup, steps=self.steps)

    def document(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Ending:
    """What the last stage does with the trained model."""

    eval_samples: int
    sample_tokens: int
    prompt: str
    temperature: float


@dataclass(frozen=True)
class RunConfig:
    """Everything that was asked for, checked."""

    recipe: str
    recipe_digest: str
    numbers: Numbers
    ending: Ending
    micro_batch: int
    world_size: int
    rhythm: Rhythm
    exact: bool
    params: dict[str, Any]  # as resolved: defaults and the person's


def digest_of(document: dict[str, Any]) -> str:
    """Return BLAKE3 (64 hex digits) of a document's canonical JSON."""
    return blake3(msgspec.json.encode(document, order="sorted")).hexdigest()


def faults_of(recipe: str, params: dict[str, Any], *, world_size: int) -> list[Fault]:
    """Return every fault of these parameters on this number of ranks; used at submit, before any card is taken."""
    known = recipes.load(recipe)
    found = recipes.faults_of(known, params)
    return found or _faults_between(_complete(known, params), world_size=world_size)


@dataclass(frozen=True)
class Circumstances:
    """What is decided outside of the params: seed, ranks, how exact, and the spec's `checkpoint.every`."""

    seed: int = 0
    world_size: int = 1
    determinism: str = "exact"
    rhythm: Rhythm | None = None


def resolve(recipe: str, params: dict[str, Any], around: Circumstances) -> RunConfig:
    """Return the settings of a run. The param `checkpoint_every`, where given, wins over the spec's rhythm.

    Raises:
        BadInput: `recipe_params_wrong` with all faults, or `recipe_unknown`.
    """
    found = faults_of(recipe, params, world_size=around.world_size)
    if found:
        raise BadInput("recipe_params_wrong", faults=found, recipe=recipe, count=len(found))
    given = _complete(recipes.load(recipe), params)
    rhythm = None if "checkpoint_every" in params else around.rhythm
    numbers = Numbers(
        shape=ModelShape(d_model=given["d_model"], layers=given["layers"], heads=given["heads"], seq=given["seq"]),
        steps=given["steps"],
        batch=given["batch"],
        lr=float(given["lr"]),
        warmup=given["warmup"],
        weight_decay=float(given["weight_decay"]),
        clip=float(given["clip"]),
        precision=given["precision"],
        held_out=float(given["held_out"]),
        seed=around.seed,
    )
    return RunConfig(
        recipe=recipe,
        recipe_digest=recipes.digest(recipe),
        numbers=numbers,
        ending=Ending(
            eval_samples=given["eval_samples"],
            sample_tokens=given["sample_tokens"],
            prompt=given["prompt"],
            temperature=float(given["temperature"]),
        ),
        micro_batch=given["micro_batch"] or given["batch"] // around.world_size,
        world_size=around.world_size,
        rhythm=Rhythm(steps=given["checkpoint_every"]) if rhythm is None else rhythm,
        exact=around.determinism == "exact",
        params=given,
    )


def _complete(recipe: recipes.Recipe, params: dict[str, Any]) -> dict[str, Any]:
    """Fill in defaults; the warm-up's own is at most a quarter of a short training."""
    given = {**recipe.defaults, **params}
    if "warmup" not in params:
        given["warmup"] = min(given["warmup"], given["steps"] // 4)
    return given


def _faults_between(given: dict[str, Any], *, world_size: int) -> list[Fault]:
    """Return what is wrong between parameters that are right one by one."""
    found: list[Fault] = []
    d_model, heads, batch, micro = given["d_model"], given["heads"], given["batch"], given["micro_batch"]
    if d_model % heads or d_model // heads % 2:
        found.append(Fault("recipe_heads_uneven", "params.heads", None, {"d_model": d_model, "heads": heads}))
    if batch % world_size:
        values = {"batch": batch, "ranks": world_size, "less": batch // world_size * world_size or world_size}
        found.append(Fault("recipe_batch_uneven", "params.batch", None, values))
    elif micro and batch // world_size % micro:
        values = {"micro_batch": micro, "share": batch // world_size}
        found.append(Fault("recipe_micro_batch_uneven", "params.micro_batch", None, values))
    if given["warmup"] > given["steps"]:
        values = {"warmup": given["warmup"], "steps": given["steps"]}
        found.append(Fault("recipe_warmup_long", "params.warmup", None, values))
    return found
