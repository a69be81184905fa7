"""`trackbed explain RUN`: why it is as it is, and what happened so far."""

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from trackbed.cli import output
from trackbed.cli.context import client, say, words
from trackbed.cli.options import Run
from trackbed.cli.show import AS_ASKED, reason_text

if TYPE_CHECKING:
    from trackbed.wire.runs import EventView


def explain(run: Run) -> None:
    with client() as api:
        detail = api.run(run)
        events = page = api.events(detail.run.id)
        while page:
            page = api.events(detail.run.id, after=page[-1].id)
            events = [*events, *page]
        place = next((one.place for one in api.pool.queue() if one.run.id == detail.run.id), None)
    if output.emit_json({"run": detail.run, "attempts": detail.attempts, "events": events, "place": place}):
        return
    output.line(f"{detail.run.ref}  {output.state(detail.run.state)}  {reason_text(detail.run.reason)}".rstrip())
    if place is not None:
        output.line(say("cli.place", place=place))
    for attempt in detail.attempts:
        if attempt.reason is not None and attempt.cause not in AS_ASKED:
            output.line(f"  {say('cli.word.attempt')} {attempt.number}: {reason_text(attempt.reason)}")
    output.line()
    output.table([say(f"cli.word.{name}") for name in ("time", "who", "what")],
                 [[output.when(event.time_us), event.actor, text] for event, text in told(events)])  # fmt: skip


def told(events: "list[EventView]") -> Iterator[tuple["EventView", str]]:
    """Yield events with their sentences; checkpoints in a row, of which there may be hundreds, are told at once."""
    for kind, group in groupby(events, key=lambda event: (event.kind, event.actor)):
        same = list(group)
        if kind[0] == "checkpoint.recorded" and len(same) > 2:
            first, last = same[0].data.get("name", ""), same[-1].data.get("name", "")
            yield same[-1], say("cli.checkpoints_from_to", count=len(same), first=first, last=last)
        else:
            yield from ((event, event_text(event)) for event in same)


def event_text(event: "EventView") -> str:
    """Return the sentence of an event with the message of who did it; a newer server's event is shown as it is."""
    data = {name: f"{value:g}" if name == "grace_s" else value for name, value in event.data.items()}
    text = say(f"event.{event.kind}", **{"attempt": event.attempt, "subject": event.subject, **words(data)})
    message = event.data.get("message")
    return say("cli.said", what=text, message=message) if message else text
