"""`trackbed compare RUN…`: what differs between runs, and what came of them."""

import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trackbed.base.units import format_duration
from trackbed.cli import output
from trackbed.cli.context import client, say, word

if TYPE_CHECKING:
    from trackbed.wire.compare import Comparison, Difference, MetricColumn, Spread

_BESIDE = 6  # runs that fit as columns; more are rows
_METRICS = 20  # shown without --metric


def compare(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help=say("cli.opt.compare_runs"), show_default=False)],
    metrics: Annotated[
        list[str] | None,
        typer.Option("--metric", "-m", metavar="KEY", help=say("cli.opt.compare_metric"), show_default=False),
    ] = None,
    csv_file: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help=say("cli.opt.compare_csv"), show_default=False)
    ] = None,
) -> None:
    with client() as api:
        found = api.compare(runs, metrics or [])
    if csv_file is not None:
        write_csv(found, csv_file)
        return
    if not output.emit_json(found):
        print_comparison(found)


def write_csv(found: "Comparison", place: Path) -> None:
    """Write part, name and a value a run; `-` is the standard output."""
    from trackbed.tracking.compare import rows

    if str(place) == "-":
        csv.writer(sys.stdout).writerows(rows(found))
        return
    with place.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows(found))


def print_comparison(found: "Comparison") -> None:
    many = len(found.runs) > _BESIDE
    head = [say(f"cli.word.{name}") for name in ("run", "name", "state", "seed", "group", "lasted", "card_time")]
    table = [
        [
            run.ref, run.name, output.state(run.state), run.seed, run.group + 1 if found.groups > 1 else "",
            format_duration(run.seconds) if run.seconds else "",
            format_duration(run.card_seconds) if run.card_seconds else "",
        ]
        for run in found.runs
    ]  # fmt: skip
    shown = [column for column in found.metrics if column.goal] if many else []
    if many:
        head += [one.name for one in found.params] + [column.key for column in shown]
        for at, row in enumerate(table):
            row += [_text(one.values[at]) for one in found.params] + [_value(column, at) for column in shown]
    output.table(head, table)
    output.line()
    output.facts([(say("cli.word.same"), ", ".join(word(f"compare.{name}", name) for name in found.matched))])
    for part in ("params", "data", "code", "environment", "settings", "files"):
        differences: list[Difference] = getattr(found, part)
        if many and part == "params":
            continue
        _part(found, part, differences, many=many)
    if not many:
        _metrics(found)
    _groups(found)


def _part(found: "Comparison", part: str, differences: "list[Difference]", *, many: bool) -> None:
    if not differences:
        return
    output.line()
    title = word(f"compare.{part}", part)
    if many:
        output.facts([(title, ", ".join(one.name for one in differences))])
    else:
        output.table(
            [title, *(run.ref for run in found.runs)], [[one.name, *map(_text, one.values)] for one in differences]
        )
    if part == "files" and found.files_left_out:
        output.line(say("cli.files_left_out", count=found.files_left_out))


def _metrics(found: "Comparison") -> None:
    columns = found.metrics[:_METRICS]
    if not columns:
        return
    output.line()
    rows = [
        [f"{column.key}{f' ({column.goal})' if column.goal else ''}", *(_value(column, at) for at in range(len(found.runs)))]
        for column in columns
    ]  # fmt: skip
    output.table([say("cli.word.metric"), *(run.ref for run in found.runs)], rows)
    if left := len(found.metrics) - len(columns) + found.metrics_left_out:
        output.line(say("cli.metrics_left_out", count=left))


def _groups(found: "Comparison") -> None:
    """Mean and spread over repeats, where there are repeats or groups to judge."""
    if found.groups == len(found.runs) and found.groups > 2:
        return  # a search: no repeats, and no pair
    if found.groups == 1 and len(found.runs) < 2:
        return
    judged = [column for column in found.metrics if column.goal]
    if not judged:
        return
    output.line()
    numbers = [spread.group for spread in judged[0].groups]
    head = [say("cli.word.metric"), *(say("cli.group_number", number=number + 1) for number in numbers)]
    output.table(head, [[column.key, *(_spread(spread) for spread in column.groups)] for column in judged])


def _spread(spread: "Spread") -> str:
    if spread.mean is None:
        return ""
    deviation = "" if spread.deviation is None else f" ± {output.number(spread.deviation)}"
    verdict = f"  {word(f'verdict.{spread.verdict}', spread.verdict)}" if spread.verdict else ""
    return f"{output.number(spread.mean)}{deviation} (n={spread.n}){verdict}"


def _value(column: "MetricColumn", at: int) -> str:
    run = column.runs[at]
    if run is None:
        return ""
    return output.number(run.last if run.best is None else run.best)


def _text(value: Any) -> str:
    return "-" if value is None else str(value)
