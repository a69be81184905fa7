"""The runs table: which columns there are, groups of runs, saved views."""

from typing import Any

import msgspec


class ColumnInfo(msgspec.Struct, kw_only=True, omit_defaults=True):
    name: str
    runs: int = 0  # that have it, of those looked through


class ColumnsReply(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What runs of a project carry, the most common first. `total`: how many of each kind meet the search; `looked`:
    the newest runs that were looked through."""

    metrics: list[ColumnInfo] = []
    params: list[ColumnInfo] = []
    tags: list[ColumnInfo] = []
    total: dict[str, int] = {}
    looked: int = 0


class GroupSpread(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A metric over the runs of a group that have a number for it; `std` is that of a sample, null for one run."""

    count: int = 0
    mean: float | str | None = None
    std: float | str | None = None
    min: float | str | None = None
    max: float | str | None = None


class RunGroup(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Runs that agree in the asked fields. `filter` finds them; a run with several tags stands in several groups."""

    values: list[Any]  # one of each field; null where the run has none
    runs: int = 0
    states: dict[str, int] = {}
    created_us: int = 0  # of the newest
    metrics: dict[str, GroupSpread] = {}
    filter: str = ""


class GroupPage(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The largest groups first; `total` says how many there are."""

    groups: list[RunGroup]
    total: int = 0


class SavedViewRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`query` is the address of the page behind its `?`. With `expected` it is changed only if nobody did so since."""

    name: str
    query: str
    page: str = "runs"
    project: str = ""
    space: str = "default"
    shared: bool = False
    expected: int | None = None


class SavedView(msgspec.Struct, kw_only=True, omit_defaults=True):
    id: str
    name: str
    query: str = ""
    page: str = "runs"
    project: str = ""
    space: str = "default"
    shared: bool = False  # seen by everybody who may read the space
    owner: str = ""
    mine: bool = False
    created_us: int = 0
    updated_us: int = 0
    version: int = 1
