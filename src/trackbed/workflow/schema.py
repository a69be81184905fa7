"""What the JSON Schema finds, as findings of ours: stable code, values, way out."""

import difflib
import functools
from collections.abc import Iterator
from typing import Any, cast

import jsonschema
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.validators import extend

from trackbed.workflow import fields
from trackbed.workflow.finding import Finding
from trackbed.workflow.read import Place
from trackbed.workflow.values import FORMATS

_SHOWN = 80  # of a value in a sentence


def schema_findings(values: dict[str, Any]) -> list[Finding]:
    """Return everything the schema has against the values, one finding a cause."""
    return _found(_validator(), values)


def findings_of(schema: dict[str, Any], values: dict[str, Any]) -> list[Finding]:
    """The same for a schema of a template, which was checked when it was added."""
    return _found(Draft202012Validator(schema, format_checker=_formats()), values)


def _found(validator: Any, values: dict[str, Any]) -> list[Finding]:
    found = [finding for error in validator.iter_errors(values) for finding in _finding(error)]
    # A value of the wrong type fails its format and its range too: the first says it all.
    first: dict[Place, Finding] = {}
    for finding in found:
        first.setdefault(finding.path, finding)
    return list(first.values())


@functools.cache
def _validator() -> Any:
    validator = extend(Draft202012Validator, {"x-not-yet": _not_yet})
    return validator(fields.schema(), format_checker=_formats())


@functools.cache
def _formats() -> FormatChecker:
    checker = FormatChecker(formats=())
    for name, check in FORMATS.items():
        checker.checks(name)(check)
    return checker


def _not_yet(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
    yield jsonschema.ValidationError("not yet")


def _finding(error: Any) -> Iterator[Finding]:
    path: Place = tuple(error.absolute_path)
    rule, want, given = str(error.validator), error.validator_value, error.instance
    if "propertyNames" in error.absolute_schema_path:
        yield _bad_name(path, rule, want, given)
    elif rule == "additionalProperties":
        known = list(cast(dict[str, Any], error.schema.get("properties", {})))
        for name in sorted(set(given) - set(known)):
            yield _unknown(path, name, known)
    elif rule == "x-not-yet":
        yield Finding("not_yet", path, {"what": str(path[-1])})
    elif rule == "type":
        yield _wrong_type(path, want, given, error.schema)
    elif rule == "format":
        yield Finding(f"spec_bad_{str(want).replace('-', '_')}", path, {"value": _short(given)})
    elif rule == "const":
        yield _not_one_of(path, [want], given)
    elif rule == "enum":
        yield _not_one_of(path, want, given)
    elif rule in ("minLength", "minItems"):
        yield Finding("spec_too_short", path, {"least": want}) if want > 1 else Finding("spec_empty", path)
    elif rule in ("maxLength", "maxItems"):
        yield Finding("spec_too_long", path, {"most": want})
    elif rule == "minimum":
        yield Finding("spec_too_small", path, {"value": _short(given), "least": want})
    elif rule == "maximum":
        yield Finding("spec_too_great", path, {"value": _short(given), "most": want})
    elif rule == "required":
        missing = [name for name in want if name not in given]
        yield from (Finding("spec_missing", (*path, name), {"name": name}) for name in missing)
    elif rule == "uniqueItems":
        twice = next(item for index, item in enumerate(given) if item in given[:index])
        yield Finding("spec_twice", path, {"value": _short(twice)})
    else:  # what the schema may grow
        yield Finding("spec_value_wrong", path, {"rule": rule, "limit": _short(want)})


def _unknown(path: Place, name: str, known: list[str]) -> Finding:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if near:
        return Finding("spec_unknown_field_near", (*path, name), {"name": name, "near": near[0]})
    return Finding("spec_unknown_field", (*path, name), {"name": name, "known": ", ".join(known)})


def _bad_name(path: Place, rule: str, want: Any, given: Any) -> Finding:
    if rule == "enum":
        return _not_one_of((*path, given), want, given)
    return Finding(f"spec_bad_{str(want).replace('-', '_')}", (*path, given), {"value": _short(given)})


def _not_one_of(path: Place, allowed: list[Any], given: Any) -> Finding:
    words = [str(one) for one in allowed]
    near = difflib.get_close_matches(str(given), words, n=1, cutoff=0.6)
    params = {"value": _short(given), "allowed": ", ".join(words)}
    if near and near[0] != str(given):
        return Finding("spec_not_one_of_near", path, {**params, "near": near[0]})
    return Finding("spec_not_one_of", path, params)


def _wrong_type(path: Place, want: Any, given: Any, schema: dict[str, Any]) -> Finding:
    params = {"value": _short(given)}
    if isinstance(want, list):
        fmt = schema.get("format")
        return Finding(f"spec_bad_{fmt}" if fmt else "spec_want_string", path, params)
    if want in ("integer", "number") and isinstance(given, str) and _is_number(given):
        return Finding("spec_number_in_quotes", path, params)
    return Finding(f"spec_want_{want}", path, params)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _short(value: Any) -> str:
    if value is None:
        return "null"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
