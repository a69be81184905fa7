"""What a trial told, for people."""

from typing import TYPE_CHECKING

from trackbed.base.units import format_duration, format_size
from trackbed.cli import output
from trackbed.cli.context import say, word, words

if TYPE_CHECKING:
    from trackbed.wire.reason import Reason
    from trackbed.wire.trial import Forecast, LossTrend, TrialView


def show_trial(view: "TrialView") -> None:
    """Print the report."""
    output.line(output.bold(f"{say('cli.word.trial')} {view.trial_ref}") + f"  {word(f'trial_state.{view.state}', view.state)}  {_reason(view.reason)}".rstrip())  # fmt: skip
    report = view.report
    if report is None:
        return
    output.facts([
        (say("cli.word.steps"), say("cli.trial.steps", steps=report.steps, time=format_duration(report.seconds)) if report.steps else ""),
        (say("cli.word.speed"), _speed(report.steps_per_s, report.step_seconds)),
        (say("cli.word.startup"), "" if report.startup_s is None else format_duration(report.startup_s)),
        (say("cli.word.host_memory"), "" if report.peak_rss_bytes is None else format_size(report.peak_rss_bytes)),
        (say("cli.word.card_memory"), _card(report.peak_card_bytes, report.card_bytes)),
        (say("cli.word.checkpoint"), "" if report.checkpoint_bytes is None else format_size(report.checkpoint_bytes)),
        (say("cli.word.loss"), _loss(report.loss)),
        (say("cli.word.data"), ", ".join(
            say("cli.trial.data", name=one.name, files=one.files, of_files=one.of_files, size=format_size(one.size_bytes), of_size=format_size(one.of_bytes))
            for one in view.data
        )),
        *_forecast(report.forecast),
    ])  # fmt: skip
    for remark in [*(report.forecast.how if report.forecast else []), *report.remarks]:
        output.line(f"  · {_reason(remark)}")


def _reason(reason: "Reason | None") -> str:
    return "" if reason is None else say(f"reason.{reason.code}", **words(reason.params))


def _speed(steps_per_s: float | None, spread: list[float]) -> str:
    if steps_per_s is None or len(spread) != 3:
        return ""
    low, middle, high = (f"{one:.3g}" for one in spread)
    return say("cli.trial.speed", rate=f"{steps_per_s:.3g}", middle=middle, low=low, high=high)


def _card(used: int | None, of: int | None) -> str:
    if used is None:
        return ""
    return f"{format_size(used)} / {format_size(of)}" if of else format_size(used)


def _loss(trend: "LossTrend | None") -> str:
    if trend is None:
        return ""
    return f"{trend.key}: {output.number(trend.first)} → {output.number(trend.last)}  {word(f'trend.{trend.trend}', trend.trend)}"


def _forecast(found: "Forecast | None") -> list[tuple[str, str]]:
    if found is None:
        return []
    times = [format_duration(one) for one in (found.seconds, found.seconds_low, found.seconds_high)]
    hours = [f"{one:.3g}" for one in (found.card_hours, found.card_hours_low, found.card_hours_high)]
    rows = [
        (say("cli.word.forecast"), say("cli.trial.time", steps=found.steps, cards=found.cards, time=times[0], low=times[1], high=times[2])),
        (say("cli.word.card_hours"), say("cli.trial.range", value=hours[0], low=hours[1], high=hours[2])),
    ]  # fmt: skip
    if found.cost is not None and found.cost_low is not None and found.cost_high is not None:
        low, high = f"{found.cost_low:.2f}", f"{found.cost_high:.2f}"
        cost = say("cli.trial.range", value=f"{found.cost:.2f}", low=low, high=high)
        rows.append((say("cli.word.cost"), f"{cost} {found.currency}".rstrip()))
    return rows
