"""`trackbed explain RUN`: why it is as it is, and what happened so far."""

from typing import TYPE_CHECKING

from trackbed.cli import output
from trackbed.cli.context import client, say, words
from trackbed.cli.options import Run
from trackbed.cli.show import reason_text

if TYPE_CHECKING:
    from trackbed.wire.runs import EventView


def explain(run: Run) -> None:
    with client() as api:
        detail = api.run(run)
        events = api.events(detail.run.id)
        place = next((one.place for one in api.pool.queue() if one.run.id == detail.run.id), None)
    if output.emit_json({"run": detail.run, "attempts": detail.attempts, "events": events, "place": place}):
        return
    output.line(f"{detail.run.ref}  {output.state(detail.run.state)}  {reason_text(detail.run.reason)}".rstrip())
    if place is not None:
        output.line(say("cli.place", place=place))
    for attempt in detail.attempts:
        if attempt.reason is not None:
            output.line(f"  {say('cli.word.attempt')} {attempt.number}: {reason_text(attempt.reason)}")
    output.line()
    output.table([say(f"cli.word.{name}") for name in ("time", "who", "what")],
                 [[output.when(event.time_us), event.actor, event_text(event)] for event in events])  # fmt: skip


def event_text(event: "EventView") -> str:
    """Return the sentence of an event; the values of a newer server's event are shown as they are."""
    return say(f"event.{event.kind}", **{"attempt": event.attempt, "subject": event.subject, **words(event.data)})
