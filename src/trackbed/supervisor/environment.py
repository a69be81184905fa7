"""Whether the environment `current` is still the one that was pinned: the same packages, by the digests of their file lists."""

from typing import Any

import msgspec

from trackbed.base.errors import BadInput, Conflict, NotFound
from trackbed.sources.environment import differences, record_of
from trackbed.wire.runs import EnvironmentRecord

_MOST_NAMES = 20


def verify(document: dict[str, Any]) -> None:
    """Compare the environment on this machine with the record of the assignment.

    Raises:
        NotFound: `environment_gone`, its interpreter is not there or does not start.
        Conflict: `environment_drift`, with the names of what differs.
    """
    pinned = msgspec.convert(document, EnvironmentRecord)
    if pinned.kind != "current" or not pinned.executable or not pinned.packages:
        return  # nothing was pinned
    try:
        found = record_of(pinned.executable)
    except BadInput as fault:
        what = str(fault.params.get("reason", fault))
        raise NotFound("environment_gone", executable=pinned.executable, what=what) from fault
    changes = [f"{name} {before or '-'} -> {after or '-'}" for name, before, after in differences(pinned, found)]
    if changes:
        more = f" (+{len(changes) - _MOST_NAMES})" if len(changes) > _MOST_NAMES else ""
        raise Conflict("environment_drift", count=len(changes), changes=", ".join(changes[:_MOST_NAMES]) + more)
