"""`trackbed checkpoints list|get`."""

from pathlib import Path
from typing import Annotated

import typer

from trackbed.base.units import format_size
from trackbed.cli import output
from trackbed.cli.context import client, say, word
from trackbed.cli.options import Run, Target, group

app = group()


@app.command("list", help=say("cli.about.checkpoints.list"))
def list_checkpoints(run: Run) -> None:
    with client() as api:
        detail = api.run(run)
        found = [*detail.checkpoints_dropped, *detail.checkpoints]
    if output.emit_json(found):
        return
    head = [say(f"cli.word.{name}") for name in ("checkpoint", "step", "state", "size", "attempt", "created", "digest")]
    rows = [
        [
            one.name,
            one.step,
            word(f"checkpoint_state.{one.state}", one.state),
            format_size(one.size_bytes),
            one.attempt,
            output.when(one.created_us),
            one.digest[:15],
        ]
        for one in found
    ]
    output.table(head, rows)


@app.command("get", help=say("cli.about.checkpoints.get"))
def get(
    run: Run,
    step: Annotated[
        int | None, typer.Option("--step", min=0, metavar="N", help=say("cli.opt.step"), show_default=False)
    ] = None,
    to: Target = None,
) -> None:
    with client() as api:
        detail = api.run(run)
        target = to or Path(f"{detail.run.project}-{detail.run.number}-checkpoint")
        found = api.data.pull_checkpoint(detail, target, step=step)
    if not output.emit_json(found):
        output.line(say("cli.pulled", what=f"{detail.run.ref} {found.name}", path=target, digest=found.digest[:15]))
