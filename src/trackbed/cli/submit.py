"""`trackbed submit FILE`: check, capture, push, submit; with `--follow` stay until the end."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trackbed.base.errors import BadInput
from trackbed.base.units import format_duration, parse_duration, parse_size
from trackbed.cli import output
from trackbed.cli.context import LONG_S, client, current, say, word
from trackbed.cli.follow import follow_run
from trackbed.cli.show import reason_text

if TYPE_CHECKING:
    from trackbed.client.api import Client
    from trackbed.client.submit import Again, Prepared
    from trackbed.wire.runs import Estimate, SubmitReply, SubmittedRun


def submit(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=say("cli.opt.spec"))] = Path("trackbed.yaml"),
    like: Annotated[str, typer.Option("--like", metavar="RUN", help=say("cli.opt.like"), show_default=False)] = "",
    sets: Annotated[
        list[str] | None, typer.Option("--set", "-s", metavar="A.B=VALUE", help=say("cli.opt.set"), show_default=False)
    ] = None,
    allow: Annotated[
        list[str] | None, typer.Option("--allow", metavar="PATTERN", help=say("cli.opt.allow"), show_default=False)
    ] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help=say("cli.opt.no_cache"))] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=say("cli.opt.dry_run"))] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help=say("cli.opt.follow_run"))] = False,
    trial: Annotated[bool, typer.Option("--trial", help=say("cli.opt.trial"))] = False,
    trial_steps: Annotated[
        int, typer.Option("--trial-steps", metavar="N", min=1, max=100_000, help=say("cli.opt.trial_steps"))
    ] = 20,
    trial_data: Annotated[str, typer.Option("--trial-data", metavar="SIZE", help=say("cli.opt.trial_data"))] = "64 MiB",
    trial_limit: Annotated[str, typer.Option("--trial-limit", metavar="TIME", help=say("cli.opt.trial_limit"))] = "10m",
    full_steps: Annotated[
        int, typer.Option("--full-steps", metavar="N", min=0, help=say("cli.opt.full_steps"), show_default=False)
    ] = 0,
    then_queue: Annotated[bool, typer.Option("--then-queue", help=say("cli.opt.then_queue"))] = False,
    against: Annotated[
        str, typer.Option("--against", metavar="RUN", help=say("cli.opt.against"), show_default=False)
    ] = "",
) -> int:
    from trackbed.cli.try_first import follow_trial
    from trackbed.client.submit import prepare
    from trackbed.wire.trial import TrialRequest

    tried = None
    if trial or then_queue:
        size, limit_s = _size(trial_data), _duration(trial_limit)
        tried = TrialRequest(
            steps=trial_steps, data_bytes=size, limit_s=limit_s, full_steps=full_steps, then_queue=then_queue
        )  # fmt: skip

    live = output.Live(every_s=2.0)
    with client(patience_s=LONG_S if follow or tried else 10.0) as api:
        said = [*(sets or []), *(["cache=false"] if no_cache else [])]
        prepared = api.like(like, said) if like else prepare(file, said, allow=allow or [])
        if against and not dry_run:
            return _beside(api, prepared, against, live, follow=follow)
        reply = api.send(
            prepared, dry_run=dry_run, trial=tried, on_progress=lambda done, total: output.sending(live, done, total)
        )
        live.clear()
        if reply.trial_id:
            status = follow_trial(api, reply)
            return follow_run(api, reply.run_id) if follow and status == 0 and then_queue else status
        if output.emit_json(reply) and not follow:
            return 0
        if not current().json:
            say_reply(reply, dry_run=dry_run)
        if not follow or dry_run:
            return 0
        ids = [one.run_id for one in reply.runs] or [reply.run_id]
        return max(follow_run(api, run_id) for run_id in ids)


def _beside(api: "Client", prepared: "Prepared | Again", against: str, live: output.Live, *, follow: bool) -> int:
    """Submit with an older run beside it, and say what is the same; with `follow` stay for the comparison."""
    from trackbed.cli.compare import print_comparison
    from trackbed.client.against import submit_pair

    pair = submit_pair(api, prepared, against, on_progress=lambda done, total: output.sending(live, done, total))
    live.clear()
    if not output.emit_json({"tag": pair.tag, "new": pair.new, "old": pair.old, "conditions": pair.conditions}):
        output.line(say("cli.against_submitted", new=pair.new.ref, old=pair.old.ref, tag=pair.tag))
        print_comparison(pair.conditions)
    if not follow:
        return 0
    status = max(follow_run(api, run_id) for run_id in pair.ids)
    print_comparison(api.compare(pair.ids))
    return status


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError:
        raise BadInput("spec_bad_size", value=text) from None


def _duration(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError:
        raise BadInput("spec_bad_duration", value=text) from None


def say_reply(reply: "SubmitReply", *, dry_run: bool) -> None:
    for warning in reply.warnings:
        output.note(say(f"reason.{warning.code}", **warning.params))
    if dry_run:
        output.line(say("cli.dry_run_good", cards=reply.spec.resources.cards))
        pins = [f"{name}: {pin.dataset}@{pin.version} {pin.digest[:15]}" for name, pin in reply.spec.data.items()]
        for pin in pins:
            output.line(f"  {pin}")
        if reply.estimate is not None:
            output.facts(_expected(reply.estimate))
        if reply.spec.template:
            output.line(f"  {say('cli.word.template')}: {reply.spec.template}")
        for one in reply.runs:
            output.line(f"  {_values(one)}")
        if reply.resolved:
            output.line()
            head = [say(f"cli.word.{name}") for name in ("field", "value", "origin")]
            output.table(
                head,
                [[one.field, _text(one.value), word(f"origin.{one.origin}", one.origin)] for one in reply.resolved],
            )
        return
    if reply.runs:
        output.line(say("cli.submitted_many", count=len(reply.runs), group=reply.group))
        for one in reply.runs:
            output.line(f"  {one.ref}  {_values(one)}")
        return
    output.line(say("cli.submitted", ref=reply.ref, url=reply.url))


def _expected(found: "Estimate") -> list[tuple[str, str]]:
    """When it would start and what it would cost."""
    if found.starts_now:
        start = say("cli.estimate.now")
    else:
        start = reason_text(found.reason)
        if found.not_before_s is not None:
            start += "  " + say("cli.estimate.not_before", time=format_duration(found.not_before_s))
    most, like = _hours(found.card_hours_most, found.cost_most, found.currency), _hours(found.card_hours_like, found.cost_like, found.currency)  # fmt: skip
    cost = [say("cli.estimate.most", hours=most)] if most else [say("cli.estimate.no_limit")]
    if like and found.seconds_like is not None:
        time = format_duration(found.seconds_like)
        cost.append(say("cli.estimate.like", count=found.like, hours=like, time=time))
    return [(say("cli.word.start"), start), (say("cli.word.cost"), "; ".join(cost))]


def _hours(hours: float | None, cost: float | None, currency: str) -> str:
    if hours is None:
        return ""
    price = f" ({cost:.2f} {currency})".replace(" )", ")") if cost is not None else ""
    return say("cli.estimate.hours", hours=f"{hours:.3g}") + price


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.strip().replace("\n", " ⏎ ")


def _values(one: "SubmittedRun") -> str:
    return "  ".join(f"{name}={value}" for name, value in one.values.items())
