"""What happened is told once and short, with the words of who did it."""

from trackbed.cli import context
from trackbed.cli.explain import event_text, told
from trackbed.wire.runs import EventView


def event(number: int, kind: str, **data: object) -> EventView:
    return EventView(id=number, time_us=number, kind=kind, actor="demo#1/1", subject="", data=data)


def test_checkpoints_in_a_row_are_one_line() -> None:
    context.take(["--lang", "en"])
    saved = [event(step, "checkpoint.recorded", name=f"step-{step}", step=step) for step in range(10, 60, 10)]
    lines = [text for _, text in told([event(1, "run.running"), *saved, event(99, "run.finished")])]
    assert lines == ["Running", "5 checkpoints, step-10 … step-50, are safe in the store", "Finished"]


def test_the_message_of_a_person_stands_with_what_was_asked() -> None:
    context.take(["--lang", "en"])
    assert event_text(event(1, "run.stopping", asked="stop", message="enough")) == "Asked to leave (stop): enough"


def test_a_grace_is_told_in_whole_seconds() -> None:
    context.take(["--lang", "en"])
    assert event_text(event(1, "attempt.ordered", order="pause", grace_s=120.0)).endswith("(pause, 120 s of grace)")
