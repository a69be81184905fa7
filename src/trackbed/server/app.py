"""The one record that routes, flows and loops are given: what `server.main` wired together."""

import threading
from dataclasses import dataclass, field
from pathlib import Path

from trackbed.base.clock import Clock
from trackbed.clusters import Engine
from trackbed.db import Database
from trackbed.server.settings import Settings
from trackbed.server.stream import Publisher
from trackbed.server.wakes import Wakes
from trackbed.storage import Store
from trackbed.tracking.metrics_view import Curves

__all__ = ["App", "Publisher", "Settings", "Wakes"]


@dataclass(eq=False)
class App:
    """The only place that knows concrete classes is `server.main`; everyone else gets this record.

    Route handlers ask for it by a parameter `trackbed_app: App`, and for the signed-in one by `who: Scope`.
    """

    db: Database
    store: Store
    engine: Engine
    clock: Clock
    home: Path
    settings: Settings
    url: str = ""
    started_us: int = 0
    wake: Wakes = field(default_factory=Wakes)
    publisher: Publisher = field(default_factory=Publisher)
    stopping: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.curves = Curves(self.store)

    @property
    def one_trust_domain(self) -> bool:
        """Jobs run under the server's own account, so what one may read by the file system all may read."""
        return not getattr(self.engine.caps, "run_as", False)
