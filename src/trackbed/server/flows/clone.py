"""clone: a run as a file that asks for it again, to be changed and submitted; a fork begins from its checkpoint or a model."""

from typing import Any

from trackbed.base.errors import BadInput, Conflict, NotFound
from trackbed.db import ReadTx, Tx
from trackbed.domain.events import Event
from trackbed.domain.scope import Scope
from trackbed.tracking import runs, runs_attempts, runs_views
from trackbed.wire.runs import CloneView, LikeView, SubmitRequest
from trackbed.wire.spec import Spec
from trackbed.workflow import likes
from trackbed.workflow.as_file import as_file, changes, to_yaml
from trackbed.workflow.spec import from_values


def clone(tx: ReadTx, scope: Scope, ref: str, *, fork: bool = False, checkpoint: str = "", model: str = "") -> CloneView:  # fmt: skip
    """Return the request that would make the run again, in the form of a file, with its tree and environment.

    With `fork` it begins from a checkpoint of the run (a step, a name or `latest`), or from a model.

    Raises:
        Conflict: `run_outside`, `run_is_trial`.
        NotFound: `checkpoint_unknown`: there is none to begin from.
    """
    row = runs.resolve(tx, scope, ref)
    spec = runs.spec_of(row)
    if row.outside:
        raise Conflict("run_outside", ref=runs.ref_of(row), verb="fork" if fork else "submit --like")
    if spec.trial is not None:
        raise Conflict("run_is_trial", ref=runs.ref_of(row), verb="fork" if fork else "submit --like")
    values = as_file(spec)
    if model:
        values["from"] = {"model": model}
    elif fork:
        values["from"] = {"checkpoint": f"{row.id}@{_checkpoint(tx, row, checkpoint)}"}
    request = SubmitRequest(
        spec=from_values(values).spec, tree=runs_views.tree_of(row), environment=runs_views.environment_of(row),
        values=values, like=row.id,
    )  # fmt: skip
    return CloneView(request=request, text=to_yaml(values))


def _checkpoint(tx: ReadTx, row: runs.RunRow, which: str) -> str:
    points = runs_attempts.checkpoints(tx, row.id)
    chosen = [one for one in points if (one.current if which in ("", "latest") else which in (str(one.step), one.name, one.digest))]  # fmt: skip
    if not chosen:
        steps = ", ".join(dict.fromkeys(str(one.step) for one in points)) or "-"
        raise NotFound("checkpoint_unknown", ref=runs.ref_of(row), which=which or "latest", steps=steps)
    return str(chosen[-1].digest)


def origin(tx: ReadTx, scope: Scope, request: SubmitRequest) -> runs.RunRow | None:
    """Return the run that a request was made from; its tree need not have been sent by who submits.

    Raises:
        BadInput: `like_other_tree`: the request has another tree than that run.
    """
    if not request.like:
        return None
    row = runs.resolve(tx, scope, request.like)
    if request.tree is not None and request.tree.digest != row.tree_digest:
        raise BadInput("like_other_tree", ref=runs.ref_of(row), given=request.tree.digest, digest=row.tree_digest)
    return row


def note(tx: Tx, made: runs.RunRow, of: runs.RunRow, before: Spec, after: Spec) -> None:
    """Keep from which run another was made, and what was changed."""
    kind = "fork" if after.from_ is not None and after.from_.run_id == of.id else "clone"
    differs = [one for one in changes(as_file(before), as_file(after)) if one.field != "tags"]
    likes.record(tx, made.id, of.id, made.space_id, kind, differs)
    data: dict[str, Any] = {
        "of": runs.ref_of(of),
        "kind": kind,
        "fields": ", ".join(one.field for one in differs) or "-",
    }
    tx.emit(Event("run.made_from", made.id, made.space_id, made.id, data=data))


def view_of(tx: ReadTx, scope: Scope, row: runs.RunRow) -> LikeView | None:
    """Return from which run a run was made; nothing where that may not be read."""
    found = likes.of_run(tx, row.id)
    if found is None:
        return None
    try:
        of = runs.resolve(tx, scope, found.of_id)
    except NotFound:
        return None
    return LikeView(run_id=of.id, ref=runs.ref_of(of), kind=found.kind, changes=likes.changes_of(found))
