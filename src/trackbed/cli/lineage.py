"""`trackbed lineage REF`: what a run used and made; a model version stands for the run that made it."""

from typing import TYPE_CHECKING, Annotated

import typer

from trackbed.base.errors import NotFound
from trackbed.cli import output
from trackbed.cli.context import client, say, word

if TYPE_CHECKING:
    from trackbed.wire.data import LineageView


def lineage(
    ref: Annotated[str, typer.Argument(metavar="REF", help=say("cli.opt.lineage_ref"), show_default=False)],
) -> None:
    from trackbed.client.connection import part
    from trackbed.wire.data import LineageView

    with client() as api:
        run = ref
        if "@" in ref:
            version = api.models.resolve(ref.removeprefix("model:"))
            if not version.run_id:
                raise NotFound("cli_model_without_run", ref=ref)
            run = version.run_id
        view = api.connection.get(f"/api/v1/runs/{part(run)}/lineage", LineageView)
    if output.emit_json(view):
        return
    head = [say(f"cli.word.{name}") for name in ("from", "link", "to")]
    output.table(
        head,
        [
            [_label(view, edge.source), word(f"lineage.{edge.kind}", edge.kind), _label(view, edge.target)]
            for edge in view.edges
        ],
    )


def _label(view: "LineageView", end: str) -> str:
    label = str(view.nodes.get(end, {}).get("label") or end)
    return label if label != end.partition(":")[2] or end.startswith("run:") else end
