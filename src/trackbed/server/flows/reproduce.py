"""reproduce: the same run again, from the record alone; and whether it came out the same."""

import math

import msgspec

from trackbed.base.errors import Conflict
from trackbed.db import ReadTx
from trackbed.domain.scope import Scope
from trackbed.server.app import App
from trackbed.server.flows import stages
from trackbed.tracking import artifacts, facts, runs, runs_attempts, runs_views
from trackbed.tracking.metrics import MAX_PACKED, history
from trackbed.tracking.metrics_view import View
from trackbed.wire.reason import Reason
from trackbed.wire.runs import EnvironmentRecord, MetricDifference, ReproductionVerdict, SubmitRequest, Unequal
from trackbed.wire.spec import DataPin, FromPin, Spec
from trackbed.workflow.as_file import as_file, changes

TOLERANCE = 1e-5  # relative: what another layout may make of float32 (ARCHITECTURE, invariant 6)


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


def compare(app: App, tx: ReadTx, scope: Scope, row: runs.RunRow) -> ReproductionVerdict:
    """Compare a run with the one it reproduces, over every metric that is declared deterministic, bit for bit.

    Raises:
        Conflict: `run_reproduces_nothing`.
    """
    if not row.reproduces:
        raise Conflict("run_reproduces_nothing", ref=runs.ref_of(row))
    original = runs.resolve(tx, scope, row.reproduces)
    keys = sorted(deterministic_keys(tx, original.id) | deterministic_keys(tx, row.id))
    found = ReproductionVerdict(
        run=row.id, reproduces=original.id, keys=keys, tolerance=TOLERANCE,
        finished=row.state == "finished" and original.state == "finished",
    )  # fmt: skip
    _curves(app, tx, found, keys)
    _products(tx, found, original, row)
    _outputs(tx, found, original, row)
    compared = bool(keys) or bool(found.products) or bool(found.outputs)
    # Files of the output often hold times and paths: they decide only where nothing was declared that shall be the same.
    declared = bool(keys) or bool(found.products)
    against = [one for one in found.unequal if one.what != "output" or not declared]
    found.equal = compared and not against
    only_curves = all(one.what == "metric" for one in against) and found.greatest <= TOLERANCE
    found.verdict = "nothing" if not compared else "equal" if found.equal else "within" if only_curves else "differs"
    found.nondeterminism = sorted(
        {*runs.from_json(original.nondeterminism, []), *runs.from_json(row.nondeterminism, [])}
    )
    found.why = why_unequal(tx, original, row)
    return found


def _curves(app: App, tx: ReadTx, found: ReproductionVerdict, keys: list[str]) -> None:
    original, again = app.curves.view(tx, found.reproduces), app.curves.view(tx, found.run)
    for key in keys:
        before, after = curve(original, key), curve(again, key)
        differs = first_difference(key, before, after)
        if differs is None:
            continue
        found.first = found.first or differs
        found.unequal.append(Unequal(what="metric", name=key, before=differs.before, after=differs.after))
        found.greatest = max(found.greatest, _farthest(before, after))


def _farthest(before: list[tuple[int, str]], after: list[tuple[int, str]]) -> float:
    """The greatest relative difference at a step; infinite where the steps are not the same."""
    if [step for step, _ in before] != [step for step, _ in after]:
        return math.inf
    pairs = [(float.fromhex(one), float.fromhex(other)) for (_, one), (_, other) in zip(before, after, strict=True)]
    return max((0.0 if one.hex() == other.hex() else _apart(one, other) for one, other in pairs), default=0.0)


def _apart(one: float, other: float) -> float:
    if not (math.isfinite(one) and math.isfinite(other)):
        return math.inf
    return abs(one - other) / max(abs(one), abs(other), 1e-300)


def _products(tx: ReadTx, found: ReproductionVerdict, original: runs.RunRow, row: runs.RunRow) -> None:
    before, after = stages.products_of(tx, original), stages.products_of(tx, row)
    for stage in runs.spec_of(original).stages:
        for name, digest in sorted(before.get(stage.name, {}).items()):
            found.products += 1
            now = after.get(stage.name, {}).get(name, "")
            if now != digest:
                found.unequal.append(Unequal(what="product", name=f"{stage.name}.{name}", before=digest, after=now))


def _outputs(tx: ReadTx, found: ReproductionVerdict, original: runs.RunRow, row: runs.RunRow) -> None:
    before = {one.path: one.file_digest for one in artifacts.of_run(tx, original.id)}
    after = {one.path: one.file_digest for one in artifacts.of_run(tx, row.id)}
    for path in sorted({**before, **after}):
        found.outputs += 1
        if before.get(path) != after.get(path):
            found.unequal.append(
                Unequal(what="output", name=path, before=before.get(path, ""), after=after.get(path, ""))
            )


def why_unequal(tx: ReadTx, original: runs.RunRow, row: runs.RunRow) -> list[Reason]:
    """Name what is not the same in the records of two runs: data, code, values, environment, hardware, layout."""
    return [
        *_inputs_differ(runs.spec_of(original), runs.spec_of(row), original, row),
        *_environments_differ(runs_views.environment_of(original), runs_views.environment_of(row)),
        *_machines_differ(_machine(tx, original.id), _machine(tx, row.id)),
        *(Reason(code="differs_not_exact", params={"what": what}) for what in runs.from_json(original.nondeterminism, [])),
    ]  # fmt: skip


def _inputs_differ(before: Spec, after: Spec, original: runs.RunRow, row: runs.RunRow) -> list[Reason]:
    found: list[Reason] = []
    for name in sorted({**before.data, **after.data}):
        one, other = before.data.get(name), after.data.get(name)
        if (one and one.digest) != (other and other.digest):
            found.append(Reason(code="differs_data", params={"name": name}))
    if original.tree_digest != row.tree_digest:
        found.append(Reason(code="differs_code"))
    for one in changes(as_file(before), as_file(after)):
        if one.field.partition(".")[0] in ("params", "seed", "determinism", "run", "recipe", "env", "launcher"):
            found.append(
                Reason(code="differs_value", params={"field": one.field, "before": one.before, "after": one.after})
            )
    return found


def _environments_differ(one: EnvironmentRecord | None, other: EnvironmentRecord | None) -> list[Reason]:
    if one is None or other is None or one.digest == other.digest:
        return []
    found = [
        Reason(code="differs_environment", params={"what": what, "before": before, "after": after})
        for what, before, after in (("python", one.python, other.python), ("platform", one.platform, other.platform))
        if before != after
    ]
    before, after = ({p.name: p for p in each.packages} for each in (one, other))
    for name in sorted({**before, **after}):
        if before.get(name) != after.get(name):
            versions = [each[name].version if name in each else "-" for each in (before, after)]
            found.append(
                Reason(code="differs_environment", params={"what": name, "before": versions[0], "after": versions[1]})
            )
    return found


def _machine(tx: ReadTx, run_id: str) -> dict[str, str]:
    """Where the last attempt ran: nodes and how the ranks lay on them."""
    attempts = runs_attempts.of_run(tx, run_id)
    placement = runs.from_json(attempts[-1].placement, []) if attempts else []
    return {
        "node": ", ".join(str(place.get("node")) for place in placement),
        "layout": ", ".join(str(len(place.get("cards") or [])) for place in placement),
    }


def _machines_differ(before: dict[str, str], after: dict[str, str]) -> list[Reason]:
    return [
        Reason(code="differs_machine", params={"what": what, "before": before[what], "after": after[what]})
        for what in ("layout", "node")
        if before[what] != after[what]
    ]


def deterministic_keys(tx: ReadTx, run_id: str) -> set[str]:
    """Metrics that `define_metric` declared deterministic."""
    return {key for key, said in facts.definitions(tx, run_id).items() if said.get("deterministic")}


def curve(view: View, key: str) -> list[tuple[int, str]]:
    """Return the counted points of a metric, values by their bits."""
    points: list[tuple[int, str]] = []
    cursor = ""
    while True:
        page = history(view, key, cursor=cursor, limit=MAX_PACKED)
        points += zip(page.points.step.tolist(), map(float.hex, page.points.value.tolist()), strict=True)
        cursor = page.following
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
