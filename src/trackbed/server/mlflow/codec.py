"""MLflow's JSON: fields asked for, and values answered.

int64 fields come as numbers or as strings, and are answered as numbers, as MLflow's own server does. What is not finite is
the word NaN; an infinity is answered as the largest double, as MLflow stores it. Unknown fields are ignored.
"""

import base64
import binascii
import json
import math
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

import msgspec
from litestar import Request, Response

from trackbed.base.errors import BadInput

Document = dict[str, Any]
LARGEST = sys.float_info.max
INT64 = 2**63
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class Asked:
    """The fields of one request, from its path, query and body."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def has(self, name: str) -> bool:
        return self._fields.get(name) is not None

    def text(self, name: str, otherwise: str = "") -> str:
        """Return a text; numbers and truth values as they are written.

        Raises:
            BadInput: `mlflow_field_bad`.
        """
        value = self._fields.get(name)
        if value is None:
            return otherwise
        if isinstance(value, list) and len(value) == 1:  # pyright: ignore[reportUnknownArgumentType]
            value = value[0]
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int | float):
            return repr(value)
        if not isinstance(value, str) or not _storable(value):
            raise bad(name, value)
        return value

    def need(self, name: str, *others: str) -> str:
        """Return a text that must be there, under this name or an older one.

        Raises:
            BadInput: `mlflow_field_missing`.
        """
        for one in (name, *others):
            if found := self.text(one):
                return found
        raise BadInput("mlflow_field_missing", field=name)

    def whole(self, name: str, otherwise: int = 0) -> int:
        """Return an int64."""
        value = self.text(name)
        if not value:
            return otherwise
        try:
            number = int(value)
        except ValueError:
            try:
                number = int(float(value))
            except (ValueError, OverflowError):
                raise bad(name, value) from None
        if not -INT64 <= number < INT64:
            raise bad(name, value)
        return number

    def number(self, name: str) -> float:
        """Return a double that must be there; non-finite ones come by their words."""
        if not self.has(name):
            raise BadInput("mlflow_field_missing", field=name)
        value = self._fields[name]
        if isinstance(value, bool):
            raise bad(name, value)
        if isinstance(value, int | float):
            return _double(name, value)
        text = self.text(name)
        if text in _WORDS:
            return _WORDS[text]
        try:
            return float(text)
        except ValueError:
            raise bad(name, text) from None

    def flag(self, name: str) -> bool:
        return self.text(name).lower() in ("true", "1")

    def texts(self, name: str) -> list[str]:
        """Return a list of texts; a single one counts as a list."""
        value = self._fields.get(name)
        given: list[Any] = [] if value is None else value if isinstance(value, list) else [value]
        return [Asked({name: one}).need(name) for one in given]

    def records(self, name: str) -> "list[Asked]":
        """Return a list of objects.

        Raises:
            BadInput: `mlflow_field_bad`.
        """
        value = self._fields.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise bad(name, value)
        given: list[Any] = value
        if not all(isinstance(one, dict) for one in given):
            raise bad(name, given)
        return [Asked(one) for one in given]

    def record(self, name: str) -> "Asked":
        value = self._fields.get(name)
        if value is None:
            raise BadInput("mlflow_field_missing", field=name)
        if not isinstance(value, dict):
            raise bad(name, value)
        inner: dict[str, Any] = value
        return Asked(inner)


def bad(name: str, value: Any) -> BadInput:
    """Return the error of a field whose value cannot be used."""
    return BadInput("mlflow_field_bad", field=name, value=ascii(value)[:200])


def _double(name: str, value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise bad(name, value) from None


def _storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


async def ask(request: Request[Any, Any, Any]) -> Asked:
    """Return the fields of a request.

    Raises:
        BadInput: `mlflow_body_bad`.
    """
    query = parse_qs(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)
    fields: dict[str, Any] = {name: given[0] if len(given) == 1 else given for name, given in query.items()}
    body = await request.body()
    if body.strip():
        fields |= read(body)
    return Asked({**fields, **request.path_params})


def read(body: bytes) -> dict[str, Any]:
    """Return the object in a body."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise BadInput("mlflow_body_bad") from None
    if not isinstance(found, dict):
        raise BadInput("mlflow_body_bad")
    return found


def answer(document: Document, status: int = 200) -> Response[bytes]:
    """Return an answer; fields that are None are left out by `some`."""
    return Response(msgspec.json.encode(document), status_code=status, media_type="application/json")


def some(**fields: Any) -> Document:
    """Return an object without the fields that are None: proto-JSON leaves unset ones out."""
    return {name: value for name, value in fields.items() if value is not None}


def shown(value: float) -> float | str:
    """Return a value as MLflow answers it."""
    if math.isnan(value):
        return "NaN"
    return clamped(value)


def clamped(value: float) -> float:
    return max(-LARGEST, min(LARGEST, value))


def pairs(entries: Mapping[str, str]) -> list[Document]:
    """Return entries as MLflow's key and value objects."""
    return [{"key": key, "value": value} for key, value in entries.items()]


def milliseconds(us: int) -> int:
    return us // 1000


def page_token(offset: int) -> str:
    """Return where the next page begins."""
    return base64.urlsafe_b64encode(json.dumps({"offset": offset}).encode()).decode()


def offset_of(token: str) -> int:
    """Return where a page begins.

    Raises:
        BadInput: `mlflow_field_bad`.
    """
    if not token:
        return 0
    try:
        offset = json.loads(base64.urlsafe_b64decode(token))["offset"]
    except (binascii.Error, ValueError, KeyError, TypeError):
        raise bad("page_token", token) from None
    if not isinstance(offset, int) or not 0 <= offset < 2**31:
        raise bad("page_token", token)
    return offset


def page_size(asked: Asked, *, usual: int, most: int) -> int:
    """Return how many results a page has.

    Raises:
        BadInput: `mlflow_max_results`.
    """
    size = asked.whole("max_results", usual)
    if not 0 < size <= most:
        raise BadInput("mlflow_max_results", given=size, most=most)
    return size
