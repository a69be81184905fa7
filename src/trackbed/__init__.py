"""Trackbed: one submit, one record, on a shared pool of cards.

`trackbed.init(...)` joins or begins a run, `trackbed.Client()` asks a server. Both are loaded at first use: importing this
package is cheap and brings no HTTP, numpy or framework into a training process.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trackbed.client.api import Client
    from trackbed.client.run import Run, init

__all__ = ["Client", "Run", "init"]

_HOMES = {"init": "trackbed.client.run", "Run": "trackbed.client.run", "Client": "trackbed.client.api"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'trackbed' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
