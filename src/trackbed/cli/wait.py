"""`trackbed wait RUN`: until it has ended. Status 0 if it finished, 1 if it failed or was stopped."""

from typing import TYPE_CHECKING, Annotated

import typer

from trackbed.cli import output
from trackbed.cli.context import LONG_S, client, say, seconds
from trackbed.cli.options import Run
from trackbed.cli.show import reason_text

if TYPE_CHECKING:
    from trackbed.wire.runs import RunDetail


def wait(
    run: Run,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="TIME", help=say("cli.opt.timeout"), show_default=False)
    ] = "",
) -> int:
    with client(patience_s=LONG_S) as api:
        detail = api.wait(run, timeout_s=seconds(timeout, "--timeout") if timeout else None)
    if not output.emit_json(detail.run):
        output.line(ended_text(detail))
    return exit_status(detail)


def ended_text(detail: "RunDetail") -> str:
    why = reason_text(detail.run.reason)
    return f"{detail.run.ref}  {output.state(detail.run.state)}" + (f"  {why}" if why else "")


def exit_status(detail: "RunDetail") -> int:
    return 0 if detail.run.state == "finished" else 1
