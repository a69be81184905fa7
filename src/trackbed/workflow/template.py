"""Templates: values that many specs share, with rules for the rest. Pure.

    name: pretrain
    description: what it is for
    spec: {recipe: pretrain, params: {lr: 3e-4}, resources: {cards: 8}}     values, in the form of a spec file
    required: [description, data.corpus]                                    must be given
    locked: [recipe, determinism]                                           may not be given otherwise
    schema: {properties: {params: {properties: {lr: {type: number, maximum: 1, default: 1e-3}}}}}   JSON Schema of the whole

A spec says `template: pretrain@2`. Its values cover the template's, `--set` covers both; mappings are joined, everything
else is replaced. `schema` judges the result; a `default` in it is a value like those of `spec`.
"""

import copy
import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from trackbed.base.errors import Fault
from trackbed.wire.runs import Reason, ResolvedValue
from trackbed.wire.spec import Spec
from trackbed.workflow import fields
from trackbed.workflow.finding import Finding
from trackbed.workflow.read import Place, read_yaml, show
from trackbed.workflow.schema import findings_of, schema_findings
from trackbed.workflow.spec import from_values
from trackbed.workflow.values import NAME

MAX_TEXT_BYTES = 256 * 1024
_KEYS = ("name", "description", "spec", "required", "locked", "schema")
_TYPES = ("string", "integer", "number", "boolean", "array", "object")
_KINDS = ("run", "recipe", "stages")
_SHORT = {"cards": ("cards_per_node", "nodes"), "cards_per_node": ("cards",), "nodes": ("cards",)}
_MAPPING, _LIST, _WHOLE = (dict,), (list,), (int,)
# keyword of JSON Schema → what its value must be; what is not here is refused: a template cannot make the server fetch
# other schemas or match patterns without end
_KEYWORDS: dict[str, tuple[type, ...]] = {
    "type": (str,), "enum": _LIST, "const": (object,), "minimum": (int, float), "maximum": (int, float),
    "minLength": _WHOLE, "maxLength": _WHOLE, "minItems": _WHOLE, "maxItems": _WHOLE, "uniqueItems": (bool,),
    "items": _MAPPING, "properties": _MAPPING, "required": _LIST, "additionalProperties": (bool,), "format": (str,),
    "default": (object,), "title": (str,), "description": (str,), "examples": _LIST,
}  # fmt: skip


class Template(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a template file says. `spec` holds the defaults of its schema too."""

    name: str
    description: str = ""
    spec: dict[str, Any] = {}
    required: list[str] = []
    locked: list[str] = []
    schema: dict[str, Any] = {}


class Resolution(NamedTuple):
    """A spec with its template: checked, with all faults, and where each value came from."""

    spec: Spec
    faults: list[Fault]
    warnings: list[Reason]
    values: dict[str, Any]


class Difference(NamedTuple):
    """One value of a template that differs between two versions; None where it is not there."""

    field: str
    before: Any
    after: Any


# --- reading ---------------------------------------------------------------------------------------------------------


def read_template(text: str) -> tuple[Template, list[Fault]]:
    """Return what the text says (the sound part) and everything that is wrong with it, by field and line."""
    if len(text.encode()) > MAX_TEXT_BYTES:
        return Template(name=""), [Fault("template_too_large", "", None, {"limit": "256 KiB"})]
    document = read_yaml(text)
    if not isinstance(document.value, dict):
        return Template(name=""), document.faults or [Fault("template_not_mapping", "", 1, {})]
    values = cast(dict[str, Any], document.value)
    found = list(_shape_findings(values))
    broken = {finding.path[:1] for finding in found if finding.path}
    sound = {key: value for key, value in values.items() if key in _KEYS and (key,) not in broken and value is not None}
    template = msgspec.convert({"name": "", **sound}, Template)
    inner = list(_schema_findings(template.schema, ("schema",)))
    found += inner
    if not inner:
        template.spec = merge(_defaults(template.schema), template.spec)
        found += [finding._replace(path=("spec", *finding.path)) for finding in schema_findings(template.spec)]
        found += list(_list_findings(template))
        if not found:
            found += [f._replace(path=("spec", *f.path)) for f in _judge(template, template.spec, given=False)]
    faults = [Fault(one.code, show(one.path), document.line(one.path), one.params) for one in found]
    return template, [*document.faults, *faults]


def _shape_findings(values: dict[str, Any]) -> Iterator[Finding]:
    for key in values:
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, n=1, cutoff=0.6)
            code = "spec_unknown_field_near" if near else "spec_unknown_field"
            yield Finding(code, (key,), {"name": key, "near": near[0] if near else "", "known": ", ".join(_KEYS)})
    name = values.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield Finding("template_name_bad", ("name",), {"value": str(name)[:80]})
    if not isinstance(values.get("description") or "", str):
        yield Finding("spec_want_string", ("description",), {"value": str(values["description"])[:80]})
    for key in ("spec", "schema"):
        if not isinstance(values.get(key) or {}, dict):
            yield Finding("spec_want_object", (key,), {"value": str(values[key])[:80]})
    for key in ("required", "locked"):
        items = values.get(key) or []
        if not isinstance(items, list) or not all(isinstance(item, str) for item in cast(list[Any], items)):
            yield Finding("template_want_fields", (key,), {"value": str(values[key])[:80]})
    given = values.get("spec")
    if isinstance(given, dict) and "template" in given:
        yield Finding("template_nested", ("spec", "template"), {})


def _schema_findings(schema: Any, path: Place) -> Iterator[Finding]:
    """What is wrong with the JSON Schema itself."""
    if not isinstance(schema, dict):
        yield Finding("spec_want_object", path, {"value": str(schema)[:80]})
        return
    for key, value in cast(dict[str, Any], schema).items():
        here = (*path, key)
        wanted = _KEYWORDS.get(key)
        if wanted is None:
            yield Finding("template_keyword", here, {"name": key, "known": ", ".join(_KEYWORDS)})
        elif not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted and object not in wanted):
            words = {bool: "true or false", str: "text", int: "a whole number", list: "a list", dict: "a mapping", float: "a number"}  # fmt: skip
            yield Finding("template_keyword_value", here, {"name": key, "wanted": words[wanted[-1]]})
        elif key == "type" and value not in _TYPES:
            yield Finding("spec_not_one_of", here, {"value": str(value)[:80], "allowed": ", ".join(_TYPES)})
        elif key == "format" and value not in fields.FORMATS:
            allowed = ", ".join(sorted(fields.FORMATS))
            yield Finding("spec_not_one_of", here, {"value": str(value)[:80], "allowed": allowed})
        elif key == "required" and not all(isinstance(name, str) for name in cast(list[Any], value)):
            yield Finding("template_want_fields", here, {"value": str(value)[:80]})
        elif key == "properties":
            for name, inner in cast(dict[str, Any], value).items():
                yield from _schema_findings(inner, (*here, name))
        elif key == "items":
            yield from _schema_findings(value, here)


def _list_findings(template: Template) -> Iterator[Finding]:
    """Fields that are required or locked must be fields of a spec; what is locked must have a value."""
    top = [field.name for field in fields.TOP]
    for key in ("required", "locked"):
        for at, name in enumerate(getattr(template, key)):
            if name.split(".")[0] not in top:
                yield Finding("template_field_unknown", (key, at), {"name": name, "known": ", ".join(top)})
            elif key == "locked" and not has(template.spec, name):
                yield Finding("template_locked_empty", (key, at), {"name": name})


def _defaults(schema: Any) -> dict[str, Any]:
    """The values that a schema gives by `default`."""
    found: dict[str, Any] = {}
    for name, inner in cast(dict[str, Any], schema.get("properties") or {}).items():
        if "default" in inner:
            found[name] = inner["default"]
        elif below := _defaults(inner):
            found[name] = below
    return found


# --- resolving -------------------------------------------------------------------------------------------------------


def merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of both: mappings joined, everything else as the upper one has it.

    What can only be said in one of several ways (run, recipe or stages; cards or cards_per_node) is taken from one of them.
    """
    return _join(under, over, top=True)


def _join(
    under: Mapping[str, Any], over: Mapping[str, Any], *, top: bool = False, cards: bool = False
) -> dict[str, Any]:
    joined: dict[str, Any] = copy.deepcopy(dict(under))
    for name in over:
        others = _SHORT.get(name, ()) if cards else _KINDS if top and name in _KINDS else ()
        for other in others:
            if other != name and other not in over:
                joined.pop(other, None)
    for name, value in over.items():
        before = joined.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            below = cast(dict[str, Any], before), cast(dict[str, Any], value)
            joined[name] = _join(*below, cards=top and name == "resources")
        else:
            joined[name] = copy.deepcopy(value)
    return joined


def resolve(template: Template, values: dict[str, Any]) -> Resolution:
    """Return the spec of the template and the values of a file (with `--set` in them), and all faults of it."""
    merged = merge(template.spec, {name: value for name, value in values.items() if name != "template"})
    loaded = from_values(copy.deepcopy(merged))
    known = {fault.field for fault in loaded.faults}
    found = [Finding("template_locked", _place(name), {"name": name, "value": _shown(get(template.spec, name))})
             for name in template.locked if get(merged, name) != get(template.spec, name)]  # fmt: skip
    found += list(_judge(template, merged))
    faults = loaded.faults + [
        Fault(one.code, show(one.path), None, one.params) for one in found if show(one.path) not in known
    ]
    return Resolution(loaded.spec, faults, loaded.warnings, merged)


def _judge(template: Template, merged: dict[str, Any], *, given: bool = True) -> Iterator[Finding]:
    """What the rules of the template have against values. `given`: whether all that must be given is there by now."""
    schema = template.schema if given else _without_required(template.schema)
    yield from findings_of(schema, merged)
    for name in template.required if given else ():
        if get(merged, name) in (None, "", [], {}):
            about = _about(template.schema, name)
            code = "template_required_about" if about else "template_required"
            yield Finding(code, _place(name), {"name": name, "about": about})


def _without_required(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for key, value in cast(dict[str, Any], schema).items():
        if key == "properties":
            kept[key] = {name: _without_required(inner) for name, inner in value.items()}
        elif key not in ("required", "minItems"):
            kept[key] = value
    return kept


def _about(schema: dict[str, Any], name: str) -> str:
    """What the schema says a field is for."""
    here: Any = schema
    for part in name.split("."):
        here = here.get("properties", {}).get(part) if isinstance(here, dict) else None
    return str(here.get("description", "")) if isinstance(here, dict) else ""  # type: ignore[union-attr]


def origins(template: Template | None, values: dict[str, Any], sets: Sequence[str], merged: dict[str, Any]) -> list[ResolvedValue]:  # fmt: skip
    """Return every value of a spec with where it came from: template, file, set or default."""
    by_set = [tuple(name.split(".")) for name in sets]
    found: list[ResolvedValue] = []
    for path, value in leaves(merged):
        words = tuple(map(str, path))
        if any(words[: len(name)] == name for name in by_set):
            origin = "set"
        elif has(values, ".".join(words)) or template is None:
            origin = "file"
        else:
            origin = "template"
        found.append(ResolvedValue(field=show(path), value=value, origin=origin))
    given = {one.field.partition(".")[0].partition("[")[0] for one in found}
    found += [
        ResolvedValue(field=field.name, value=field.default, origin="default")
        for field in fields.TOP
        if field.built and field.name not in given and field.default and " " not in field.default
        and field.default != "none"
    ]  # fmt: skip
    return found


# --- looking ---------------------------------------------------------------------------------------------------------


def full_schema(template: Template) -> dict[str, Any]:
    """Return one JSON Schema of everything: rules, defaults, required and locked fields; for forms and editors."""
    schema: dict[str, Any] = copy.deepcopy(template.schema) or {}
    schema.setdefault("type", "object")
    schema |= {"title": template.name, "description": template.description}
    for path, value in leaves(template.spec):
        _below(schema, [str(part) for part in path]).setdefault("default", value)
    for name in template.locked:
        _below(schema, name.split(".")).update(readOnly=True, default=get(template.spec, name))
    for name in template.required:
        *outer, last = name.split(".")
        holder = _below(schema, outer)
        _below(holder, [last])
        holder["required"] = list(dict.fromkeys([*holder.get("required", []), last]))
    return schema


def _below(schema: dict[str, Any], parts: Sequence[str]) -> dict[str, Any]:
    for part in parts:
        schema = schema.setdefault("properties", {}).setdefault(part, {})
    return schema


def differences(before: Template, after: Template) -> list[Difference]:
    """Return what differs between two templates, by field."""
    one, other = (dict(leaves(cast(dict[str, Any], msgspec.to_builtins(each)))) for each in (before, after))
    paths = [path for path in {**one, **other} if path not in one or path not in other or one[path] != other[path]]
    return [Difference(show(path), one.get(path), other.get(path)) for path in sorted(paths, key=show)]


def leaves(values: Mapping[str, Any], path: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield every value that is no mapping (or an empty one) with its path."""
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves(cast(dict[str, Any], value), (*path, name))
        else:
            yield (*path, name), value


def get(values: Mapping[str, Any], name: str) -> Any:
    """Return the value at a dotted path; None where there is none."""
    here: Any = values
    for part in name.split("."):
        here = cast(dict[str, Any], here).get(part) if isinstance(here, dict) else None
    return here


def has(values: Mapping[str, Any], name: str) -> bool:
    return get(values, name) is not None


def _place(name: str) -> Place:
    return tuple(name.split("."))


def _shown(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()[:80]
