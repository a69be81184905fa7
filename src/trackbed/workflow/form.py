"""The fields of a form: each with its rules, whether it must be given or may not be, its value and where that is from. Pure."""

from collections.abc import Iterator
from typing import Any, cast

from trackbed.wire.templates import FormField
from trackbed.workflow import fields
from trackbed.workflow.template import Template, full_schema, get, has, merge

_FREE = ("params", "data", "env", "matrix", "retries")  # names of their own, not ours
_WHOLE = ("stages", "tags", "code")  # one field, whatever lies in it


def form_of(template: Template | None, values: dict[str, Any]) -> list[FormField]:
    """Return the fields of a spec, in the order of the reference, with the values of a file and its template."""
    under = template.spec if template is not None else {}
    merged = merge(under, {name: value for name, value in values.items() if name != "template"})
    ruled = full_schema(template) if template is not None else {}
    required, locked = (set(template.required), set(template.locked)) if template is not None else (set[str](), set[str]())  # fmt: skip
    found: list[FormField] = []
    for name, own in _fields(ruled, merged):
        schema = {**own, **_at(ruled, name)}
        schema.pop("properties", None)
        value = get(merged, name)
        origin = "file" if has(values, name) else "template" if has(under, name) else "default"
        found.append(
            FormField(
                field=name, schema=schema, value=value, origin=origin, default=_default(name),
                required=_covers(required, name) or _asked(ruled, name), locked=_covers(locked, name),
                description=str(schema.get("description") or ""),
            )
        )  # fmt: skip
    return found


def _fields(ruled: dict[str, Any], merged: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    own = cast(dict[str, Any], fields.schema()["properties"])
    for field in fields.TOP:
        if not field.built or field.name == "template":
            continue
        schema = own[field.name]
        if field.name in _FREE:
            inner = schema.get("additionalProperties")
            names = [*_properties(_at(ruled, field.name)), *cast(dict[str, Any], merged.get(field.name) or {})]
            for name in dict.fromkeys(names):
                yield f"{field.name}.{name}", inner if isinstance(inner, dict) else {}
        elif field.fields and field.name not in _WHOLE:
            for inner in field.fields:
                if inner.built:
                    yield f"{field.name}.{inner.name}", schema["properties"][inner.name]
        else:
            yield field.name, schema


def _at(schema: dict[str, Any], name: str) -> dict[str, Any]:
    here: Any = schema
    for part in name.split("."):
        here = _properties(here).get(part, {})
    return here if isinstance(here, dict) else {}


def _properties(schema: Any) -> dict[str, Any]:
    return cast(dict[str, Any], schema.get("properties") or {}) if isinstance(schema, dict) else {}


def _asked(ruled: dict[str, Any], name: str) -> bool:
    outer, _, last = name.rpartition(".")
    return last in (_at(ruled, outer) if outer else ruled).get("required", [])


def _covers(names: set[str], name: str) -> bool:
    """Whether a field, or what it lies in, is among the names."""
    parts = name.split(".")
    return any(".".join(parts[: length + 1]) in names for length in range(len(parts)))


def _default(name: str) -> str:
    outer, _, last = name.partition(".")
    field = next((one for one in fields.TOP if one.name == outer), None)
    if field is not None and last:
        field = next((one for one in field.fields if one.name == last), None)
    return field.default if field is not None and field.default != "none" else ""
