"""What `trackbed up` was told, with the defaults of the embedded form."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from trackbed.base.errors import BadInput, NotYet
from trackbed.base.home import home as default_home
from trackbed.base.home import store_url
from trackbed.domain.lease import LeaseTimes

PORT = 8470
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def lease_times() -> LeaseTimes:
    """Return the table of lease times; `TRACKBED_LEASE_TIMES` = heartbeat,suspect,lease,replace,grace in seconds."""
    given = os.environ.get("TRACKBED_LEASE_TIMES", "")
    if not given:
        return LeaseTimes()
    try:
        heartbeat, suspect, lease, replace, *grace = (float(part) for part in given.split(","))
    except ValueError:
        raise BadInput("lease_times_unreadable", given=given) from None
    return LeaseTimes(heartbeat, suspect, lease, replace, *grace[:1])


def card_price() -> tuple[float | None, str]:
    """Return price and currency of one card for one hour; `TRACKBED_CARD_HOUR_PRICE` = `2.5 EUR`."""
    given = os.environ.get("TRACKBED_CARD_HOUR_PRICE", "")
    if not given:
        return None, ""
    amount, _, currency = given.strip().partition(" ")
    try:
        price = float(amount)
    except ValueError:
        price = -1.0
    if not 0 <= price < float("inf"):
        raise BadInput("card_price_unreadable", given=given)
    return price, currency.strip()


@dataclass(frozen=True)
class Settings:
    """One installation. Empty URLs mean the embedded form: SQLite and a folder below `home`."""

    home: Path = field(default_factory=default_home)
    host: str = "127.0.0.1"
    port: int = PORT  # 0: any free one
    database_url: str = ""
    store_url: str = ""
    store_rate: float = 0.0  # most bytes a second between the store and each process that uses it; 0: no limit
    cluster: str = "local"
    cards: int = 0  # card slots of the embedded node; 0: what the accelerator port finds
    lease: LeaseTimes = field(default_factory=lease_times)
    allowed_hosts: tuple[str, ...] = ()  # names in the Host header besides those of loopback
    accept_one_trust_domain: bool = False
    environments: str = "any"  # published: only those that have a name in the space of the run
    doctor_every_s: float = 600.0  # between looks at the node
    environment_drift: str = "refuse"  # flag: a run whose environment is not as pinned starts, and says so
    log_level: str = "INFO"
    loops: bool = True  # tests of routes switch them off
    heartbeat_s: float = 15.0  # of event streams
    card_hour_price: float | None = field(default_factory=lambda: card_price()[0])  # None: forecasts say hours only
    currency: str = field(default_factory=lambda: card_price()[1])

    def __post_init__(self) -> None:
        if self.host not in LOOPBACK:
            raise NotYet("not_yet", what=f"--host {self.host} (anything but loopback)")
        for name, known in (("environments", ("any", "published")), ("environment_drift", ("refuse", "flag"))):
            if getattr(self, name) not in known:
                raise BadInput("setting_unknown", name=name, given=getattr(self, name), known=", ".join(known))
        if not self.database_url:
            object.__setattr__(self, "database_url", f"sqlite:///{self.home / 'trackbed.sqlite3'}")
        if not self.store_url:
            object.__setattr__(self, "store_url", store_url(self.home))

    @property
    def card_slots(self) -> int:
        """Slots asked for; 0 leaves it to the engine."""
        return self.cards or int(os.environ.get("TRACKBED_CARDS", "0"))
