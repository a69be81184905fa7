"""`trackbed submit FILE`: check, capture, push, submit; with `--follow` stay until the end."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trackbed.cli import output
from trackbed.cli.context import LONG_S, client, current, say
from trackbed.cli.follow import follow_run

if TYPE_CHECKING:
    from trackbed.wire.runs import SubmitReply


def submit(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=say("cli.opt.spec"))] = Path("trackbed.yaml"),
    sets: Annotated[
        list[str] | None, typer.Option("--set", "-s", metavar="A.B=VALUE", help=say("cli.opt.set"), show_default=False)
    ] = None,
    allow: Annotated[
        list[str] | None, typer.Option("--allow", metavar="PATTERN", help=say("cli.opt.allow"), show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=say("cli.opt.dry_run"))] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help=say("cli.opt.follow_run"))] = False,
) -> int:
    from trackbed.client.submit import prepare

    live = output.Live(every_s=2.0)
    with client(patience_s=LONG_S if follow else 10.0) as api:
        prepared = prepare(file, sets or [], allow=allow or [])
        reply = api.send(prepared, dry_run=dry_run, on_progress=lambda done, total: output.sending(live, done, total))
        live.clear()
        if output.emit_json(reply) and not follow:
            return 0
        if not current().json:
            _say(reply, dry_run=dry_run)
        return follow_run(api, reply.run_id) if follow and not dry_run else 0


def _say(reply: "SubmitReply", *, dry_run: bool) -> None:
    for warning in reply.warnings:
        output.note(say(f"reason.{warning.code}", **warning.params))
    if dry_run:
        output.line(say("cli.dry_run_good", cards=reply.spec.resources.cards))
        pins = [f"{name}: {pin.dataset}@{pin.version} {pin.digest[:15]}" for name, pin in reply.spec.data.items()]
        for pin in pins:
            output.line(f"  {pin}")
        return
    output.line(say("cli.submitted", ref=reply.ref, url=reply.url))
