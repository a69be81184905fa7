"""Old and new beside each other: a new run, and an older one once more under the same conditions, submitted together.

Both get the data versions, seeds and cards of the new one; the older keeps its code, environment, params and origin, which
is what is to be judged. They share a tag, by which their comparison is made when the last of them has ended.
"""

from dataclasses import dataclass

import msgspec

from trackbed.base.entropy import new_id
from trackbed.base.errors import BadInput, TrackbedError
from trackbed.client.api import Client
from trackbed.client.connection import part
from trackbed.client.push import Progress
from trackbed.client.submit import Again, Prepared
from trackbed.wire.compare import Comparison
from trackbed.wire.runs import RunView, SubmitReply, SubmitRequest
from trackbed.wire.spec import Spec

MOST_REPEATS = 20


@dataclass(frozen=True)
class Pair:
    """What was submitted. `conditions`: the runs compared before their start; its `matched` says what is the same."""

    tag: str
    new: SubmitReply
    old: SubmitReply
    conditions: Comparison

    @property
    def ids(self) -> list[str]:
        return [*_ids(self.old), *_ids(self.new)]


def submit_pair(api: Client, prepared: Prepared | Again, against: str, *, on_progress: Progress | None = None) -> Pair:
    """Submit a spec and an older run again, both or none; repeats by `matrix: {seed: […]}` of the spec count for both.

    Raises:
        BadInput: `spec_wrong` with every fault of either; `against_matrix`: the spec varies more than the seed.
        Conflict: `run_outside`: nothing of a run outside of jobs was pinned, so it cannot be run again.
    """
    again = api.connection.get(f"/api/v1/runs/{part(against)}/reproduction", SubmitRequest)
    wanted = api.send(prepared, dry_run=True).spec
    others = sorted(set(wanted.matrix) - {"seed"})
    if others:
        raise BadInput("against_matrix", names=", ".join(others))
    older = msgspec.structs.replace(again, spec=under(wanted, again.spec), reproduces="")
    api.connection.post("/api/v1/runs", SubmitReply, msgspec.structs.replace(older, dry_run=True))
    new = api.send(prepared, on_progress=on_progress)
    try:
        old = api.connection.post("/api/v1/runs", SubmitReply, older, key=new_id("idm"))
    except TrackbedError:
        for run_id in _ids(new):  # one alone is not what was asked for
            api.verb(run_id, "stop")
        raise
    tag = f"pair:{new.ref}"
    pair = Pair(tag, new, old, api.compare([_ids(old)[0], _ids(new)[0]]))
    for run_id in pair.ids:
        _tag(api, run_id, tag)
    return pair


def under(conditions: Spec, spec: Spec) -> Spec:
    """Return a spec with the data, seeds and cards of another; inputs that only one of them has stay as they are."""
    data = {
        name: msgspec.structs.replace(other, ref=f"{other.dataset}@{other.digest}") if other.digest else other
        for name, pin in spec.data.items()
        for other in [conditions.data.get(name, pin)]
    }
    return msgspec.structs.replace(
        spec, project=conditions.project, space=conditions.space, data={**spec.data, **data}, seed=conditions.seed,
        matrix=conditions.matrix, resources=conditions.resources, determinism=conditions.determinism, cache=conditions.cache, tags=[],
        register=None,
    )  # fmt: skip


def _ids(reply: SubmitReply) -> list[str]:
    return [one.run_id for one in reply.runs] or [reply.run_id]


def _tag(api: Client, run_id: str, tag: str) -> None:
    view = api.run(run_id).run
    api.connection.patch(f"/api/v1/runs/{part(run_id)}", RunView, {"tags": [*view.tags, tag], "version": view.version})
