"""What differs between runs and what came of it. Pure: records come in, a comparison goes out.

Runs that differ in nothing but the seed are repeats of each other, and make a group: only its spread tells whether two
groups differ by more than chance.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any

import msgspec

from trackbed.tracking.metrics_state import State, word
from trackbed.wire.compare import Compared, ComparedRun, Comparison, Difference, MetricColumn, Spread
from trackbed.wire.runs import EnvironmentRecord, TreeFacts
from trackbed.wire.spec import Spec

MOST_RUNS = 100
MOST_FILES = 500
MOST_METRICS = 500
CLEAR = 2.0  # standard errors between two means that are not taken for chance
_APART = ("version", "project", "space", "name", "description", "tags", "template", "params", "data", "seed", "matrix")
_GOALS = ("min", "max")


@dataclass(frozen=True)
class Record:
    """What is compared of one run. `files`: path → digest of its tree, None where the tree is not at hand."""

    head: ComparedRun
    spec: Spec
    params: Mapping[str, Any]
    tree: TreeFacts | None = None
    environment: EnvironmentRecord | None = None
    files: Mapping[str, str] | None = None
    metrics: Mapping[str, State] = field(default_factory=dict[str, State])
    definitions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])


def compare(records: Sequence[Record], keys: Sequence[str] = ()) -> Comparison:
    """Return the comparison of two or more runs, in their order; of `keys` only, where any are named."""
    params = _differences([flat(record.params) for record in records])
    data = _differences([_data(record.spec) for record in records])
    code = _differences([_code(record) for record in records])
    files, left_out = _files(records)
    environment = _differences([_environment(record.environment) for record in records])
    settings = _differences([_settings(record.spec) for record in records])
    seeds = {record.head.seed for record in records}
    groups = _grouped(records)
    for record, group in zip(records, groups, strict=True):
        record.head.group = group
    named = [part.name for part in settings]
    differs = {
        "code": bool([one for one in code if one.name == "tree"]),
        "environment": bool(environment),
        "data": bool(data),
        "from": any(name.startswith("from") for name in named),
        "params": bool(params),
        "seed": len(seeds) > 1,
        "resources": any(name.startswith("resources") for name in named),
        "kind": any(name in ("run", "recipe") or name.startswith("stages") for name in named),
    }
    metrics, metrics_left_out = _metrics(records, groups, keys)
    return Comparison(
        runs=[record.head for record in records], params=params, data=data, code=code, files=files,
        files_left_out=left_out, environment=environment, settings=settings, metrics=metrics,
        metrics_left_out=metrics_left_out, matched=[name for name, other in differs.items() if not other],
        groups=max(groups) + 1,
    )  # fmt: skip


def flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """Return nested mappings as `a.b` → value; lists stay whole, so that a difference is told in one line."""
    if not isinstance(value, Mapping) or not value:
        return {prefix: value} if prefix else {}
    found: dict[str, Any] = {}
    inner: Mapping[Any, Any] = value
    for name, part in inner.items():
        found |= flat(part, f"{prefix}.{name}" if prefix else str(name))
    return found


def _differences(columns: Sequence[Mapping[str, Any]]) -> list[Difference]:
    names = dict.fromkeys(name for column in columns for name in column)
    found: list[Difference] = []
    for name in names:
        values = [column.get(name) for column in columns]
        first = _exact(values[0]) if name in columns[0] else None
        if any(
            (_exact(value) if name in column else None) != first for value, column in zip(values, columns, strict=True)
        ):
            found.append(Difference(name=name, values=values))
    return sorted(found, key=lambda one: one.name)


def _exact(value: Any) -> str:
    """`1` and `1.0` and `true` are not the same; NaN is the same as itself."""
    return f"{type(value).__name__} {value!r}"


def _data(spec: Spec) -> dict[str, Any]:
    return {
        name: f"{pin.dataset or pin.ref}{f'@{pin.version}' if pin.version else ''} {pin.digest[:15]}".rstrip()
        for name, pin in spec.data.items()
    }


def _code(record: Record) -> dict[str, Any]:
    tree = record.tree
    if tree is None:
        return {}
    return {"tree": tree.digest[:15], "commit": tree.commit[:12], "branch": tree.branch, "changed files": tree.dirty}


def _files(records: Sequence[Record]) -> tuple[list[Difference], int]:
    if any(record.files is None for record in records):
        return [], 0
    found = _differences([record.files or {} for record in records])
    return found[:MOST_FILES], max(0, len(found) - MOST_FILES)


def _environment(environment: EnvironmentRecord | None) -> dict[str, Any]:
    if environment is None:
        return {}
    return {
        "python": environment.python, "platform": environment.platform, "kind": environment.kind,
        **{package.name: package.version for package in environment.packages},
    }  # fmt: skip


def _settings(spec: Spec) -> dict[str, Any]:
    whole = {name: value for name, value in _with_defaults(spec).items() if name not in _APART}
    return {name: value for name, value in flat(whole).items() if value not in ({}, None)}


def _with_defaults(record: msgspec.Struct) -> dict[str, Any]:
    """Return a record as a mapping, defaults too: what one run says and another leaves out may be the same."""
    values = {one.encode_name: getattr(record, one.name) for one in msgspec.structs.fields(record)}
    return {
        name: _with_defaults(value) if isinstance(value, msgspec.Struct) else msgspec.to_builtins(value)
        for name, value in values.items()
    }


def _grouped(records: Sequence[Record]) -> list[int]:
    """Number the runs so that those that differ in nothing but the seed have one number, in the order of their first."""
    known: dict[str, int] = {}
    groups: list[int] = []
    for record in records:
        same = {
            "params": flat(record.params), "data": _data(record.spec), "settings": _settings(record.spec),
            "tree": record.tree.digest if record.tree else "", "environment": _environment(record.environment),
        }  # fmt: skip
        key = repr({name: sorted((inner, _exact(value)) for inner, value in part.items()) if isinstance(part, dict) else part
                    for name, part in same.items()})  # fmt: skip
        groups.append(known.setdefault(key, len(known)))
    return groups


def _metrics(records: Sequence[Record], groups: Sequence[int], keys: Sequence[str]) -> tuple[list[MetricColumn], int]:
    names = sorted({key for record in records for key in record.metrics if not key.startswith("system/")})
    if keys:
        names = [key for key in keys if any(key in record.metrics for record in records)]
    goals = {key: _goal(records, key) for key in names}
    names.sort(key=lambda key: (not goals[key], key) if not keys else (False, str(keys.index(key)).zfill(6)))
    shown = [_metric(records, groups, key, goals[key]) for key in names[:MOST_METRICS]]
    return shown, max(0, len(names) - MOST_METRICS)


def _goal(records: Sequence[Record], key: str) -> str:
    said = [str(record.definitions.get(key, {}).get("goal", "")) for record in records]
    return next((goal for goal in said if goal in _GOALS), "")


def _metric(records: Sequence[Record], groups: Sequence[int], key: str, goal: str) -> MetricColumn:
    runs = [_compared(record.metrics.get(key), goal) for record in records]
    units = (str(record.definitions.get(key, {}).get("unit", "")) for record in records)
    column = MetricColumn(key=key, goal=goal, unit=next((unit for unit in units if unit), ""), runs=runs)
    values: dict[int, list[float]] = {group: [] for group in dict.fromkeys(groups)}
    for run, group in zip(runs, groups, strict=True):
        if run is not None:
            value = float(run.best if run.best is not None else run.last)
            values[group].append(value)
    column.groups = [_spread(group, found, values[0], goal) for group, found in values.items()]
    return column


def _compared(state: State | None, goal: str) -> Compared | None:
    if state is None or state.count == 0:
        return None
    best, step = (state.min, state.argmin) if goal == "min" else (state.max, state.argmax)
    return Compared(
        last=word(state.last), last_step=state.last_step, best=best if goal else None, best_step=step if goal else None
    )


def _spread(group: int, found: Sequence[float], first: Sequence[float], goal: str) -> Spread:
    finite = [value for value in found if math.isfinite(value)]
    if not finite:
        return Spread(group=group, n=len(found))
    spread = Spread(group=group, n=len(found), mean=fmean(finite), deviation=stdev(finite) if len(finite) > 1 else None)
    base = [value for value in first if math.isfinite(value)]
    if goal and group != 0 and base:
        spread.verdict = verdict(base, finite, goal)
    return spread


def verdict(before: Sequence[float], after: Sequence[float], goal: str) -> str:
    """Return how a group does against another: clear only where the means differ by two standard errors."""
    gain = fmean(before) - fmean(after) if goal == "min" else fmean(after) - fmean(before)
    if sorted(before) == sorted(after):
        return "equal"
    if len(before) < 2 or len(after) < 2:
        return "one_run"
    error = math.sqrt(stdev(before) ** 2 / len(before) + stdev(after) ** 2 / len(after))
    if abs(gain) <= CLEAR * error:
        return "unclear"
    return "better" if gain > 0 else "worse"


def rows(comparison: Comparison) -> Iterable[list[Any]]:
    """Yield the comparison as a table for a file: a head, then part, name and one value a run."""
    yield ["part", "name", *(run.ref for run in comparison.runs)]
    for name in ("id", "name", "state", "owner", "seed", "group", "seconds", "card_seconds"):
        yield ["run", name, *(getattr(run, name) for run in comparison.runs)]
    for part in ("params", "data", "code", "files", "environment", "settings"):
        for one in getattr(comparison, part):
            yield [part, one.name, *one.values]
    for column in comparison.metrics:
        yield ["last", column.key, *(run.last if run else None for run in column.runs)]
        if column.goal:
            yield ["best", column.key, *(run.best if run else None for run in column.runs)]
        by_group = {spread.group: spread for spread in column.groups}
        for name in ("mean", "deviation", "n", "verdict"):
            yield [f"group_{name}", column.key, *(getattr(by_group[run.group], name) for run in comparison.runs)]
