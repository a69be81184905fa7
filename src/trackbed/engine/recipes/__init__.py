"""Recipes: what can be trained, as data. Readable anywhere, without torch; the digest of the file pins it on the record."""

import difflib
import math
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
from blake3 import blake3

from trackbed.base.errors import BadInput, Fault

_FOLDER = Path(__file__).parent


class Param(msgspec.Struct, kw_only=True, frozen=True):
    """A parameter: its kind, its default, and what is allowed."""

    kind: Literal["integer", "number", "choice", "text"]
    default: Any
    least: float | None = None
    most: float | None = None
    choices: list[str] = []
    about: str = ""


class Recipe(msgspec.Struct, kw_only=True, frozen=True):
    """A recipe as its file has it. `data` names the inputs that it needs."""

    name: str
    version: int
    about: str
    data: list[str]
    params: dict[str, Param]

    @property
    def defaults(self) -> dict[str, Any]:
        return {name: param.default for name, param in self.params.items()}


def names() -> list[str]:
    """Return the names of all recipes."""
    return sorted(path.stem for path in _FOLDER.glob("*.json"))


def digest(name: str) -> str:
    """Return BLAKE3 (64 hex digits) of the recipe's file: what the record pins."""
    return blake3(_read(name)).hexdigest()


def load(name: str) -> Recipe:
    """Return a recipe; `BadInput` `recipe_unknown` names those there are."""
    return msgspec.json.decode(_read(name), type=Recipe)


@cache
def _read(name: str) -> bytes:
    if name not in names():
        raise BadInput("recipe_unknown", recipe=name, known=", ".join(names()))
    return (_FOLDER / f"{name}.json").read_bytes()


def faults_of(recipe: Recipe, params: dict[str, Any]) -> list[Fault]:
    """Return everything that is wrong with these parameters, each by its field; empty when they may be used."""
    found: list[Fault] = []
    for name, value in params.items():
        known = recipe.params.get(name)
        if known is None:
            near = difflib.get_close_matches(name, recipe.params, n=1)
            hint = near[0] if near else ", ".join(sorted(recipe.params))
            found.append(Fault("recipe_param_unknown", f"params.{name}", None, {"recipe": recipe.name, "known": hint}))
        else:
            found += _faults_of_one(name, known, value)
    return found


def _faults_of_one(name: str, param: Param, value: Any) -> list[Fault]:
    field = f"params.{name}"
    kinds: dict[str, type | tuple[type, ...]] = {"integer": int, "number": (int, float), "choice": str, "text": str}
    if isinstance(value, bool) or not isinstance(value, kinds[param.kind]):
        return [Fault("recipe_param_kind", field, None, {"value": repr(value), "wanted": param.kind})]
    if param.kind == "choice" and value not in param.choices:
        return [Fault("recipe_param_choice", field, None, {"value": value, "choices": ", ".join(param.choices)})]
    if isinstance(value, int | float):
        least = -math.inf if param.least is None else param.least
        most = math.inf if param.most is None else param.most
        if not (math.isfinite(value) and least <= value <= most):
            return [Fault("recipe_param_range", field, None, {"value": value, "least": least, "most": most})]
    return []
