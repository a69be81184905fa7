"""`trackbed fork RUN`: a new run that begins from a checkpoint of another, or from a model, with other values."""

from typing import Annotated

import typer

from trackbed.cli import output
from trackbed.cli.context import LONG_S, client, current, say
from trackbed.cli.follow import follow_run
from trackbed.cli.options import Run


def fork(
    run: Run,
    sets: Annotated[
        list[str] | None, typer.Option("--set", "-s", metavar="A.B=VALUE", help=say("cli.opt.set"), show_default=False)
    ] = None,
    checkpoint: Annotated[
        str, typer.Option("--checkpoint", "-c", metavar="STEP", help=say("cli.opt.fork_checkpoint"), show_default=False)
    ] = "",
    model: Annotated[
        str, typer.Option("--model", metavar="NAME@VERSION", help=say("cli.opt.fork_model"), show_default=False)
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help=say("cli.opt.dry_run"))] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help=say("cli.opt.follow_run"))] = False,
) -> int:
    from trackbed.cli.submit import say_reply

    with client(patience_s=LONG_S if follow else 10.0) as api:
        reply = api.send(api.like(run, sets or [], fork=True, checkpoint=checkpoint, model=model), dry_run=dry_run)
        if output.emit_json(reply) and not follow:
            return 0
        if not current().json:
            say_reply(reply, dry_run=dry_run)
        return follow_run(api, reply.run_id) if follow and not dry_run else 0
