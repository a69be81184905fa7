"""The one table of lease times. Order is checked: 3·heartbeat < suspect < lease < replace."""

from dataclasses import dataclass

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
