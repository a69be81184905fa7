"""From the record of a run back to the file that would ask for it: the same form, every name pinned to what it stood for. Pure."""

import io
from typing import Any, cast

from ruamel.yaml import YAML

from trackbed.wire.runs import FieldChange
from trackbed.wire.spec import DataPin, FromPin, Spec
from trackbed.workflow.read import show
from trackbed.workflow.shape import unshape
from trackbed.workflow.template import leaves

_ORDER = (
    "space", "project", "name", "description", "tags", "template", "data", "from", "code", "seed", "determinism", "params",
    "matrix", "resources", "priority", "env", "run", "recipe", "stages",
)  # fmt: skip


def as_file(spec: Spec) -> dict[str, Any]:
    """Return the values of a file that says the same. A default is left out; data is named by its version."""
    values = unshape(spec)
    values.pop("trial", None)
    if spec.data:
        values["data"] = {name: _data(pin) for name, pin in spec.data.items()}
    if spec.from_ is not None:
        values["from"] = {spec.from_.kind: _from(spec.from_)}
    values = {name: value for name, value in values.items() if value not in ("", [], {}, None)}
    _cards(values)
    for stage in values.get("stages", []):
        _cards(stage)
    return {name: values[name] for name in [*(n for n in _ORDER if n in values), *(n for n in values if n not in _ORDER)]}  # fmt: skip


def _cards(values: dict[str, Any]) -> None:
    """One node is said by `cards`."""
    found = values.get("resources")
    if isinstance(found, dict) and "cards_per_node" in found and found.get("nodes", 1) == 1:
        wanted = cast(dict[str, Any], found)
        wanted.pop("nodes", None)
        values["resources"] = {"cards": wanted.pop("cards_per_node"), **wanted}


def _data(pin: DataPin) -> str:
    name = pin.ref.partition("@")[0] or pin.dataset
    digest = pin.slice_of or pin.digest
    return f"{name}@{pin.version}" if pin.version else f"{name}@{digest}" if digest else pin.ref


def _from(pin: FromPin) -> str:
    if not pin.digest:
        return pin.ref
    return f"{pin.run_id}@{pin.digest}" if pin.kind == "checkpoint" else f"{pin.ref.partition('@')[0]}@{pin.digest}"


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[FieldChange]:
    """Return what differs between two files, by field."""
    one, other = dict(leaves(before)), dict(leaves(after))
    paths = [path for path in {**one, **other} if one.get(path) != other.get(path) or type(one.get(path)) is not type(other.get(path))]  # fmt: skip
    return [
        FieldChange(field=show(path), before=one.get(path), after=other.get(path)) for path in sorted(paths, key=show)
    ]


def to_yaml(values: dict[str, Any]) -> str:
    """Return the values as a file: blocks for the outer levels, long text as it is."""
    yaml = YAML()
    yaml.default_flow_style = False
    yaml.width = 120
    stream = io.StringIO()
    yaml.dump(values, stream)
    return stream.getvalue()
