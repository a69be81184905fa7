"""200 random stage graphs, each changed at random again and again: no run ever holds a product that its own spec would not give."""

from __future__ import annotations

import random
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from control_world import world as open_world
from stage_bed import Bed, environment, seen

from trackbed.base.ids import Digest
from trackbed.datasets.service import commit
from trackbed.wire.runs import EnvironmentRecord, TreeFacts
from trackbed.wire.spec import DataPin, Resources, Stage, Uses
from trackbed.workflow.command import render_command

FILES = ["a.py", "b.py", "lib/c.py", "lib/d.py", "data.txt"]
CHANGES = 2


@dataclass
class Asked:
    """All that a submit says."""

    stages: list[Stage]
    files: dict[str, str]
    params: dict[str, Any] = field(default_factory=lambda: {"x": 1, "y": 1, "z": 1})
    env: dict[str, str] = field(default_factory=lambda: {"E": "1"})
    seed: int = 1
    data: int = 1
    environment: int = 1
    cards: int = 1


def drawn(dice: random.Random) -> Asked:
    """A random graph; its file order is not the order of its needs."""
    names = [f"s{at}" for at in range(dice.randint(1, 5))]
    stages: list[Stage] = []
    for at, name in enumerate(names):
        needs = dice.sample(names[:at], dice.randint(0, min(at, 2)))
        made = [f"{need}.{product}" for need in needs for one in stages if one.name == need for product in one.produces]
        inputs = {f"in{n}": ref for n, ref in enumerate(dice.sample(made, dice.randint(0, len(made))))}
        uses = None
        if dice.random() < 0.6:
            uses = Uses(
                files=dice.choice([None, dice.sample(FILES, dice.randint(0, 2)), ["lib"], ["*.py"]]),
                data=dice.choice([None, [], ["corpus"]]), params=dice.choice([None, [], ["x"], ["x", "y"]]),
            )  # fmt: skip
        known = uses.params if uses and uses.params is not None else ["x", "y", "z"]
        hole = " {{params." + dice.choice(known) + "}}" if known and dice.random() < 0.7 else ""
        stages.append(
            Stage(
                name=name, run=f"do {dice.randint(1, 2)}{hole}", needs=needs, inputs=inputs, uses=uses,
                produces={f"p{n}": f"out/{n}" for n in range(dice.randint(1, 2))},
                params={"y": dice.randint(1, 2)} if dice.random() < 0.3 else {},
                resources=Resources(cards_per_node=dice.randint(1, 2)) if dice.random() < 0.3 else None,
                launcher=dice.choice([None, "none"]),
            )
        )  # fmt: skip
    dice.shuffle(stages)
    return Asked(stages, dict.fromkeys(FILES, "1"))


def changed(asked: Asked, dice: random.Random) -> Asked:
    """Another submit that differs in one thing, or in none."""
    new = Asked(list(asked.stages), dict(asked.files), dict(asked.params), dict(asked.env), asked.seed, asked.data, asked.environment, asked.cards)  # fmt: skip
    what = dice.choice(["none", "file", "file", "param", "param", "stage", "stage", "seed", "data", "env", "environment", "cards"])  # fmt: skip
    if what == "file":
        new.files[dice.choice(FILES)] = str(dice.randint(1, 3))
    elif what == "param":
        new.params[dice.choice(["x", "y", "z"])] = dice.choice([1, 2, 1.0, "1", None])
    elif what == "stage":
        at = dice.randrange(len(new.stages))
        one = new.stages[at]
        change = dice.choice([
            {"run": one.run + "!"}, {"params": {**one.params, "y": dice.randint(1, 3)}}, {"launcher": "rank_per_card"},
            {"inputs": {}}, {"produces": {**one.produces, "p9": "out/9"}}, {"resources": Resources(cards_per_node=dice.randint(1, 3))},
            {"uses": None},
        ])  # fmt: skip
        new.stages[at] = msgspec.structs.replace(one, **change)
    elif what == "env":
        new.env["E"] = str(dice.randint(1, 2))
    elif what != "none":
        setattr(new, what, dice.randint(1, 2))
    return new


def expected(bed: Bed, asked: Asked, digests: list[str]) -> dict[str, dict[str, str]]:
    """What each stage leaves by the spec alone, as if nothing had ever been run before."""
    by_name = {stage.name: stage for stage in asked.stages}
    made: dict[str, dict[str, str]] = {}

    def make(name: str) -> dict[str, str]:
        if name in made:
            return made[name]
        stage = by_name[name]
        uses = stage.uses or Uses()
        params = {**asked.params, **stage.params}
        if uses.params is not None:
            params = {key: value for key, value in params.items() if key in uses.params}
        files = asked.files
        if uses.files is not None:
            files = {path: text for path, text in files.items() if _wanted(path, uses.files)}
        pairs = {name: ref.split(".") for name, ref in stage.inputs.items()}
        given = seen(
            stage=name, files=bed.files_of(bed.tree_of(files)), params=params,
            data={} if uses.data == [] else {"corpus": digests[asked.data - 1]},
            inputs={name: bed.files_of(make(of)[product]) for name, (of, product) in pairs.items()}, seed=asked.seed,
            determinism="exact", command=render_command(stage.run, params), env=asked.env,
            launcher=stage.launcher or "rank_per_card",
            cards=stage.resources.cards_per_node if stage.resources else asked.cards,
            environment=_environment(asked).digest,
        )  # fmt: skip
        made[name] = {product: bed.leave(given, product) for product in stage.produces}
        return made[name]

    return {stage.name: make(stage.name) for stage in asked.stages}


def _wanted(path: str, names: list[str]) -> bool:
    return any(
        path == name or path.startswith(name + "/") or (name == "*.py" and "/" not in path and path.endswith(".py"))
        for name in names
    )


def _environment(asked: Asked) -> EnvironmentRecord:
    return environment(f"CPython 3.{asked.environment}")


def _submit(bed: Bed, asked: Asked) -> str:
    return bed.world.submit(
        stages=asked.stages, params=asked.params, env=asked.env, seed=asked.seed, cards=asked.cards,
        data={"corpus": DataPin(ref=f"corpus@{asked.data}")}, tree=TreeFacts(digest=bed.tree_of(asked.files)),
        installed=_environment(asked),
    ).run_id  # fmt: skip


@pytest.mark.parametrize("graphs", [40, pytest.param(200, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
def test_no_run_ever_holds_a_stale_product_and_nothing_is_run_twice(graphs: int) -> None:
    dice = random.Random(2026 + graphs)
    folder = "/dev/shm" if Path("/dev/shm").is_dir() else None
    hits = runs = 0
    with tempfile.TemporaryDirectory(dir=folder) as scratch, open_world(Path(scratch)) as world:
        bed = Bed(world)
        digests = [f"b3:{n:064x}" for n in (1, 2)]
        for digest in digests:
            world.write(lambda tx, d=digest: commit(tx, world.ann, "corpus", Digest(d)), world.ann.actor)
        for _ in range(graphs):
            asked = drawn(dice)
            for change in range(CHANGES):
                asked = changed(asked, dice) if change else asked
                run = _submit(bed, asked)
                dies = dice.random() < 0.2 and world.state(run) == "queued"  # with half of its products
                if dies and bed.step(run, "user_error") is not None:  # else a stage beside it took the cards first
                    assert world.state(run) == "failed"
                    world.verb("retry", run)
                ran = bed.finish(run, dice, failing=0.1)
                stages = bed.stages(run)
                wanted = expected(bed, asked, digests)
                assert {name: view.products for name, view in stages.items()} == wanted, asked
                assert len(ran) == len(set(ran))
                hits += sum(view.cache == "hit" for view in stages.values())
                runs += len(stages)
                again = _submit(bed, asked)
                assert world.state(again) == "finished", "the same once more is all there"
                assert {name: view.products for name, view in bed.stages(again).items()} == wanted
    assert hits > runs / 4, f"a cache that is never used proves nothing: {hits} of {runs}"
