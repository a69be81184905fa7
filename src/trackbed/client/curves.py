"""Curves as the binary answer brings them: records of the API, floats bit for bit. Page: docs/formats/columns.md."""

from array import array
from collections.abc import Mapping
from typing import Any

import httpx
import msgspec

from trackbed.base.errors import Unavailable
from trackbed.formats import columns
from trackbed.wire.series import HistoryReply, Point, Series, SeriesReply

Columns = Mapping[str, "array[Any]"]
ACCEPT = f"{columns.MEDIA_TYPE}, application/json"
_NAMES = ("step", "time_us", "value", "attempt", "incarnation", "rank")


def history_of(answer: httpx.Response) -> HistoryReply:
    """Return a page of exact points.

    Raises:
        Unavailable: `server_garbage`.
    """
    document, found = _read(answer)
    points = _named(document, found)
    rows = zip(*(points[name].tolist() for name in _NAMES), strict=True)
    return HistoryReply(
        key=document["key"],
        points=[
            Point(step=step, time_us=ts, value=value, attempt=attempt, incarnation=incarnation, rank=rank)
            for step, ts, value, attempt, incarnation, rank in rows
        ],
        next=document["next"],
    )


def series_of(answer: httpx.Response) -> SeriesReply:
    """Return curves; of raw points mean, min and max are the points themselves.

    Raises:
        Unavailable: `server_garbage`.
    """
    document, found = _read(answer)
    curves: list[Series] = []
    for one in document["series"]:
        curve = msgspec.convert(one, Series)
        for name, column in _named(one, found).items():
            setattr(curve, name, column.tolist())
        if not curve.bucketed:
            curve.mean = curve.min = curve.max = curve.last
            curve.count = [1] * len(curve.x)
        curves.append(curve)
    document["series"] = []
    reply = msgspec.convert(document, SeriesReply)
    reply.series = curves
    return reply


def _named(document: Any, found: "list[array[Any]]") -> Columns:
    return {name: found[at] for name, at in document["columns"].items()}


def _read(answer: httpx.Response) -> "tuple[Any, list[array[Any]]]":
    try:
        return columns.decode(answer.content)
    except columns.ColumnsFault as fault:
        raise Unavailable("server_garbage", url=str(answer.request.url), what=str(fault)) from fault


def is_packed(answer: httpx.Response) -> bool:
    """Whether the server spoke in columns; an older one answers JSON."""
    return answer.headers.get("content-type", "").startswith(columns.MEDIA_TYPE)
