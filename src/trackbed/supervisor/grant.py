"""The node's way into the store: a grant of the server, in memory only, asked for again before it is too old."""

import threading
import time
from pathlib import Path

import httpx
import msgspec

from trackbed.base.errors import Denied, Unavailable
from trackbed.storage.backends.keys import S3Keys
from trackbed.storage.open import DomainKeys, Options, is_sealed, open_store
from trackbed.storage.store import Store
from trackbed.storage.transfer import Pace
from trackbed.supervisor.lease import Server
from trackbed.wire.attempts import Assignment
from trackbed.wire.store import StoreGrant

_PATIENCE_S = 120.0  # for the first grant: a server that restarts is not the end of an attempt
_PAUSE_S = (0.2, 5.0)


class Door:
    """Opens the store of an assignment; call it for the store of now. Threads may share it."""

    def __init__(self, given: Assignment, cache: Path) -> None:
        self._given, self._cache = given, cache
        self._store: Store | None = None
        self._until_s = 0.0
        self._lock = threading.Lock()

    def __call__(self, url: str) -> Store:
        """Return the opened store.

        Raises:
            Unavailable: `storage_grant_away`. Denied: the server gives this attempt none.
        """
        with self._lock:
            if self._store is None or time.monotonic() > self._until_s:
                self._store = self._open(url)
            return self._store

    def _open(self, url: str) -> Store:
        if not self._given.server_url or not is_sealed(url):
            self._until_s = float("inf")
            return open_store(url)
        asked_s = time.monotonic()
        grant = self._ask()
        self._until_s = asked_s + grant.expires_s
        if not grant.store_id:
            return open_store(grant.url)
        keys = DomainKeys(
            bytes.fromhex(grant.store_id),
            {int(generation): bytes.fromhex(secret) for generation, secret in grant.secrets.items()},
            S3Keys(grant.s3.key_id, grant.s3.secret, grant.s3.token) if grant.s3 else None,
        )
        options = Options(
            cache=self._cache if grant.url.startswith("s3:") else None, pace=Pace(grant.rate) if grant.rate else None
        )
        return open_store(grant.url, key=keys, options=options)

    def _ask(self) -> StoreGrant:
        deadline = time.monotonic() + (_PATIENCE_S if self._store is None else 0.0)
        pause_s = _PAUSE_S[0]
        server = Server(self._given)
        try:
            while True:
                try:
                    return self._once(server)
                except (Unavailable, httpx.HTTPError, msgspec.DecodeError) as fault:
                    if time.monotonic() > deadline:
                        raise Unavailable("storage_grant_away", why=str(fault) or type(fault).__name__) from fault
                time.sleep(pause_s)
                pause_s = min(pause_s * 2, _PAUSE_S[1])
        finally:
            server.close()

    def _once(self, server: Server) -> StoreGrant:
        answer = server.get("grant", timeout_s=20.0)
        if answer.status_code in (401, 403, 404, 409):
            raise Denied("storage_grant_refused", status=answer.status_code)
        if answer.status_code != 200:
            raise Unavailable("storage_grant_away", why=f"HTTP {answer.status_code}")
        return msgspec.json.decode(answer.content, type=StoreGrant)
