"""lineage: what a run used and made, as edges between things with names and digests."""

from typing import Any

from sqlalchemy import Row, or_, select

from trackbed.base.errors import TrackbedError
from trackbed.db import ReadTx, scope_clause
from trackbed.domain.scope import Scope
from trackbed.registry.service import made_by
from trackbed.tracking import runs, runs_attempts
from trackbed.tracking.runs_tables import run
from trackbed.wire.data import LineageEdge, LineageView
from trackbed.wire.runs import EventView
from trackbed.workflow import children, likes


def of_run(tx: ReadTx, scope: Scope, row: runs.RunRow) -> LineageView:
    """One step around a run: data, tree, origin, reproductions, models. What may not be read is left out."""
    graph = _Graph(row)
    spec = runs.spec_of(row)
    for name, pin in spec.data.items():
        end = f"data:{pin.dataset or pin.ref}@{pin.version}"
        graph.add(end, graph.root, "used", label=f"{pin.dataset}@{pin.version}", digest=pin.digest, input=name)
    if row.tree_digest:
        graph.add(f"tree:{row.tree_digest}", graph.root, "used", label=row.tree_digest[:15], digest=row.tree_digest)
    if spec.from_ is not None and spec.from_.kind == "model":
        graph.add(f"model:{spec.from_.ref}", graph.root, "from", label=spec.from_.ref, digest=spec.from_.digest)
    elif spec.from_ is not None:
        _near_run(tx, scope, graph, spec.from_.run_id, "from", outward=False)
    if row.reproduces:
        _near_run(tx, scope, graph, row.reproduces, "reproduces", outward=True)
    made_from = likes.of_run(tx, row.id)
    if made_from is not None and made_from.kind == "clone":
        _near_run(tx, scope, graph, made_from.of_id, "like", outward=False)
    for other_id in likes.made_from(tx, row.id):
        _near_run(tx, scope, graph, other_id, "like", outward=True)
    part_of = children.parent_of(tx, row.id)
    if part_of is not None:
        _near_run(tx, scope, graph, part_of.run_id, "stage", outward=False)
    for one in children.of_run(tx, row.id).values():
        _near_run(tx, scope, graph, one.child_id, "stage", outward=True)
    for other in _children(tx, scope, row):
        kind = "reproduces" if other.reproduces == row.id else "from"
        graph.add_run(other)
        graph.edges.append(_edge(graph.root, other, kind))
    for view in made_by(tx, scope, row.id):
        end = f"model:{view.model}@{view.version}"
        graph.link(graph.root, end, "registered")
        graph.nodes[end] = {
            "label": f"{view.model}@{view.version}",
            "digest": view.digest,
            "created_us": view.created_us,
        }
    return LineageView(root=graph.root, nodes=graph.nodes, edges=graph.edges)


def _edge(root: str, other: runs.RunRow, kind: str) -> LineageEdge:
    end = f"run:{other.id}"
    return (
        LineageEdge(source=end, target=root, kind=kind)
        if kind == "reproduces"
        else LineageEdge(source=root, target=end, kind=kind)
    )


class _Graph:
    def __init__(self, row: runs.RunRow) -> None:
        self.root = f"run:{row.id}"
        self.nodes: dict[str, dict[str, Any]] = {}
        self.edges: list[LineageEdge] = []
        self.add_run(row)

    def add_run(self, row: runs.RunRow) -> None:
        self.nodes[f"run:{row.id}"] = {
            "label": runs.ref_of(row), "name": row.name, "state": row.state, "created_us": row.created_us, "digest": "",
        }  # fmt: skip

    def link(self, source: str, target: str, kind: str) -> None:
        self.edges.append(LineageEdge(source=source, target=target, kind=kind))

    def add(self, source: str, target: str, kind: str, **facts: Any) -> None:
        self.nodes[source] = facts
        self.link(source, target, kind)


def _near_run(tx: ReadTx, scope: Scope, graph: _Graph, run_id: str, kind: str, *, outward: bool) -> None:
    try:
        other = runs.resolve(tx, scope, run_id)
    except TrackbedError:  # behind a wall, or deleted: not ours to show
        return
    graph.add_run(other)
    end = f"run:{other.id}"
    graph.link(*((graph.root, end) if outward else (end, graph.root)), kind)


def _children(tx: ReadTx, scope: Scope, row: runs.RunRow) -> list[runs.RunRow]:
    """Runs that reproduce this one or start from its checkpoints; at most 200, the newest."""
    started_from = run.c.spec.contains(f'"run_id":"{row.id}"', autoescape=True)
    conditions = (scope_clause(run, scope), run.c.id != row.id, or_(run.c.reproduces == row.id, started_from))
    return tx.rows(select(run).where(*conditions).order_by(run.c.created_us.desc()).limit(200))


def event_views(tx: ReadTx, its_run: runs.RunRow, rows: list[Row[Any]]) -> list[EventView]:
    """Events of a run; an attempt is called `demo#17/2` where the journal has only its id."""
    ref = runs.ref_of(its_run)
    names = {attempt.id: f"{ref}/{attempt.number}" for attempt in runs_attempts.of_run(tx, its_run.id)}
    return [_event_view(row, str(row.actor_name or names.get(row.actor, row.actor))) for row in rows]


def _event_view(row: Row[Any], actor: str) -> EventView:
    return EventView(
        id=row.id, time_us=row.time_us, kind=row.kind, actor=actor, subject=row.subject,
        run_id=row.run_id, attempt=row.attempt_id, data=runs.from_json(row.data, {}),
    )  # fmt: skip
