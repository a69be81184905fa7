"""Leases: the one table of times, and the judge of silence.

A lease ends only by time during which the server was itself serving: its absence, and a stop of its process, extend every
lease. Order of the table is checked: 3·heartbeat < suspect < lease < replace.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from trackbed.base.errors import BadInput


@dataclass(frozen=True)
class LeaseTimes:
    heartbeat_s: float = 5.0
    suspect_s: float = 20.0
    lease_s: float = 60.0
    replace_s: float = 90.0
    grace_s: float = 120.0
    orphan_limit_s: float = 24 * 3600.0

    def __post_init__(self) -> None:
        if not 3 * self.heartbeat_s < self.suspect_s < self.lease_s < self.replace_s:
            raise BadInput(
                "lease_times_disordered",
                heartbeat_s=self.heartbeat_s, suspect_s=self.suspect_s, lease_s=self.lease_s, replace_s=self.replace_s,
            )  # fmt: skip


class Contact(StrEnum):
    """Stands beside the state of a run and never moves it by itself, but for `gone`."""

    OK = "ok"
    SUSPECT = "suspect"  # silent for longer than a missed beat or two
    EXPIRED = "expired"  # the lease is over; nothing is replaced yet
    GONE = "gone"  # another attempt may be issued, on other cards


def judge(silent_s: float, times: LeaseTimes) -> Contact:
    """Return what a silence of `silent_s` seconds of serving time means."""
    if silent_s >= max(times.replace_s, times.lease_s + times.suspect_s):
        return Contact.GONE
    if silent_s >= times.lease_s:
        return Contact.EXPIRED
    return Contact.SUSPECT if silent_s >= times.suspect_s else Contact.OK


@dataclass
class Silence:
    """How long each attempt was silent, counted only while this server was serving.

    `observe` is called at every beat of the server's own loop; a beat that comes later than `longest_beat_s` means that
    the server was not serving (stopped, starved, suspended) and counts as that much only. After a start every silence
    is zero, so none ends before one full lease.
    """

    longest_beat_s: float = 2.0
    _served_s: float = 0.0
    _last_s: float | None = None
    _heard: dict[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])

    def observe(self, monotonic_s: float, contacts: Mapping[str, int]) -> dict[str, float]:
        """Return seconds of silence by attempt id. `contacts` holds the time stamp of each one's last renewal."""
        if self._last_s is not None:
            self._served_s += min(max(monotonic_s - self._last_s, 0.0), self.longest_beat_s)
        self._last_s = monotonic_s
        heard: dict[str, tuple[int, float]] = {}
        for attempt, stamp in contacts.items():
            known = self._heard.get(attempt)
            heard[attempt] = known if known is not None and known[0] == stamp else (stamp, self._served_s)
        self._heard = heard
        return {attempt: self._served_s - since for attempt, (_, since) in heard.items()}
