"""A clock that moves only when told."""

import threading

START_US = 1_700_000_000_000_000


class FakeClock:
    """Satisfies `base.clock.Clock`. Any thread may read or move it."""

    def __init__(self, now_us: int = START_US) -> None:
        self._lock = threading.Lock()
        self._now_us = now_us
        self._monotonic_s = 1000.0

    def now_us(self) -> int:
        with self._lock:
            return self._now_us

    def monotonic_s(self) -> float:
        with self._lock:
            return self._monotonic_s

    def advance(self, seconds: float) -> None:
        """Let time pass on both."""
        with self._lock:
            self._now_us += round(seconds * 1_000_000)
            self._monotonic_s += seconds

    def jump(self, seconds: float) -> None:
        """Set only the wall clock, forth or back; monotonic time does not see it."""
        with self._lock:
            self._now_us += round(seconds * 1_000_000)
