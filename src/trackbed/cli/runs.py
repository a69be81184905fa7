"""`trackbed runs [FILTER]`: the table of runs."""

from typing import TYPE_CHECKING, Annotated

import typer

from trackbed.base.units import format_duration
from trackbed.cli import output
from trackbed.cli.context import client, say, word
from trackbed.cli.noticed import marks_text

if TYPE_CHECKING:
    from trackbed.wire.runs import RunView


def runs(
    filter: Annotated[str, typer.Argument(metavar="FILTER", help=say("cli.opt.filter"), show_default=False)] = "",
    project: Annotated[
        str, typer.Option("--project", "-p", metavar="NAME", help=say("cli.opt.project"), show_default=False)
    ] = "",
    columns: Annotated[
        str, typer.Option("--columns", "-c", metavar="A,B", help=say("cli.opt.columns"), show_default=False)
    ] = "",
    order_by: Annotated[
        str, typer.Option("--order-by", metavar="FIELD", help=say("cli.opt.order_by"), show_default=False)
    ] = "",
    ascending: Annotated[bool, typer.Option("--ascending", help=say("cli.opt.ascending"))] = False,
    metric_tag: Annotated[
        str, typer.Option("--metric-tag", metavar="TAG", help=say("cli.opt.metric_tag"), show_default=False)
    ] = "",
    dataset: Annotated[
        str, typer.Option("--dataset", metavar="NAME", help=say("cli.opt.along_dataset"), show_default=False)
    ] = "",
    model: Annotated[
        str, typer.Option("--model", metavar="NAME", help=say("cli.opt.along_model"), show_default=False)
    ] = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, metavar="N", help=say("cli.opt.limit"))] = 30,
) -> None:
    if metric_tag:
        _tagged(metric_tag, project=project, dataset=dataset, model=model)
        return
    asked = [name.strip() for name in columns.split(",") if name.strip()]
    with client() as api:
        found = api.runs(
            filter, project=project, columns=asked, order_by=order_by, descending=not ascending, limit=limit
        )
    if output.emit_json(found):
        return
    head = [say(f"cli.word.{name}") for name in ("run", "name", "state", "cards", "progress", "age", "owner")]
    output.table(
        [*head, *asked],
        [[*row(view), *(_value(view, name) for name in asked)] for view in found],
        empty=say("cli.no_runs"),
    )


def _tagged(tag: str, *, project: str, dataset: str, model: str) -> None:
    """Metrics with a tag: across runs, or along the versions of one dataset or model."""
    with client() as api:
        found = api.tagged(tag, project=project, dataset=dataset, model=model)
    if output.emit_json(found):
        return
    head = [
        say(f"cli.word.{name}") for name in ("version", "run", "name", "state", "created", "metric", "last", "best")
    ]
    rows = [
        [
            one.version or "", one.ref, one.name, output.state(one.state), output.when(one.created_us),
            f"{one.key}{f' ({one.unit})' if one.unit else ''}", output.number(one.last), output.number(one.best),
        ]
        for one in found
    ]  # fmt: skip
    output.table(head, rows, empty=say("cli.no_tagged", tag=tag))


def row(view: "RunView") -> list[str]:
    return [
        view.ref, view.name, _state(view),
        str(view.cards) if not view.outside else "-", progress(view), output.ago(view.created_us), view.owner,
    ]  # fmt: skip


def _state(view: "RunView") -> str:
    if not view.marks:
        cause = f" ({word(f'cause.{view.cause}', view.cause)})" if view.state == "failed" and view.cause else ""
        return output.state(view.state, more=cause)
    return output.paint(f"{word(f'state.{view.state}', view.state)} {marks_text(view.marks)}", "31")


def progress(view: "RunView") -> str:
    if view.progress is None or not view.progress.step:
        return ""
    total = f"/{view.progress.steps_total}" if view.progress.steps_total else ""
    left = view.progress.seconds_left if view.state == "running" else None
    told = say("cli.left", time=format_duration(left)) if left else ""
    return f"{view.progress.step}{total}  {told}".rstrip()


def _value(view: "RunView", name: str) -> str:
    if name.startswith("params."):
        return str(view.params.get(name.removeprefix("params."), ""))
    return output.number(view.metrics.get(name))
