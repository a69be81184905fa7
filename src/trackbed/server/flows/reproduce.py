"""reproduce: the same run again, from the record alone; and whether it came out the same."""

import msgspec

from trackbed.base.errors import Conflict
from trackbed.db import ReadTx
from trackbed.domain.scope import Scope
from trackbed.tracking import facts, runs, runs_views
from trackbed.tracking.metrics import history
from trackbed.wire.runs import MetricDifference, ReproductionVerdict, SubmitRequest
from trackbed.wire.spec import DataPin, FromPin, Spec


def reproduction(tx: ReadTx, scope: Scope, ref: str) -> SubmitRequest:
    """Return the request that trains again: same tree, environment, data by digest, seed and params.

    Raises:
        Conflict: `run_outside`: nothing of a run outside of jobs was pinned.
    """
    row = runs.resolve(tx, scope, ref)
    if row.outside:
        raise Conflict("run_outside", ref=runs.ref_of(row), verb="reproduce")
    if runs.spec_of(row).trial is not None:
        raise Conflict("run_is_trial", ref=runs.ref_of(row), verb="reproduce")
    return SubmitRequest(
        spec=pinned(runs.spec_of(row)), tree=runs_views.tree_of(row), environment=runs_views.environment_of(row),
        reproduces=row.id,
    )  # fmt: skip


def pinned(spec: Spec) -> Spec:
    """The spec with every name replaced by what it stood for; it registers nothing again and takes no stage from anywhere."""
    data = {name: msgspec.structs.replace(pin, ref=_data_ref(pin)) for name, pin in spec.data.items()}
    return msgspec.structs.replace(spec, data=data, from_=_from(spec.from_), register=None, cache=False)


def _data_ref(pin: DataPin) -> str:
    name = pin.ref.partition("@")[0] or pin.dataset
    return f"{name}@{pin.digest}" if pin.digest else pin.ref


def _from(pin: FromPin | None) -> FromPin | None:
    if pin is None or not pin.digest:
        return pin
    if pin.kind == "checkpoint" and pin.run_id:
        return msgspec.structs.replace(pin, ref=f"{pin.run_id}@{pin.digest}")
    return msgspec.structs.replace(pin, ref=f"{pin.ref.partition('@')[0]}@{pin.digest}")


def compare(tx: ReadTx, scope: Scope, row: runs.RunRow) -> ReproductionVerdict:
    """Compare a run with the one it reproduces, over every metric that is declared deterministic, bit for bit.

    Raises:
        Conflict: `run_reproduces_nothing`.
    """
    if not row.reproduces:
        raise Conflict("run_reproduces_nothing", ref=runs.ref_of(row))
    original = runs.resolve(tx, scope, row.reproduces)
    keys = sorted(deterministic_keys(tx, original.id) | deterministic_keys(tx, row.id))
    first: MetricDifference | None = None
    for key in keys:
        first = first_difference(key, curve(tx, original.id, key), curve(tx, row.id, key))
        if first is not None:
            break
    return ReproductionVerdict(
        run=row.id, reproduces=original.id, equal=first is None and bool(keys), keys=keys, first=first,
        finished=row.state == "finished" and original.state == "finished",
    )  # fmt: skip


def deterministic_keys(tx: ReadTx, run_id: str) -> set[str]:
    """Metrics that `define_metric` declared deterministic."""
    return {key for key, said in facts.definitions(tx, run_id).items() if said.get("deterministic")}


def curve(tx: ReadTx, run_id: str, key: str) -> list[tuple[int, str]]:
    """Return the counted points of a metric, values by their bits."""
    points: list[tuple[int, str]] = []
    cursor = ""
    while True:
        page = history(tx, run_id, key, cursor=cursor, limit=100_000)
        points += [(point.step, float(point.value).hex()) for point in page.points]
        cursor = page.next
        if not cursor:
            return points


def first_difference(key: str, before: list[tuple[int, str]], after: list[tuple[int, str]]) -> MetricDifference | None:
    """Return where two curves part, by the bits of their values; None where they are one."""
    for (step, value), (step_again, value_again) in zip(before, after, strict=False):
        if step != step_again or value != value_again:
            return MetricDifference(key=key, step=step, before=_shown(value), after=_shown(value_again))
    if len(before) != len(after):
        longer = before if len(before) > len(after) else after
        step, value = longer[min(len(before), len(after))]
        was, now = (_shown(value), "-") if longer is before else ("-", _shown(value))
        return MetricDifference(key=key, step=step, before=was, after=now)
    return None


def _shown(value: str) -> str:
    return repr(float.fromhex(value))
