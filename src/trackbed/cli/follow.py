"""Watching a run: its state, its log lines or one live line of progress, until it has ended."""

import sys
import time
from typing import TYPE_CHECKING

from trackbed.base.units import format_duration
from trackbed.cli import output
from trackbed.cli.context import say
from trackbed.cli.logs import print_line
from trackbed.cli.show import reason_text
from trackbed.cli.wait import ended_text, exit_status
from trackbed.domain.states import TERMINAL

if TYPE_CHECKING:
    from trackbed.client.api import Client
    from trackbed.wire.runs import RunDetail, RunView
    from trackbed.wire.series import KeyInfo

_BAR = 12  # characters
_ENDED = frozenset(state.value for state in TERMINAL)


def follow_run(api: "Client", run: str) -> int:
    """Show a run until it has ended; return 0 if it finished, else 1."""
    detail = api.run(run)
    try:
        detail = watch(api, run) if detail.spec.recipe else _watch_lines(api, run)
    except KeyboardInterrupt:
        output.note("\n" + say("cli.goes_on", ref=detail.run.ref))
        raise
    output.line(ended_text(detail))
    return exit_status(detail)


def _watch_lines(api: "Client", run: str) -> "RunDetail":
    told = ""
    while True:
        view = api.run(run).run
        told = _tell(view, told)
        if view.state not in ("draft", "preparing", "queued", "held", "starting"):
            break
        time.sleep(0.5)
    live = output.Live()

    def on_wait(detail: "RunDetail") -> None:
        """Say how far the run is, below its lines: many a program logs metrics and prints nothing."""
        if sys.stderr.isatty() and detail.run.progress is not None and detail.run.progress.step:
            keys = {info.key: info for info in api.keys(detail.run.id, limit=50)} if detail.metric_keys else {}
            live.show(progress_line(detail.run, keys, 0))

    for line in api.logs(run, follow=True, on_wait=on_wait):
        live.clear()
        print_line(line)
    live.clear()
    return api.run(run)


def _tell(view: "RunView", told: str) -> str:
    text = f"{view.ref}  {output.state(view.state)}  {reason_text(view.reason)}".rstrip()
    if text != told:
        output.note(text)
    return text


def watch(api: "Client", run: str, *, every_s: float = 3.0) -> "RunDetail":
    """Show step, loss, tokens/s and time left on one line until the run has ended."""
    live = output.Live(every_s=every_s)
    began = time.monotonic()
    while True:
        detail = api.run(run)
        view = detail.run
        if view.state in _ENDED:
            live.clear()
            return detail
        keys = {info.key: info for info in api.keys(view.id, limit=50)} if detail.metric_keys else {}
        live.show(progress_line(view, keys, time.monotonic() - began))
        if view.state == "paused":
            live.end()
            output.note(say("cli.paused_hint", ref=view.ref))
            return detail
        time.sleep(0.5 if sys.stderr.isatty() else 1.0)


def progress_line(view: "RunView", keys: "dict[str, KeyInfo]", waited_s: float) -> str:
    """`demo#1  ▰▰▰▱▱  step 120/240  loss 2.8133  4,120 tokens/s  31s left`: fits into 80 columns."""
    parts = [view.ref, output.state(view.state)]
    found = view.progress
    if found is None or not found.step:
        parts += [reason_text(view.reason), _whole(waited_s)]
        return "  ".join(part for part in parts if part)
    if view.state == "running":
        parts.pop()
    if found.steps_total:
        full = min(_BAR * found.step // found.steps_total, _BAR)
        parts.append("▰" * full + "▱" * (_BAR - full))
    parts.append(say("cli.step_of", step=found.step, total=found.steps_total or "?"))
    if "loss" in keys:
        parts.append(say("cli.loss", loss=f"{float(keys['loss'].last):.4f}"))
    finishing = found.step == found.steps_total
    if "tokens_per_s" in keys and not finishing:
        parts.append(say("cli.tokens_per_s", rate=f"{float(keys['tokens_per_s'].last):,.0f}"))
    if finishing:
        parts.append(say("cli.finishing"))
    elif found.seconds_left is not None:
        parts.append(say("cli.left", time=_whole(max(found.seconds_left, 0))))
    return "  ".join(parts)


def _whole(seconds: float) -> str:
    return f"{seconds:.0f}s" if seconds < 59.5 else format_duration(seconds)
