"""Following a trial of a submit up to the question whether the run shall queue."""

import sys
import time
from typing import TYPE_CHECKING

from trackbed.cli import output
from trackbed.cli.context import current, say
from trackbed.cli.follow import watch
from trackbed.cli.trial import show_trial

if TYPE_CHECKING:
    from trackbed.client.api import Client
    from trackbed.wire.runs import SubmitReply
    from trackbed.wire.trial import TrialView

_YES = ("y", "yes", "是")


def follow_trial(api: "Client", reply: "SubmitReply") -> int:
    """Wait for the trial of a submit, show what it told, and ask; 0 where the runs go on or wait for a word, 1 where it is bad."""
    output.note(say("cli.trial.began", trial=reply.trial_ref, ref=reply.ref))
    watch(api, reply.trial_id)
    view = _settled(api, reply.trial_id)
    if not output.emit_json(view):
        show_trial(view)
    if view.state != "good":
        output.note(say("cli.trial.held", ref=reply.ref))
        return 1
    if view.then_queue:
        output.note(say("cli.trial.queued", ref=", ".join(view.runs)))
        return 0
    if current().json or not sys.stdin.isatty():
        output.note(say("cli.trial.waits", ref=reply.ref))
        return 0
    yes = input(say("cli.trial.ask", ref=", ".join(view.runs)) + " ").strip().lower() in _YES
    for run_id in view.run_ids:
        api.verb(run_id, "release" if yes else "stop")
    output.line(say("cli.trial.queued" if yes else "cli.trial.dropped", ref=", ".join(view.runs)))
    return 0


def _settled(api: "Client", trial: str) -> "TrialView":
    """The server looks at a trial within a second of its end."""
    while (view := api.trial(trial)).state in ("waiting", "running"):
        time.sleep(0.3)
    return view
