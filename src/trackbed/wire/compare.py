"""Runs beside each other: what differs by name, and what came of it."""

from typing import Any

import msgspec


class CompareRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """References of 2 to 100 runs; `metrics`: only these, in this order."""

    runs: list[str]
    metrics: list[str] = []


class ComparedRun(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A column of the comparison. `group` counts the sets of runs that differ in nothing but the seed, from 0."""

    id: str
    ref: str
    name: str = ""
    state: str = ""
    owner: str = ""
    seed: int = 0
    group: int = 0
    created_us: int = 0
    seconds: float = 0.0  # from start to end
    card_seconds: float = 0.0
    cards: int = 0


class Difference(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One thing that is not the same in all runs. `values` has one entry a run; null where it has none."""

    name: str
    values: list[Any]


class Compared(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The last and the best value of a metric in one run; non-finite ones as words. `best` is None without a goal."""

    last: float | str
    best: float | str | None = None
    best_step: int | None = None
    last_step: int = 0


class MetricColumn(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One metric in every run (null: not logged), and over each group: what the runs of a group say together."""

    key: str
    goal: str = ""
    unit: str = ""
    runs: list[Compared | None]
    groups: list["Spread"] = []


class Spread(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Mean and sample standard deviation of a metric over the runs of a group, by its best value where it has a goal, else its last.

    `verdict` is against the first group: better, worse, unclear (within what repeats differ by), equal, one_run (differs, but
    without repeats nobody knows by how much runs differ anyway). Empty for the first group and without a goal.
    """

    group: int
    n: int
    mean: float | None = None
    deviation: float | None = None  # None for one run
    verdict: str = ""


class Comparison(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What differs between runs, by part of the record, and their metrics. Lists hold differences only.

    `matched` names the conditions that are the same in all runs: code, environment, data, from, params, seed, resources, kind.
    `files_left_out`: how many further files differ.
    """

    runs: list[ComparedRun]
    params: list[Difference] = []
    data: list[Difference] = []
    code: list[Difference] = []  # commit, branch, digest of the tree
    files: list[Difference] = []  # path → BLAKE3 of the content, first 12 digits
    files_left_out: int = 0
    environment: list[Difference] = []
    settings: list[Difference] = []
    metrics: list[MetricColumn] = []
    metrics_left_out: int = 0
    matched: list[str] = []
    groups: int = 0


class GroupComparison(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The table that was made when the last run of a matrix or pair had ended. `tag` is what its runs share."""

    tag: str
    project: str
    made_us: int
    comparison: Comparison
