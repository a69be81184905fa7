"""register: from what a run left to the next version of a model, by the rule of its spec or by hand.

Blob first, then row: the tree of the model is in the store before the transaction that registers it begins.
"""

from dataclasses import dataclass, replace
from typing import Any

import msgspec

from trackbed.base.errors import NotFound, TrackbedError
from trackbed.base.ids import Digest
from trackbed.db import ReadTx, Tx
from trackbed.domain.events import Event
from trackbed.domain.scope import SYSTEM, Permission, Scope
from trackbed.formats.tree import Entry, encode_listing
from trackbed.registry.service import register
from trackbed.server.app import App
from trackbed.server.flows import environments, stages
from trackbed.server.flows.when import first_unmet
from trackbed.tracking import runs, runs_attempts
from trackbed.tracking.metrics import last_values
from trackbed.wire.data import ModelVersionView
from trackbed.workflow import results


@dataclass(frozen=True)
class Made:
    """A tree in the store that a run left, and the attempt that left it."""

    digest: Digest
    size_bytes: int
    attempt_id: str
    attempt: int


@dataclass(frozen=True)
class _Left:
    attempt_id: str
    attempt: int
    outputs: str  # digest of the whole output folder
    products: dict[str, str]


def left_behind(tx: ReadTx, run_id: str) -> list[_Left]:
    """Return what attempts of the run left, the newest first."""
    rows = reversed(runs_attempts.of_run(tx, run_id))
    left = [_Left(row.id, row.number, row.outputs_digest, runs.from_json(row.products, {})) for row in rows]
    chosen = results.choices(tx, run_id)
    taken = [row for row in reversed(runs_attempts.stages(tx, run_id)) if row.state == "done" and not row.attempt]
    for row in taken:  # what earlier runs left for it
        outputs = chosen[row.position].outputs if row.position in chosen else ""
        left.append(_Left("", 0, outputs, runs.from_json(row.products, {})))
    return left


def find_made(app: App, left: list[_Left], path: str, *, space_id: str) -> Made | None:
    """Return the tree at `path` below the outputs (or the stage product of that name) of the newest attempt that has it.

    Reads and writes the store; called outside transactions.
    """
    for one in left:
        if one.products.get(path):
            digest = Digest(one.products[path])
            return Made(digest, _size(app, digest), one.attempt_id, one.attempt)
        if one.outputs:
            found = _subtree(app.store.read_listing(Digest(one.outputs)), path)
            if found:
                digest = app.store_of(space_id).put_listing(encode_listing(found))
                return Made(digest, sum(entry.size for entry in found), one.attempt_id, one.attempt)
    return None


def _size(app: App, digest: Digest) -> int:
    return sum(entry.size for entry in app.store.read_listing(digest))


def _subtree(entries: list[Entry], path: str) -> list[Entry]:
    """The entries below a folder, or the one file of that path as a tree of one entry; links that lead out are left out."""
    wanted = path.strip("/").encode()
    if wanted in (b"", b"."):
        return entries
    exact = [entry for entry in entries if entry.path == wanted and entry.kind == "f"]
    if exact:
        return [replace(exact[0], path=wanted.rpartition(b"/")[2])]
    prefix = wanted + b"/"
    below = [entry for entry in entries if entry.path.startswith(prefix)]
    return [replace(entry, path=entry.path[len(prefix) :]) for entry in below]


def register_by_rule(app: App, tx: Tx, row: runs.RunRow, made: Made | None) -> ModelVersionView | None:
    """Register what a finished run made, where its spec says so and the condition holds; else say why not.

    A registration that cannot be made never undoes the run: it is an event on its record.
    """
    rule = runs.spec_of(row).register
    if rule is None:
        return None
    values = last_values(tx, row.id)
    unmet = first_unmet(rule.when, values)
    if unmet is not None:
        found = values.get(unmet.key)
        data = {"model": rule.model, "key": unmet.key, "operator": unmet.operator, "value": unmet.value,
                "found": "-" if found is None else repr(found)}  # fmt: skip
        tx.emit(Event("run.not_registered", row.id, row.space_id, row.id, row.attempt_id, data))
        return None
    if made is None:
        data = {"model": rule.model, "path": rule.path}
        tx.emit(Event("run.nothing_to_register", row.id, row.space_id, row.id, row.attempt_id, data))
        return None
    try:
        return _register(tx, SYSTEM, row, made, rule.model, values)
    except TrackbedError as error:
        data = {"model": rule.model, "code": error.code, "params": error.params}
        tx.emit(Event("run.register_failed", row.id, row.space_id, row.id, row.attempt_id, data))
        return None


def register_by_hand(app: App, scope: Scope, model: str, ref: str, path: str) -> ModelVersionView:
    """Register an output of a run as the next version of a model. Blocks; not for the event loop.

    Raises:
        NotFound: `output_missing`: no attempt of the run left anything there.
    """
    row, left = app.db.read(lambda tx: _run_and_left(tx, scope, ref))
    made = find_made(app, left, path, space_id=row.space_id)
    if made is None:
        raise NotFound("output_missing", ref=ref, path=path)

    def work(tx: Tx) -> ModelVersionView:
        return _register(tx, scope, row, made, model, last_values(tx, row.id))

    return app.db.write(work, actor=scope.actor)


def _run_and_left(tx: ReadTx, scope: Scope, ref: str) -> tuple[runs.RunRow, list[_Left]]:
    row = runs.resolve(tx, scope, ref, Permission.WRITE)
    return row, left_behind(tx, row.id)


def _register(
    tx: Tx, scope: Scope, row: runs.RunRow, made: Made, model: str, values: dict[str, float]
) -> ModelVersionView:
    view = register(
        tx, scope, model, made.digest, space=row.space, size_bytes=made.size_bytes, run_id=row.id,
        provenance=provenance(tx, row, made, values),
    )  # fmt: skip
    data = {"model": view.model, "version": view.version, "digest": view.digest}
    tx.emit(Event("run.registered", row.id, row.space_id, row.id, made.attempt_id, data))
    view.warnings = environments.release_warnings(tx, row.id)
    return view


def provenance(tx: ReadTx, row: runs.RunRow, made: Made, values: dict[str, float]) -> dict[str, Any]:
    """Everything a model version was made from, by digest."""
    spec = runs.spec_of(row)
    current = [point for point in runs_attempts.checkpoints(tx, row.id) if point.current]
    return {
        "run": row.id, "run_ref": runs.ref_of(row), "attempt": made.attempt, "tree": row.tree_digest,
        "environment": row.environment_digest, "seed": spec.seed, "params": spec.params, "recipe": spec.recipe,
        "data": {name: msgspec.to_builtins(pin) for name, pin in spec.data.items()},
        "from": msgspec.to_builtins(spec.from_) if spec.from_ else None,
        "checkpoint": [{"stage": c.stage, "name": c.name, "step": c.step, "digest": c.digest} for c in current],
        "metrics": {key: _plain(value) for key, value in values.items()},
    }  # fmt: skip


def _plain(value: float) -> float | str:
    """JSON has no words for what is not finite; ours are NaN, Infinity, -Infinity."""
    if value != value:
        return "NaN"
    return {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(value, value)


def prepare_model(app: App, attempt_id: str, cause: str) -> Made | None:
    """Put the model of a run that is about to finish into the store, where its spec has a rule. Never raises."""
    left, path, space_id = app.db.read(lambda tx: _rule_of(tx, attempt_id))
    if not path or cause != "done":
        return None
    try:
        return find_made(app, left, path, space_id=space_id)
    except TrackbedError:
        return None


def _rule_of(tx: ReadTx, attempt_id: str) -> tuple[list[_Left], str, str]:
    attempt = runs_attempts.get(tx, attempt_id)
    row = runs.get(tx, attempt.run_id)
    spec = runs.spec_of(row)
    if spec.register is None or not stages.is_last(row):
        return [], "", ""
    return left_behind(tx, row.id), spec.register.path, row.space_id
