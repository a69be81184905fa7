"""The content-addressed store: whatever a run uses or makes, by digest. The port is `store.Store`.

open.open_store ← local.LocalStore (format 0) | cache.NodeCache (trees on a node) | scan (a folder's digest, without a store)
"""

from trackbed.storage.cache import NodeCache
from trackbed.storage.local import LocalStore
from trackbed.storage.open import open_store
from trackbed.storage.store import Progress, Reader, Refs, RefValue, Store, TreeInfo

__all__ = ["LocalStore", "NodeCache", "Progress", "Reader", "RefValue", "Refs", "Store", "TreeInfo", "open_store"]
