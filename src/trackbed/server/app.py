"""The one record that routes, flows and loops are given: what `server.main` wired together."""

import threading
from dataclasses import dataclass, field
from pathlib import Path

from trackbed.access.spaces import space_named
from trackbed.base.clock import Clock
from trackbed.base.errors import Denied, NotFound
from trackbed.clusters import Engine
from trackbed.db import Database
from trackbed.domain.scope import ActorKind, Permission, Scope
from trackbed.server.domains import Domains, space_store
from trackbed.server.settings import Settings
from trackbed.server.stream import Publisher
from trackbed.server.wakes import Wakes
from trackbed.storage import Store
from trackbed.storage.chunks import ChunkStore
from trackbed.tracking.metrics_view import Curves

__all__ = ["App", "Publisher", "Settings", "Wakes"]


@dataclass(eq=False)
class App:
    """The only place that knows concrete classes is `server.main`; everyone else gets this record.

    Route handlers ask for it by a parameter `trackbed_app: App`, and for the signed-in one by `who: Scope`.
    """

    db: Database
    store: Store  # of the default space; it reads what any domain holds
    engine: Engine
    clock: Clock
    home: Path
    settings: Settings
    domains: Domains | None = None  # None: one store without domains
    url: str = ""
    started_us: int = 0
    wake: Wakes = field(default_factory=Wakes)
    publisher: Publisher = field(default_factory=Publisher)
    stopping: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.curves = Curves(self.store)

    def store_of(self, space_id: str) -> Store:
        """The store of a space: what is written there is sealed for it alone. Blocks; never inside a transaction."""
        return space_store(self.domains, space_id) if self.domains is not None else self.store

    def store_for(self, who: Scope, space: str = "") -> Store:
        """The store into which somebody writes for a space (by name; an attempt: its own, whatever is named). Blocks.

        Without a name: of the default space, or of the one that this person may write in instead.

        Raises:
            NotFound, Denied: no such space for this one, or no right to write in it.
        """
        if who.actor.kind is ActorKind.ATTEMPT:
            return self.store_of(who.actor.space_id)
        mine = who.spaces(Permission.WRITE)
        try:
            return self.store_of(self.db.read(lambda tx: space_named(tx, who, space, permission=Permission.WRITE).id))
        except (NotFound, Denied):
            if space or not mine:
                raise
            return self.store_of(min(mine))

    def chunk_stores(self) -> dict[str, ChunkStore]:
        """The domains that can be collected and verified, by id; the first one has the empty id."""
        if self.domains is not None:
            return self.domains.every()
        return {"": self.store} if isinstance(self.store, ChunkStore) else {}

    @property
    def one_trust_domain(self) -> bool:
        """Jobs run under the server's own account, so what one may read by the file system all may read."""
        return not getattr(self.engine.caps, "run_as", False)
