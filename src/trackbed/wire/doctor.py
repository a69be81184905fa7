"""Health of nodes."""

from typing import Any, Literal

import msgspec


class NodeCheck(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One look of one check. The sentence is `doctor.<check>` filled with `params`, or `doctor.fault` where it could not look."""

    node: str
    check: str  # disk | fsync | storage | network | clock | driver | packages
    verdict: Literal["ok", "warn", "bad"]
    value: float = 0.0
    unit: str = ""
    params: dict[str, Any] = {}
    time_us: int = 0
