"""The content-addressed store: whatever a run uses or makes, by digest. The port is `store.Store`.

    open ← chunks (the chunk store: packs in a folder or bucket, sealed) | local (format 0: whole files in a folder)
    cache.NodeCache (trees on a node) | scan (a folder's digest, without a store) | gc, verify, repair (upkeep)

Names load when they are used: a laptop that only scans a folder needs neither keys nor compression.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trackbed.storage.cache import NodeCache
    from trackbed.storage.local import LocalStore
    from trackbed.storage.open import DomainKeys, Options, open_store
    from trackbed.storage.store import Progress, Reader, Refs, RefValue, Store, TreeInfo

_WHERE = {
    "NodeCache": "cache", "LocalStore": "local", "DomainKeys": "open", "Options": "open", "open_store": "open",
    "Progress": "store", "Reader": "store", "RefValue": "store", "Refs": "store", "Store": "store", "TreeInfo": "store",
}  # fmt: skip

__all__ = [
    "DomainKeys", "LocalStore", "NodeCache", "Options", "Progress", "Reader", "RefValue", "Refs", "Store", "TreeInfo",
    "open_store",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(name)
    return getattr(import_module(f"trackbed.storage.{_WHERE[name]}"), name)
