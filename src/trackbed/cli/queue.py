"""`trackbed queue`: who waits, in which place and why."""

from trackbed.cli import output
from trackbed.cli.context import client, say, word
from trackbed.cli.show import reason_text


def queue() -> None:
    with client() as api:
        found = api.pool.queue()
    if output.emit_json(found):
        return
    head = [say(f"cli.word.{name}") for name in ("place", "run", "owner", "priority", "cards", "waits", "why")]
    rows = [
        [one.place, one.run.ref, one.run.owner, word(f"priority.{one.run.priority}", one.run.priority), one.run.cards,
         output.ago(one.run.queued_us or one.run.created_us), reason_text(one.reason)]
        for one in found
    ]  # fmt: skip
    output.table(head, rows, empty=say("cli.no_queue"))
