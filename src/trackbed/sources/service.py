"""What the server does with sources."""

from trackbed.base.errors import BadInput, Fault
from trackbed.sources.environment import differences, digest_of
from trackbed.sources.sql import load_environment, save_environment
from trackbed.wire.runs import EnvironmentRecord

__all__ = ["differences", "environment_faults", "load_environment", "save_environment"]

_KINDS = ("current", "lock", "image")


def environment_faults(record: EnvironmentRecord) -> list[Fault]:
    """Return what is wrong with a record that a client sent: its digest must be that of its content."""
    if record.kind not in _KINDS:
        return [
            Fault("sources_environment_kind", "environment", None, {"kind": record.kind, "known": ", ".join(_KINDS)})
        ]
    try:
        actual = digest_of(record)
    except BadInput as fault:  # a lock that is none
        return [one._replace(field="environment") for one in fault.faults] or [
            Fault(fault.code, "environment", None, fault.params)
        ]
    if record.digest == actual:
        return []
    return [Fault("sources_environment_digest", "environment", None, {"expected": record.digest, "actual": actual})]
