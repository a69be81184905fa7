"""Time of the process. Wall time is aware UTC, carried as whole microseconds; durations are monotonic."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now_us(self) -> int:
        """Microseconds since 1970-01-01T00:00:00Z."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that never run backwards; only differences mean something."""
        ...


class SystemClock:
    def now_us(self) -> int:
        return time.time_ns() // 1000

    def monotonic_s(self) -> float:
        return time.monotonic()


def utc(time_us: int) -> datetime:
    """Return the aware UTC datetime of a microsecond stamp."""
    return datetime.fromtimestamp(time_us / 1_000_000, tz=UTC)
