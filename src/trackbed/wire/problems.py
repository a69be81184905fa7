"""How an error crosses the wire (RFC 9457, `application/problem+json`): codes and values, no prose."""

from typing import Any

import msgspec


class FaultView(msgspec.Struct, kw_only=True, omit_defaults=True):
    code: str
    field: str = ""
    line: int | None = None
    params: dict[str, Any] = {}


class Problem(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`type` is `urn:trackbed:error:<code>`. The sentence is in the catalogues under `code`."""

    type: str
    status: int
    code: str
    params: dict[str, Any] = {}
    faults: list[FaultView] = []
