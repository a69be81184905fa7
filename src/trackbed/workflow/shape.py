"""From the form of the file to the form of the record: shorthands opened, sizes in bytes, times in seconds.

Takes values that the schema has nothing against; what it still finds are combinations.
"""

from typing import Any

import msgspec

from trackbed.base import units
from trackbed.wire.spec import Keep, Spec
from trackbed.workflow.finding import Finding
from trackbed.workflow.values import parse_every, parse_nth

Shaped = tuple[dict[str, Any], list[Finding]]

_AS_THEY_ARE = (
    "project", "space", "name", "description", "tags", "seed", "determinism", "params", "priority", "env", "run",
    "recipe", "launcher", "fencing", "retries", "register", "cache", "matrix",
    "template", "environment",
)  # fmt: skip


def shape(values: dict[str, Any]) -> Shaped:
    """Return the document of a `wire.spec.Spec` and what does not go together."""
    spec: dict[str, Any] = {name: values[name] for name in _AS_THEY_ARE if name in values}
    found: list[Finding] = []
    if "data" in values:
        spec["data"] = {name: {"ref": ref} for name, ref in values["data"].items()}
    if "from" in values:
        _from(values["from"], spec, found)
    if "resources" in values:
        spec["resources"] = _resources(values["resources"], ("resources",), found)
    if "checkpoint" in values:
        spec["checkpoint"] = _checkpoint(values["checkpoint"])
    if "on_preempt" in values:
        wish = dict(values["on_preempt"])
        if "grace" in wish:
            wish["grace_s"] = units.parse_duration(wish.pop("grace"))
        spec["on_preempt"] = wish
    if "hang" in values:
        spec["hang"] = _hang(values["hang"], found)
    if "orphan_limit" in values:
        spec["orphan_limit_s"] = units.parse_duration(values["orphan_limit"])
    if "code" in values:
        spec["code"] = _code(values["code"], found)
    if "stages" in values:
        spec["stages"] = [_stage(stage, index, found) for index, stage in enumerate(values["stages"])]
    _not_built(values, spec, found)
    return spec, found


def _code(value: Any, found: list[Finding]) -> str | list[dict[str, Any]]:
    """One folder as text; else parts, of which at most one lies at the top. A part further down is named after its folder."""
    if isinstance(value, str):
        return value
    parts: list[dict[str, Any]] = []
    for index, item in enumerate(value if isinstance(value, list) else [value]):
        part = {"path": item} if isinstance(item, str) else dict(item)
        if not part.get("path"):
            continue  # said already
        if index and not part.get("name"):
            part["name"] = part["path"].rstrip("/").rpartition("/")[2].strip(".")
        parts.append(part)
        if index and not part["name"]:
            found.append(Finding("spec_code_unnamed", ("code", index), {"path": part["path"]}))
        elif any(part.get("name", "") == other.get("name", "") for other in parts[:-1]):
            found.append(Finding("spec_code_twice", ("code", index), {"name": part["name"]}))
    return parts


def _not_built(values: dict[str, Any], spec: dict[str, Any], found: list[Finding]) -> None:
    if values.get("on_rank_loss") == "restart":
        found.append(Finding("not_yet", ("on_rank_loss",), {"what": "on_rank_loss: restart"}))


def _from(value: dict[str, Any], spec: dict[str, Any], found: list[Finding]) -> None:
    kinds = [kind for kind in ("model", "checkpoint") if kind in value]
    if len(kinds) != 1:
        found.append(Finding("spec_from_one", ("from",)))
        return
    spec["from"] = {"kind": kinds[0], "ref": value[kinds[0]]}


def _resources(value: dict[str, Any], path: tuple[str | int, ...], found: list[Finding]) -> dict[str, Any]:
    shaped = dict(value)
    if "cards" in shaped:
        cards = shaped.pop("cards")
        if "cards_per_node" in shaped or "nodes" in shaped:
            found.append(Finding("spec_cards_twice", (*path, "cards")))
        shaped = {"cards_per_node": cards, "nodes": 1} | shaped
    if "card_memory" in shaped:
        shaped["card_memory_bytes"] = units.parse_size(shaped.pop("card_memory"))
    if "time_limit" in shaped:
        shaped["time_limit_s"] = units.parse_duration(shaped.pop("time_limit"))
    if shaped.get("nodes", 1) > 1 and shaped.get("cards_per_node", 1) == 0:
        found.append(Finding("spec_nodes_without_cards", (*path, "nodes"), {"nodes": shaped["nodes"]}))
    return {
        name: int(each) if isinstance(each, float) and name != "time_limit_s" else each for name, each in shaped.items()
    }


def _checkpoint(value: dict[str, Any]) -> dict[str, Any]:
    shaped: dict[str, Any] = {}
    if "every" in value:
        steps, seconds, epoch = parse_every(value["every"])
        shaped |= {"every_steps": steps, "every_s": seconds, "every_epoch": epoch}
    if "upload" in value:
        shaped["upload_every"] = parse_nth(value["upload"])
    if "keep" in value:
        keep = dict(value["keep"])
        shaped["keep"] = keep | ({"best": 1} if keep.get("by") and "best" not in keep else {})
    return shaped


def _hang(value: dict[str, Any], found: list[Finding]) -> dict[str, Any]:
    shaped = dict(value)
    if "after" in shaped:
        shaped["after_s"] = units.parse_duration(shaped.pop("after"))
    elif shaped.get("end"):
        found.append(Finding("spec_hang_end", ("hang", "end")))
    return shaped


def _stage(value: dict[str, Any], index: int, found: list[Finding]) -> dict[str, Any]:
    shaped: dict[str, Any] = {"name": "", **value}
    if "resources" in shaped:
        shaped["resources"] = _resources(shaped["resources"], ("stages", index, "resources"), found)
    return shaped


def unshape(spec: Spec) -> dict[str, Any]:
    """The way back, so far as the rules of the file hold for a spec that never was one. Names that resolve elsewhere stay out."""
    values: dict[str, Any] = msgspec.to_builtins(spec)
    for name in ("version", "from", "data"):
        values.pop(name, None)
    _as_file(values, {"orphan_limit_s": "orphan_limit"})
    _as_file(values.get("resources", {}), _RESOURCES)
    for stage in values.get("stages", []):
        _as_file(stage.get("resources") or {}, _RESOURCES)
        for name in [name for name in ("resources", "launcher", "uses") if stage.get(name) is None]:
            stage.pop(name, None)
        if "uses" in stage:
            stage["uses"] = {
                name: value for name, value in stage["uses"].items() if name != "tree" and value is not None
            }
    _as_file(values.get("on_preempt", {}), {"grace_s": "grace"})
    _as_file(values.get("hang", {}), {"after_s": "after"})
    if "checkpoint" in values:
        values["checkpoint"] = _policy(values["checkpoint"])
    return values


def _policy(policy: dict[str, Any]) -> dict[str, Any]:
    values = {"keep": {"last": Keep().last} | policy["keep"]} if policy.get("keep") is not None else {}
    for name, unit in (("every_steps", " steps"), ("every_s", "s")):
        if policy.get(name) is not None:
            values["every"] = f"{policy[name]}{unit}"
    if "upload_every" in policy:
        values["upload"] = f"every {policy['upload_every']}th"
    return values


_RESOURCES = {
    "card_memory_bytes": "card_memory", "ram_per_card_bytes": "ram_per_card", "shm_bytes": "shm", "time_limit_s": "time_limit",
}  # fmt: skip


def _as_file(values: dict[str, Any], names: dict[str, str]) -> None:
    for name, file_name in names.items():
        if name in values:
            value = values.pop(name)
            if value is not None:
                values[file_name] = value
