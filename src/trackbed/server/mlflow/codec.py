"""MLflow's JSON over HTTP: requests read, answers and pages made. What both doors share is in `wire.mlflow`."""

import base64
import binascii
import json
from typing import Any
from urllib.parse import parse_qs

import msgspec
from litestar import Request, Response

from trackbed.base.errors import BadInput
from trackbed.wire.mlflow import (
    INT64,
    LARGEST,
    Asked,
    Document,
    bad,
    clamped,
    milliseconds,
    pairs,
    read,
    shown,
    some,
)

__all__ = [
    "INT64", "LARGEST", "Asked", "Document", "answer", "ask", "bad", "clamped", "milliseconds", "offset_of", "page_size",
    "page_token", "pairs", "read", "shown", "some",
]  # fmt: skip


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


def answer(document: Document, status: int = 200) -> Response[bytes]:
    """Return an answer; fields that are None are left out by `some`."""
    return Response(msgspec.json.encode(document), status_code=status, media_type="application/json")


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
