"""What the server does with sources."""

from trackbed.base.errors import Fault
from trackbed.sources.environment import differences, digest_of
from trackbed.sources.sql import load_environment, save_environment
from trackbed.wire.runs import EnvironmentRecord

__all__ = ["differences", "environment_faults", "load_environment", "save_environment"]


def environment_faults(record: EnvironmentRecord) -> list[Fault]:
    """Return what is wrong with a record that a client sent: its digest must be that of its content."""
    actual = digest_of(record)
    if record.digest == actual:
        return []
    return [Fault("sources_environment_digest", "environment", None, {"expected": record.digest, "actual": actual})]
