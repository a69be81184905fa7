"""`trackbed stop | pause | resume | retry | hold | release RUN…`."""

from typing import TYPE_CHECKING, Annotated

import typer

from trackbed.base.errors import BadInput, TrackbedError
from trackbed.base.units import parse_duration
from trackbed.cli import output
from trackbed.cli.context import LONG_S, client, current, say
from trackbed.cli.options import Message

if TYPE_CHECKING:
    from trackbed.client.api import Verb
    from trackbed.wire.runs import RunView

Runs = Annotated[list[str], typer.Argument(metavar="RUN...", help=say("cli.opt.runs"), show_default=False)]
Grace = Annotated[str, typer.Option("--grace", metavar="TIME", help=say("cli.opt.grace"), show_default=False)]
Wait = Annotated[bool, typer.Option("--wait", help=say("cli.opt.wait_verb"))]


def stop(runs: Runs, grace: Grace = "", message: Message = "", wait: Wait = False) -> int:
    return _do("stop", runs, grace=grace, message=message, until={"stopped", "failed", "finished"} if wait else set())


def pause(runs: Runs, grace: Grace = "", message: Message = "", wait: Wait = False) -> int:
    return _do(
        "pause",
        runs,
        grace=grace,
        message=message,
        until={"paused", "stopped", "failed", "finished"} if wait else set(),
    )


def resume(runs: Runs, message: Message = "") -> int:
    return _do("resume", runs, message=message)


def retry(runs: Runs, message: Message = "") -> int:
    return _do("retry", runs, message=message)


def hold(runs: Runs, message: Message = "") -> int:
    return _do("hold", runs, message=message)


def release(runs: Runs, message: Message = "") -> int:
    return _do("release", runs, message=message)


def told(run: str, error: TrackbedError) -> str:
    """Return the sentence of an error, led by the run that it is about unless it names it."""
    text = error.text(current().lang)
    named = str(error.params.get("ref", ""))
    return text if named and named in text else f"{run}: {text}"


def _do(verb: "Verb", runs: list[str], *, grace: str = "", message: str = "", until: set[str] | None = None) -> int:
    """Ask for each run; say every error, and return the status of the worst."""
    try:
        grace_s = parse_duration(grace) if grace else None
    except ValueError:
        raise BadInput("cli_bad_duration", value=grace, option="--grace") from None
    done: list[RunView] = []
    worst: TrackbedError | None = None
    with client(patience_s=LONG_S if until else 2.0) as api:
        for run in runs:
            try:
                view = api.verb(run, verb, grace_s=grace_s, message=message)
                if until:
                    view = api.wait(view.id, until=until).run
                done.append(view)
            except TrackbedError as error:
                if len(runs) == 1:
                    raise
                output.note(told(run, error))
                worst = error
    if not output.emit_json(done):
        for view in done:
            output.line(f"{view.ref}  {output.state(view.state)}")
    return worst.exit_status if worst else 0
