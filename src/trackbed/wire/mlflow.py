"""MLflow's JSON as both of our doors read and write it: the server's routes, and the relay of an attempt. Pure.

int64 fields come as numbers or as strings, and are answered as numbers, as MLflow's own server does. What is not finite is
the word NaN; an infinity is answered as the largest double, as MLflow stores it. Unknown fields are ignored.
"""

import json
import math
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from trackbed.base.errors import BadInput
from trackbed.formats.spool import name_ok

Document = dict[str, Any]
LARGEST = sys.float_info.max
INT64 = 2**63
MOST_TAG_KEY, MOST_TAG_VALUE = 250, 65536  # characters
DEFAULT_EXPERIMENT = "0"  # what clients mean who chose no experiment
# The newest MLflow whose client was run against this surface; clients choose by it what they may ask for.
SPOKEN = "3.17.2"
SERVER_INFO: Document = {
    "store_type": "Trackbed", "workspaces_enabled": False, "trace_archival_enabled": False,
    "multipart_uploads_enabled": False, "multipart_downloads_enabled": False,
    "presigned_upload_run_id_supported": False, "presigned_upload_model_id_supported": False,
    "features_enabled": {"gateway": False},
}  # fmt: skip
RUN_NAME, RUN_NOTE, RUN_USER = "mlflow.runName", "mlflow.note.content", "mlflow.user"
RUN_PARENT = "mlflow.parentRunId"
STATUSES = {"1": "RUNNING", "2": "SCHEDULED", "3": "FINISHED", "4": "FAILED", "5": "KILLED"}
ENDS = {"FINISHED": "finished", "FAILED": "failed", "KILLED": "killed"}
CLIENT = "cli_mlflow"  # how the ids of those begin who write frames of what came through MLflow
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class Point(NamedTuple):
    key: str
    step: int
    ts_ms: int
    value: float


class Asked:
    """The fields of one request, from its path, query and body."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    @property
    def fields(self) -> Mapping[str, Any]:
        return self._fields

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


def read(body: bytes) -> dict[str, Any]:
    """Return the object in a body."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise BadInput("mlflow_body_bad") from None
    if not isinstance(found, dict):
        raise BadInput("mlflow_body_bad")
    return found


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


def read_status(asked: Asked) -> str:
    """Return the status that a client says of a run, empty where it says none.

    Raises:
        BadInput: `mlflow_field_bad`.
    """
    said = asked.text("status")
    status = STATUSES.get(said, said)
    if status and status not in STATUSES.values():
        raise bad("status", said)
    return status


def read_point(asked: Asked) -> Point:
    """Return a checked point.

    Raises:
        BadInput: `mlflow_field_missing`, `mlflow_field_bad`.
    """
    key, value, ts_ms = asked.need("key"), asked.number("value"), asked.whole("timestamp")
    if not name_ok(key):
        raise bad("key", key)
    if not asked.has("timestamp"):
        raise BadInput("mlflow_field_missing", field="timestamp")
    if abs(ts_ms) >= INT64 // 1000:
        raise bad("timestamp", ts_ms)
    return Point(key, asked.whole("step"), ts_ms, value)


def read_params(entries: "list[Asked]") -> dict[str, str]:
    """Return checked params of a request.

    Raises:
        BadInput: `mlflow_param_twice`, `mlflow_field_missing`, `mlflow_field_bad`.
    """
    found: dict[str, str] = {}
    for entry in entries:
        key, value = entry.need("key"), entry.text("value")
        if not name_ok(key):
            raise bad("key", key)
        if found.setdefault(key, value) != value:
            raise BadInput("mlflow_param_twice", name=key)
    return found


def read_tag(entry: Asked) -> tuple[str, str]:
    """Return one checked tag.

    Raises:
        BadInput: `mlflow_tag_long`, `mlflow_field_missing`.
    """
    key, value = entry.need("key"), entry.text("value")
    if len(key) > MOST_TAG_KEY or len(value) > MOST_TAG_VALUE:
        raise BadInput("mlflow_tag_long", key=key[:80], most_key=MOST_TAG_KEY, most_value=MOST_TAG_VALUE)
    return key, value


def later(one: Point, other: Point) -> bool:
    """Whether a point is the latest of both by MLflow's rule: the greatest (step, time, value), NaN counting as 0."""
    return _rank(one) > _rank(other)


def _rank(point: Point) -> tuple[int, int, float]:
    return (point.step, point.ts_ms, 0.0 if math.isnan(point.value) else clamped(point.value))


def shown_point(point: Point) -> Document:
    return {"key": point.key, "value": shown(point.value), "timestamp": point.ts_ms, "step": point.step}
