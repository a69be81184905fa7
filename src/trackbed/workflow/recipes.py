"""Our recipes, read as data (`engine/recipes/*.json`): nothing of the engine is imported."""

import functools
import json
from importlib.resources import files
from typing import Any

import msgspec


class Param(msgspec.Struct, kw_only=True, frozen=True):
    """A parameter: its kind (integer, number, choice, text), its default, and what is allowed."""

    kind: str
    default: Any
    least: float | None = None
    most: float | None = None
    choices: list[str] = []


class Recipe(msgspec.Struct, kw_only=True, frozen=True):
    """What a spec needs to know of a recipe. `data` names the inputs that it needs."""

    name: str
    params: dict[str, Param]
    data: list[str] = []


@functools.cache
def _all() -> dict[str, Recipe]:
    folder = files("trackbed") / "engine" / "recipes"
    if not folder.is_dir():
        return {}
    found = [
        msgspec.convert(json.loads(entry.read_text(encoding="utf-8")), Recipe)
        for entry in folder.iterdir()
        if entry.name.endswith(".json")
    ]
    return {recipe.name: recipe for recipe in found}


def names() -> list[str]:
    return sorted(_all())


def recipe(name: str) -> Recipe | None:
    return _all().get(name)


def defaults(name: str) -> dict[str, Any]:
    """Return the default params of a recipe that exists."""
    return {param: known.default for param, known in _all()[name].params.items()}
