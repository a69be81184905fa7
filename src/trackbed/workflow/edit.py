"""A spec file and a form of one another: new values go into the text where they differ, and everything else of it stays.

Comments, order, blank lines, quotes and the form of numbers (`3e-4`) stay as they were written; only what a value changes is
written anew. Source: ruamel.yaml's round trip.
"""

import io
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError

from trackbed.workflow.read import read_yaml


def with_values(text: str, values: dict[str, Any]) -> str:
    """Return the text with these values. Of a text that is no mapping nothing can be kept: the values are written alone.

    `values` are those of the whole file: what is not among them is taken out.
    """
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    mapping, offset = _indents(text)
    yaml.indent(mapping=mapping, sequence=offset + 2, offset=offset)
    before = read_yaml(text)
    try:
        tree = yaml.load(text) if isinstance(before.value, dict) and not before.faults else None
    except (YAMLError, ValueError):
        tree = None
    if not isinstance(tree, CommentedMap):
        tree = CommentedMap()
        before.value = {}
    _into(tree, cast(dict[str, Any], before.value), values)
    stream = io.StringIO()
    yaml.dump(tree, stream)
    return stream.getvalue() if values else ""


def _indents(text: str) -> tuple[int, int]:
    """How far the text indents what lies in a mapping, and the dash of an item below its key."""
    mapping, offset = 0, -1
    key: int | None = None  # indent of the last line that ends with a colon
    for line in text.splitlines():
        bare = line.split(" #")[0].rstrip()
        inside = bare.lstrip(" ")
        if not inside or inside.startswith("#"):
            continue
        indent = len(bare) - len(inside)
        if key is not None and inside.startswith("- ") and offset < 0:
            offset = max(0, indent - key)
        elif key is not None and indent > key and not inside.startswith("- "):
            mapping = mapping or indent - key
        key = indent if bare.endswith(":") else None
    return mapping or 2, max(offset, 0)


def _into(tree: CommentedMap, before: dict[str, Any], after: dict[str, Any]) -> None:
    for name in [name for name in before if name not in after]:
        del tree[name]
    for name, value in after.items():
        old = before.get(name)
        if name in before and type(old) is type(value) and old == value:
            continue
        inner = tree.get(name) if name in before else None
        if isinstance(inner, CommentedMap) and isinstance(old, dict) and isinstance(value, dict):
            _into(inner, cast(dict[str, Any], old), cast(dict[str, Any], value))
        elif isinstance(inner, CommentedSeq) and isinstance(old, list) and isinstance(value, list):
            _items(inner, cast(list[Any], old), cast(list[Any], value))
        else:
            tree[name] = _fresh(value)


def _items(tree: CommentedSeq, before: list[Any], after: list[Any]) -> None:
    for at, value in enumerate(after[: len(before)]):
        old, inner = before[at], tree[at]
        if type(old) is type(value) and old == value:
            continue
        if isinstance(inner, CommentedMap) and isinstance(old, dict) and isinstance(value, dict):
            _into(inner, cast(dict[str, Any], old), cast(dict[str, Any], value))
        else:
            tree[at] = _fresh(value)
    del tree[len(after) :]
    for value in after[len(before) :]:
        tree.append(_fresh(value))


def _fresh(value: Any) -> Any:
    """A copy in which nothing stands twice: the same object in two places would be written as an anchor."""
    if isinstance(value, dict):
        return {name: _fresh(inner) for name, inner in cast(dict[str, Any], value).items()}
    return [_fresh(inner) for inner in cast(list[Any], value)] if isinstance(value, list) else value
