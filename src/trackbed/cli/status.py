"""`trackbed status`: the server, the pool, how many runs are in which state."""

from trackbed.cli import output
from trackbed.cli.context import client, say


def status() -> None:
    with client() as api:
        view, me = api.status(), api.me()
    if output.emit_json(view):
        return
    counts = ", ".join(f"{output.state(state)} {count}" for state, count in view.counts.items() if count)
    output.facts([
        (say("cli.word.server"), view.url or api.url),
        (say("cli.word.version"), view.version),
        (say("cli.word.since"), output.when(view.started_us)),
        (say("cli.word.signed_in"), me.name),
        (say("cli.word.cards"), say("cli.cards_held", held=view.cards_held, total=view.cards_total)),
        (say("cli.word.runs"), counts),
        (say("cli.word.lane"), f"{view.lane_wait_p99_ms:.1f} ms"),
    ])  # fmt: skip
    for warning in view.warnings:
        output.note(say(f"reason.{warning.code}", **warning.params))
