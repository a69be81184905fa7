"""`trackbed show RUN`: what is on the record of a run."""

from typing import TYPE_CHECKING, Annotated

import typer

from trackbed.base.units import format_duration, format_size
from trackbed.cli import output
from trackbed.cli.context import client, say, word, words
from trackbed.cli.noticed import marks_text, print_anomalies, print_steps
from trackbed.cli.options import Run
from trackbed.cli.runs import progress

if TYPE_CHECKING:
    from trackbed.wire.runs import AttemptView, Reason, RunDetail, StageView

_CHECKPOINTS = 5  # the newest; all: `checkpoints list`
AS_ASKED = ("", "done", "stopped", "paused", "preempted")  # how a rank went then is no news


def show(run: Run, steps: Annotated[bool, typer.Option("--steps", help=say("cli.opt.show_steps"))] = False) -> None:
    if steps:
        with client() as api:
            found = api.steps(run)
        if not output.emit_json(found):
            print_steps(found)
        return
    with client() as api:
        detail = api.run(run)
        keys = [] if not detail.metric_keys else api.keys(detail.run.id, limit=20)
    if output.emit_json(detail):
        return
    view, spec = detail.run, detail.spec
    output.line(
        output.bold(f"{view.ref}  {view.name}".strip())
        + f"  {output.state(view.state)}  {output.paint(marks_text(view.marks), '31')}".rstrip()
    )
    output.facts([
        (say("cli.word.why"), reason_text(view.reason)),
        (say("cli.word.description"), view.description),
        (say("cli.word.board"), f"{api.url}/runs/{view.id}"),
        (say("cli.word.owner"), view.owner),
        (say("cli.word.created"), output.when(view.created_us)),
        (say("cli.word.lasted"), _lasted(detail)),
        (say("cli.word.progress"), progress(view)),
        (say("cli.word.cards"), "" if view.outside else view.cards),
        (say("cli.word.card_time"), format_duration(view.card_seconds) if view.card_seconds else ""),
        (say("cli.word.program"), spec.run.strip() or spec.recipe or " → ".join(stage.name for stage in spec.stages)),
        (say("cli.word.data"), ", ".join(f"{name}: {pin.dataset or pin.ref}{f'@{pin.version}' if pin.version else ''} {short(pin.digest)}" for name, pin in spec.data.items())),
        (say("cli.word.code"), code_text(detail)),
        (say("cli.word.environment"), environment_text(detail)),
        (say("cli.word.seed"), "" if view.outside else spec.seed),
        (say("cli.word.params"), ", ".join(f"{name}={value}" for name, value in list((view.params or spec.params).items())[:20])),
        (say("cli.word.tags"), ", ".join(view.tags)),
        (say("cli.word.models"), ", ".join(detail.models)),
        (say("cli.word.reproduces"), detail.reproduces),
        (say("cli.word.like"), _like(detail)),
        (say("cli.word.not_exact"), ", ".join(detail.nondeterminism)),
    ])  # fmt: skip
    if detail.trial is not None:
        from trackbed.cli.trial import show_trial

        output.line()
        show_trial(detail.trial)
    _stages(detail.stages)
    _attempts(detail.attempts)
    _inputs(detail.attempts)
    print_anomalies(detail.anomalies)
    if keys:
        output.line()
        head = [say(f"cli.word.{name}") for name in ("metric", "first", "last", "least", "greatest", "points")]
        output.table(
            head, [[k.key, *(_value(k.key, v) for v in (k.first, k.last, k.min, k.max)), k.count] for k in keys]
        )
    if detail.checkpoints:
        output.line()
        head = [say(f"cli.word.{name}") for name in ("checkpoint", "step", "state", "size", "digest")]
        rows = [
            [c.name, c.step, word(f"checkpoint_state.{c.state}", c.state), format_size(c.size_bytes), short(c.digest)]
            for c in detail.checkpoints[-_CHECKPOINTS:]
        ]
        output.table(head, rows)
        if older := len(detail.checkpoints) - len(rows):
            output.line(say("cli.more_checkpoints", count=older, ref=view.ref))
    if detail.artifacts:
        output.line()
        output.table([say(f"cli.word.{name}") for name in ("artifact", "kind", "size")],
                     [[a.path, word(f"artifact_kind.{a.kind}", a.kind), format_size(a.size_bytes)] for a in detail.artifacts])  # fmt: skip


def _inputs(attempts: "list[AttemptView]") -> None:
    """What the newest attempt's nodes had in their caches, and how long it waited for the rest."""
    found = attempts[-1].inputs if attempts else []
    if not found:
        return
    size, fetched = sum(one.size_bytes for one in found), sum(one.fetched_bytes for one in found)
    share = f"{100 * (size - fetched) / size:.0f}%" if size else "-"
    wait = format_duration(sum(one.seconds for one in found))
    output.line(say("cli.inputs", size=format_size(size), share=share, fetched=format_size(fetched), wait=wait))


def _value(key: str, value: float | str | None) -> str:
    if isinstance(value, float) and key.endswith("_bytes"):
        return format_size(int(value))
    return output.number(value)


def reason_text(reason: "Reason | None") -> str:
    return "" if reason is None else say(f"reason.{reason.code}", **words(reason.params))


def short(digest: str) -> str:
    """`b3:0123456789abcdef…` → `b3:0123456789ab`."""
    return digest[:15]


def code_text(detail: "RunDetail") -> str:
    tree = detail.tree
    if tree is None:
        return ""
    commit = f"{tree.commit[:10]} {tree.branch}".strip()
    dirty = say("cli.dirty", count=tree.dirty) if tree.dirty else ""
    return "  ".join(part for part in (short(tree.digest), commit, dirty) if part)


def environment_text(detail: "RunDetail") -> str:
    found = detail.environment
    return (
        ""
        if found is None
        else f"{short(found.digest)}  {say('cli.packages', python=found.python, platform=found.platform, count=len(found.packages))}"
    )


def _like(detail: "RunDetail") -> str:
    """The run that it was made from, with the values that were changed."""
    found = detail.like
    if found is None:
        return ""
    changed = [f"{one.field}: {_plain(one.before)} → {_plain(one.after)}" for one in found.changes]
    return "  ".join([found.ref, ", ".join(changed)]).strip()


def _plain(value: object) -> str:
    text = "-" if value is None else str(value)
    return text if len(text) <= 40 else text[:39] + "…"


def _lasted(detail: "RunDetail") -> str:
    view = detail.run
    if not view.started_us:
        return ""
    if view.ended_us:
        return format_duration((view.ended_us - view.started_us) / 1e6)
    return output.ago(view.started_us)


def _stages(stages: "list[StageView]") -> None:
    if not stages:
        return
    output.line()
    head = [say(f"cli.word.{name}") for name in ("stage", "state", "needs", "attempt", "why")]
    output.table(head, [
        [one.name, word(f"stage_state.{one.state}", one.state), ", ".join(one.needs), one.run or one.attempt or "", reason_text(one.reason)]
        for one in stages
    ])  # fmt: skip


def _attempts(attempts: "list[AttemptView]") -> None:
    if not attempts:
        return
    output.line()
    head = [
        say(f"cli.word.{name}")
        for name in ("attempt", "stage", "state", "cause", "lasted", "from_step", "lost_steps", "where")
    ]
    output.table(head, [
        [
            one.number, one.stage, word(f"attempt_state.{one.state}", one.state), word(f"cause.{one.cause}", one.cause),
            format_duration(((one.ended_us or one.contact_us) - one.started_us) / 1e6) if one.started_us and (one.ended_us or one.contact_us) else "",
            "" if one.resumed_from_step is None else one.resumed_from_step, one.lost_steps or "",
            ", ".join(f"{place.get('node')}:{','.join(map(str, place.get('cards') or []))}" for place in one.placement),
        ]
        for one in attempts
    ])  # fmt: skip
    for one in attempts:
        if one.reason is not None and one.cause not in AS_ASKED:
            output.line(f"  {one.number}: {reason_text(one.reason)}")
