"""`trackbed sync [DIR]`: send what runs outside jobs logged while no server answered."""

from pathlib import Path
from typing import Annotated

import typer

from trackbed.base.units import format_size
from trackbed.cli import context, output
from trackbed.cli.context import say
from trackbed.client import config, outside


def sync(
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help=say("cli.opt.sync_dir"), show_default=False)
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=1, metavar="SECONDS", help=say("cli.opt.sync_timeout"))
    ] = 60.0,
) -> int:
    from trackbed.client.sender import sync as send_all

    login = config.need(context.current().server)
    results = send_all(folder, login=login, timeout_s=timeout)
    rows = [
        {"run": known.run_id if known else "", "ref": known.ref if known else "", "bytes_left": left}
        for known, left in results
    ]
    left_to_others = [] if results else [one for one in outside.folders(folder or outside.spool_home()) if not one.done]
    if output.emit_json(rows):
        pass
    elif left_to_others:  # each has a sender of its own that is at work
        away = any(one.offline for one in left_to_others)
        output.note(say("cli.sync_waits" if away else "cli.sync_busy", count=len(left_to_others), url=login.url))
    else:
        head = [say(f"cli.word.{name}") for name in ("run", "left")]
        output.table(
            head,
            [[row["ref"] or "-", format_size(int(row["bytes_left"] or 0))] for row in rows],
            empty=say("cli.nothing_to_sync"),
        )
    return 6 if left_to_others or any(left for _, left in results) else 0
