"""The environment of an attempt on its node: laid out from its pack, or `current` as it was pinned; what is not so is named."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from trackbed.base.errors import BadInput, Conflict, NotFound
from trackbed.sources import packs
from trackbed.sources.environment import differences, record_of
from trackbed.wire.runs import EnvironmentRecord

_MOST_NAMES = 20


@dataclass(frozen=True)
class Settled:
    """`document`: what the ranks are started by; `drift`: what is not as pinned, by name."""

    document: dict[str, Any]
    python: str = ""
    drift: tuple[str, ...] = ()


def settle(document: dict[str, Any], pack: Path | None, target: Path) -> Settled:
    """Make the environment usable below `target` if it is packed, and compare it with the record of the assignment.

    Raises:
        NotFound: `environment_gone`, `environment_interpreter`: no interpreter that starts; `environment_not_packed`.
    """
    if not document:
        return Settled(document)
    pinned = msgspec.convert(document, EnvironmentRecord)
    if pack is not None:
        return _laid_out(document, pack, target)
    if pinned.kind != "current":
        raise NotFound("environment_not_packed", kind=pinned.kind, digest=pinned.digest[:15])
    if not pinned.executable or not pinned.packages:
        return Settled(document)  # nothing was pinned
    try:
        found = record_of(pinned.executable)
    except BadInput as fault:
        what = str(fault.params.get("reason", fault))
        raise NotFound("environment_gone", executable=pinned.executable, what=what) from fault
    return Settled(document, found.python, _told(pinned, found))


def refuse(drift: tuple[str, ...]) -> None:
    """Raise for an environment that is not as pinned.

    Raises:
        Conflict: `environment_drift`, with the names of what differs.
    """
    if drift:
        more = f" (+{len(drift) - _MOST_NAMES})" if len(drift) > _MOST_NAMES else ""
        raise Conflict("environment_drift", count=len(drift), changes=", ".join(drift[:_MOST_NAMES]) + more)


def _laid_out(document: dict[str, Any], pack: Path, target: Path) -> Settled:
    facts = packs.facts_of(pack)
    minor = ".".join(facts.python.split()[-1].split(".")[:2])
    executable = packs.lay_out(pack, target, packs.interpreter_for(minor))
    found = record_of(executable)
    packed = EnvironmentRecord(python=facts.python, platform=facts.platform, packages=facts.packages)
    # the files themselves: the node reads its copy of the pack through whenever anything in it was touched
    found.modified = []
    return Settled(document | {"executable": str(executable)}, found.python, _told(packed, found))


def _told(before: EnvironmentRecord, after: EnvironmentRecord) -> tuple[str, ...]:
    return tuple(f"{name} {old or '-'} -> {new or '-'}" for name, old, new in differences(before, after))
