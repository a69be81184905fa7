"""`--set a.b=value` on top of a file; the value is read as YAML."""

from collections.abc import Sequence
from typing import Any, cast

from trackbed.base.errors import Fault
from trackbed.workflow.read import Document, read_yaml

# Naming one of these by --set takes the others of its group out of the file: the later word holds.
_INSTEAD = {
    "cards": ("cards_per_node", "nodes"),
    "cards_per_node": ("cards",),
    "nodes": ("cards",),
}
_KINDS = ("run", "recipe", "stages")


def apply_sets(values: dict[str, Any], sets: Sequence[str], document: Document) -> list[Fault]:
    """Change `values` in place; return the faults of settings that cannot be applied."""
    return [fault for text in sets if (fault := _apply(values, text, document)) is not None]


def _apply(values: dict[str, Any], text: str, document: Document) -> Fault | None:
    name, equals, written = text.partition("=")
    parts = name.split(".")
    if not equals or not all(parts):
        return Fault("spec_set_form", f"--set {text}", None, {"text": text})
    read = read_yaml(written)
    if read.faults:
        return Fault("spec_set_value", f"--set {name}", None, {"value": written})
    target: Any = values
    for part in parts[:-1]:
        if not isinstance(target, dict):
            return Fault("spec_set_no_place", f"--set {name}", None, {"name": name, "part": part})
        if target.get(part) is None:
            target[part] = {}
        target = cast(dict[str, Any], target)[part]
    if isinstance(target, list) and parts[-1].isdigit() and int(parts[-1]) < len(cast(list[Any], target)):
        target[int(parts[-1])] = read.value
    elif isinstance(target, dict):
        for other in _INSTEAD.get(parts[-1], ()) if parts[-2:-1] == ["resources"] else ():
            target.pop(other, None)
        if len(parts) == 1 and parts[0] in _KINDS:
            for other in _KINDS:
                target.pop(other, None)
        target[parts[-1]] = read.value
    else:
        return Fault("spec_set_no_place", f"--set {name}", None, {"name": name, "part": parts[-1]})
    _forget_lines(document, tuple(parts))
    return None


def _forget_lines(document: Document, parts: tuple[str, ...]) -> None:
    """A value from the command line stands in no line."""
    for path in [path for path in document.lines if tuple(map(str, path[: len(parts)])) == parts]:
        del document.lines[path]
    if document.lines:
        document.lines[parts] = 0
