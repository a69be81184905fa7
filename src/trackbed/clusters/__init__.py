"""Engines that start supervisors on nodes; accelerators; nodes.

Front door: `open_engine("local", home=…, cards=…)` gives an `Engine`; `NodeFolder` is what engine and supervisor agree on.
"""

from pathlib import Path

from trackbed.base.errors import NotYet
from trackbed.clusters.accelerators import Accelerator, CardFacts
from trackbed.clusters.engine import Caps, Engine, Handle, NodeFacts, Observation, Phase
from trackbed.clusters.local import LocalEngine, open_local
from trackbed.clusters.node_folder import NodeFolder

__all__ = [
    "Accelerator",
    "Caps",
    "CardFacts",
    "Engine",
    "Handle",
    "LocalEngine",
    "NodeFacts",
    "NodeFolder",
    "Observation",
    "Phase",
    "open_engine",
]


def open_engine(url: str, *, home: Path, cards: int | None = None) -> LocalEngine:
    """Return the engine of a cluster address.

    `home` is Trackbed's home folder; attempts lie in `home/nodes/local/attempts`. `cards` asks for that many CPU slots
    (default: the accelerators found, else one slot a processor and at least two).

    Raises:
        NotYet: another cluster than `local`.
    """
    if url.partition(":")[0] != "local":
        raise NotYet("cluster_not_yet", cluster=url)
    return open_local(home, cards)
