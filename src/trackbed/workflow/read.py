"""From YAML 1.2 text to plain values, with the line of every key and item.

`3e-4` is a number (YAML 1.2), `yes` and `2026-12-01` are text, a key that stands twice is a fault, tags of other
programs are refused. Anchors and `<<` work; what they unfold to is bounded.
"""

from dataclasses import dataclass, field
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from trackbed.base.errors import Fault

Place = tuple[str | int, ...]

MAX_TEXT_BYTES = 8 * 2**20
_MAX_NODES = 200_000
_MAX_DEPTH = 100
_TAG = "tag:yaml.org,2002:"


@dataclass
class Document:
    """`value` without what was at fault; `lines` holds the line (from 1) of every path."""

    value: Any = None
    lines: dict[Place, int] = field(default_factory=dict[Place, int])
    blocks: set[Place] = field(
        default_factory=set[Place]
    )  # values written as `|` or `>`: their text starts a line later
    faults: list[Fault] = field(default_factory=list[Fault])
    broken: set[Place] = field(default_factory=set[Place])  # where `value` holds nothing because it could not be read

    def line(self, path: Place) -> int | None:
        """Return the line of the path, or of the nearest thing around it; None for what came by `--set`."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]] or None
        return None


def show(path: Place) -> str:
    """`("stages", 1, "run")` → `stages[1].run`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def read_yaml(text: str) -> Document:
    """Return values and lines; faults instead of exceptions."""
    document = Document()
    yaml = YAML(typ="safe", pure=True)
    try:
        node = yaml.compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(str(part) for part in (error.context, error.problem) if part)
        document.faults.append(Fault("spec_not_yaml", "", mark.line + 1 if mark else None, {"what": what}))
        return document
    except (YAMLError, ValueError) as error:  # control characters and the like
        document.faults.append(Fault("spec_not_yaml", "", None, {"what": str(error).splitlines()[0]}))
        return document
    except RecursionError:
        document.faults.append(Fault("spec_too_deep", "", None, {"limit": _MAX_DEPTH}))
        return document
    if node is not None:
        document.value = _Builder(document, yaml).build(cast(Node, node), ())
    return document


class _Builder:
    def __init__(self, document: Document, yaml: YAML) -> None:
        self.document = document
        self.constructor: Any = yaml.constructor
        self.open: set[int] = set()
        self.count = 0

    def fault(self, code: str, path: Place, node: Node, **params: Any) -> None:
        self.document.faults.append(Fault(code, show(path), node.start_mark.line + 1, params))
        if code not in ("spec_key_twice", "spec_key_not_text"):  # the rest of the mapping is sound
            self.document.broken.add(path)

    def build(self, node: Node, path: Place) -> Any:
        self.document.lines.setdefault(path, node.start_mark.line + 1)
        self.count += 1
        if id(node) in self.open or self.count > _MAX_NODES:
            if self.count <= _MAX_NODES + 1:
                self.fault("spec_anchor_endless", path, node, limit=_MAX_NODES)
            self.count += 1
            return None
        if isinstance(node, ScalarNode):
            return self.scalar(node, path)
        if len(path) > _MAX_DEPTH:
            self.fault("spec_too_deep", path, node, limit=_MAX_DEPTH)
            return None
        self.open.add(id(node))
        try:
            if isinstance(node, SequenceNode):
                return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
            return self.mapping(cast(MappingNode, node), path)
        finally:
            self.open.discard(id(node))

    def mapping(self, node: MappingNode, path: Place) -> dict[str, Any]:
        merged = any(key.tag == _TAG + "merge" for key, _ in node.value)
        if merged:
            self.constructor.flatten_mapping(node)
        result: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                self.fault("spec_key_not_text", path, key)
                continue
            name = str(key.value)
            here = (*path, name)
            if name in result and not merged:
                first = self.document.lines.get(here, 0)
                self.fault("spec_key_twice", here, key, name=name, first=first)
                continue
            self.document.lines[here] = key.start_mark.line + 1
            result[name] = self.build(value, here)
            if isinstance(value, ScalarNode) and value.style in ("|", ">"):
                self.document.blocks.add(here)
        return result

    def scalar(self, node: ScalarNode, path: Place) -> Any:
        kind = str(node.tag or "").removeprefix(_TAG)
        if kind in ("null", "bool", "int", "float"):
            try:
                return self.constructor.construct_object(node)
            except (ValueError, YAMLError):
                self.fault("spec_value_unreadable", path, node, value=node.value, kind=kind)
                return None
        if kind in ("str", "timestamp", "value", "merge"):
            return str(node.value)
        self.fault("spec_tag", path, node, tag=str(node.tag))
        return None
