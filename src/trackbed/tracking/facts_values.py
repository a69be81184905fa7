"""Documents of any kind as text, exactly, and as they cross the wire. Pure.

Stored values are JSON in which a float that is not finite is `{"$float": "NaN"}`, so that a param is what it was.
"""

import math
from collections.abc import Sequence
from typing import Any, cast

import msgspec

from trackbed.tracking.metrics_state import WORDS, word

_MARK = "$float"
_encoder = msgspec.json.Encoder(enc_hook=str)


def pack(value: Any) -> str:
    """Return a document as JSON text that `unpack` gives back exactly."""
    return _encoder.encode(_marked(value)).decode()


def unpack(text: str) -> Any:
    return _unmarked(msgspec.json.decode(text))


def plain(value: Any) -> Any:
    """Return a document as it crosses the wire: non-finite floats by their words, bytes as text."""
    if isinstance(value, float):
        return word(value)
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in cast(dict[Any, Any], value).items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in cast(Sequence[Any], value)]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def number(value: Any) -> float | None:
    """Return what a search compares with: numbers but NaN, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return None if math.isnan(value) else float(value)
    except OverflowError:
        return None


def _marked(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {_MARK: word(value)}
    if isinstance(value, dict):
        return {str(key): _marked(inner) for key, inner in cast(dict[Any, Any], value).items()}
    if isinstance(value, list | tuple):
        return [_marked(inner) for inner in cast(Sequence[Any], value)]
    return value


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        inner = cast(dict[str, Any], value)
        if len(inner) == 1 and inner.get(_MARK) in WORDS:
            return WORDS[inner[_MARK]]
        return {key: _unmarked(each) for key, each in inner.items()}
    if isinstance(value, list):
        return [_unmarked(each) for each in cast(list[Any], value)]
    return value
