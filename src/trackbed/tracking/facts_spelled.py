"""Params and tags between texts, as MLflow has them, and our values. Pure."""

import math
from typing import Any

from trackbed.tracking.facts_values import pack
from trackbed.tracking.ingest_parse import MAX_TAG_CHARS

_TRUTH = {"True": True, "False": False}


def native(text: str) -> Any:
    """Return the value that a text spells exactly (a number, a truth value), else the text: numbers can be searched for."""
    if text in _TRUTH:
        return _TRUTH[text]
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        if repr(value) == text and math.isfinite(value) and abs(value) < 2**63:
            return value
    return text


def spelled(value: Any) -> str:
    """Return a param as MLflow answers it; the opposite of `native`."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    return pack(value)


def native_tag(key: str, value: str) -> str:
    """Return the label that stands for a tag on our pages; empty for MLflow's own and for what is no label."""
    label = f"{key}={value}" if value else key
    fits = len(label) <= MAX_TAG_CHARS and label.isprintable()
    return label if fits and not key.startswith("mlflow.") else ""
