"""Names and default params of our recipes, read as data: nothing of the engine is imported."""

import functools
import json
from importlib.resources import files
from typing import Any


@functools.cache
def _all() -> dict[str, dict[str, Any]]:
    folder = files("trackbed") / "engine" / "recipes"
    if not folder.is_dir():
        return {}
    found = [entry for entry in folder.iterdir() if entry.name.endswith(".json")]
    return {entry.name.removesuffix(".json"): json.loads(entry.read_text(encoding="utf-8")) for entry in found}


def names() -> list[str]:
    return sorted(_all())


def defaults(name: str) -> dict[str, Any] | None:
    """Return the default params of a recipe; None if there is no such recipe."""
    recipe = _all().get(name)
    return None if recipe is None else dict(recipe["params"])
