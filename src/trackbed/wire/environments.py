"""Environments: locks, packs, names, what was found on a node, and what differs between two."""

from typing import Literal

import msgspec

from trackbed.wire.runs import EnvironmentRecord, Reason
from trackbed.wire.surroundings import Surroundings

PackState = Literal["wanted", "building", "ready", "failed"]


class PackView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A lock installed for one platform. `log` is the end of the build's log; `waiting` counts runs that wait for it."""

    environment: str
    platform: str
    state: PackState
    python: str = ""
    tree: str = ""
    size_bytes: int = 0
    reason: Reason | None = None
    notes: list[str] = []  # yanked versions, dependencies that do not fit
    log: str = ""
    waiting: int = 0
    created_us: int = 0
    ended_us: int = 0


class EnvironmentName(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A name that points to an environment: `dev`, `prod`, `torch-2.13`. Where a site says so, only named ones may run."""

    name: str
    space: str
    digest: str
    run: str = ""  # whose environment and surroundings it is
    version: int = 1  # of the pointer
    set_by: str = ""
    set_us: int = 0


class NameRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Point a name to an environment: that of a run, or a record. `expected`: the version its writer saw, 0: none yet."""

    run: str = ""
    environment: EnvironmentRecord | None = None
    surroundings: Surroundings | None = None
    space: str = "default"
    expected: int | None = None


class EnvironmentView(msgspec.Struct, kw_only=True, omit_defaults=True):
    digest: str
    kind: str = "current"
    python: str = ""
    platform: str = ""
    packages: int = 0
    runs: int = 0
    created_us: int = 0
    names: list[str] = []
    packs: list[PackView] = []
    record: EnvironmentRecord | None = None


class EnvironmentFacts(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Everything that `env diff` compares. `drift`: what was not as pinned when the run started, by name."""

    label: str = ""
    environment: EnvironmentRecord | None = None
    surroundings: Surroundings | None = None
    drift: list[str] = []


class Difference(msgspec.Struct, kw_only=True, omit_defaults=True):
    area: Literal["package", "python", "platform", "os", "driver", "cuda", "device", "variable"]
    name: str
    before: str = ""
    after: str = ""


class EnvironmentDiff(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`unknown` names the areas that one side does not tell, so that silence is not taken for equality."""

    before: str
    after: str
    differences: list[Difference] = []
    unknown: list[str] = []
