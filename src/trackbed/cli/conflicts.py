"""`trackbed conflicts`: what my open work and that of others touch both."""

from typing import Annotated

import typer

from trackbed.cli import output
from trackbed.cli.context import client, say


def conflicts(every: Annotated[bool, typer.Option("--all", help=say("cli.opt.conflicts_all"))] = False) -> None:
    with client() as api:
        found = api.conflicts(mine=not every)
    if output.emit_json(found):
        return
    head = [say(f"cli.word.{name}") for name in ("kind", "subject", "conflict", "one_work", "other_work")]
    rows = [
        [
            say(f"cli.kind.{one.kind}"),
            one.subject,
            say("cli.conflict_lines" if one.lines else "cli.conflict_file"),
            *(f"{work.owner}: {work.branch or work.review} {work.run}".strip() for work in one.works),
        ]
        for one in found
    ]
    output.table(head, rows, empty=say("cli.no_conflicts"))
