"""trial: a few real steps on one card first; the run that they are made for is held until they are done.

    submit(trial) ─► the run, held (trial_waits) + a run that tries it ─► it ends ─► report ─► good and then_queue: queue
                                                                                          └► else held: a person decides

The trial is a run like any other: placed, watched, stopped, logged. What it is given of the data is a tree of its own, made of
files of the whole one, so that a node fetches no more than that. That it has ended is seen by the schedule loop, whatever
ended it.
"""

import logging
import posixpath
from collections.abc import Sequence

import msgspec

from trackbed.access import next_run_number
from trackbed.base.ids import Digest
from trackbed.db import ReadTx, Tx
from trackbed.domain.events import Event
from trackbed.domain.scope import Actor
from trackbed.domain.states import TERMINAL, Cause, RunState
from trackbed.formats.tree import Entry, encode_listing, show
from trackbed.server.app import App
from trackbed.server.flows import stages
from trackbed.storage.store import Store
from trackbed.tracking import runs, runs_attempts
from trackbed.tracking.facts import definitions
from trackbed.tracking.metrics import history, key_names
from trackbed.tracking.metrics_view import View
from trackbed.wire.reason import Reason
from trackbed.wire.series import Point
from trackbed.wire.spec import DataPin, Spec
from trackbed.wire.trial import DataSlice, LossTrend, TrialReport, TrialRequest, TrialView
from trackbed.workflow import slice as slices
from trackbed.workflow import trials
from trackbed.workflow.trial import (
    STEP_KEY,
    Price,
    forecast,
    full_steps,
    most_cards,
    spread,
    step_seconds,
    trend_of,
    trial_spec,
)

log = logging.getLogger("trackbed.trial")
_MOST_POINTS = 20_000
_FULL = 0.95  # of a card's memory: near enough to its end to be said


# --- making ----------------------------------------------------------------------------------------------------------


def sliced(store: Store, data: dict[str, DataPin], most_bytes: int) -> tuple[dict[str, DataPin], list[DataSlice]]:
    """Return the pins of what the trial is given, and what that is of the whole. Reads and writes the store: not in a transaction."""
    pins: dict[str, DataPin] = {}
    said: list[DataSlice] = []
    for name, pin in sorted(data.items()):
        entries = store.read_listing(Digest(pin.digest))
        chosen = slices.choose(entries, most_bytes)
        kept = [*chosen.whole, *(_beginning(store, entry, size) for entry, size in chosen.cut)]
        told = DataSlice(
            name=name, files=_files(kept), of_files=_files(entries), size_bytes=_bytes(kept), of_bytes=_bytes(entries),
            cut=sorted(show(entry.path) for entry, _ in chosen.cut),
        )  # fmt: skip
        said.append(told)
        if told.size_bytes == told.of_bytes and told.files == told.of_files:
            pins[name] = pin
            continue
        digest = store.put_listing(encode_listing(kept))
        pins[name] = msgspec.structs.replace(pin, digest=digest, size_bytes=told.size_bytes, slice_of=pin.digest)
    return pins, said


def _beginning(store: Store, entry: Entry, size: int) -> Entry:
    assert entry.digest
    with store.open_range(entry.digest, 0, size) as reader:
        data = slices.whole_lines(reader.read())
    digest, length = store.put_blob(data)
    return Entry(path=entry.path, executable=entry.executable, size=length, digest=digest)


def _files(entries: Sequence[Entry]) -> int:
    return sum(one.kind == "f" for one in entries)


def _bytes(entries: Sequence[Entry]) -> int:
    return sum(one.size for one in entries)


def new_trial(
    tx: Tx, row: runs.RunRow, run_id: str, asked: TrialRequest, pins: dict[str, DataPin]
) -> runs.NewRun:  # fmt: skip
    """Return the run that tries another."""
    from_ = runs.spec_of(row)
    spec = msgspec.structs.replace(trial_spec(from_, asked), data=pins)
    return runs.NewRun(
        id=run_id, space_id=row.space_id, project_id=row.project_id, number=next_run_number(tx, row.project_id),
        owner_id=row.owner_id, owner=row.owner, spec=spec,
    )  # fmt: skip


def began(
    tx: Tx, rows: Sequence[runs.RunRow], made: runs.RunRow, asked: TrialRequest, said: Sequence[DataSlice]
) -> None:  # fmt: skip
    """Note for which runs a trial was made."""
    trials.record(tx, made.space_id, made.id, [row.id for row in rows], said, then_queue=asked.then_queue)
    for row in rows:
        data = {"trial": runs.ref_of(made), "steps": asked.steps}
        tx.emit(Event("trial.began", made.id, row.space_id, row.id, data=data))


# --- its end ---------------------------------------------------------------------------------------------------------


def settle(app: App, *, actor: Actor) -> int:
    """Look at trials that have ended; let the runs go that may, and say of the others what speaks against it."""
    done = 0
    for trial_id in app.db.read(_ended):
        try:
            report, reason = app.db.read(lambda tx, one=trial_id: _outcome(app, tx, one))
        except (
            Exception
        ):  # the pool goes on, and so does the trial: held with a word why, where it would else stop the queue
            log.exception("the points of trial %s could not be read", trial_id)
            report, reason = TrialReport(), app.db.read(lambda tx, one=trial_id: _unread(tx, one))
        done += app.db.write(lambda tx, one=trial_id: _settle(app, tx, one, report, reason), actor=actor)  # noqa: B023
    return done


def _ended(tx: ReadTx) -> list[str]:
    waiting = dict.fromkeys(row.trial_id for row in trials.unsettled(tx))
    return [trial_id for trial_id in waiting if RunState(runs.get(tx, trial_id).state) in TERMINAL]


def _outcome(app: App, tx: ReadTx, trial_id: str) -> tuple[TrialReport, Reason | None]:
    rows = trials.of_run(tx, trial_id)
    report = report_of(app, tx, runs.get(tx, trial_id), runs.spec_of(runs.get(tx, rows[0].run_id)))
    return report, _against(tx, trial_id, report)


def _unread(tx: ReadTx, trial_id: str) -> Reason:
    about = {"trial": trial_id, "run": trials.of_run(tx, trial_id)[0].run_id}
    return Reason(code="trial_unread", params={key: runs.ref_of(runs.get(tx, one)) for key, one in about.items()})


def _against(tx: ReadTx, trial_id: str, report: TrialReport) -> Reason | None:
    """What speaks against the full run; None where nothing does. A program that was still busy at the time limit is no fault."""
    row = runs.get(tx, trial_id)
    about = {"trial": runs.ref_of(row), "run": runs.ref_of(runs.get(tx, trials.of_run(tx, trial_id)[0].run_id))}
    if row.state == RunState.STOPPED.value:
        return Reason(code="trial_stopped", params=about)
    if row.state == RunState.FAILED.value and row.cause != Cause.LIMIT.value:
        return Reason(code="trial_failed", params={**about, "cause": row.cause})
    if report.loss is not None and report.loss.trend == "not_finite":
        return Reason(code="trial_loss", params={**about, "key": report.loss.key, "last": report.loss.last})
    return None


def _settle(app: App, tx: Tx, trial_id: str, report: TrialReport, reason: Reason | None) -> int:
    if not trials.settle(tx, trial_id, report, reason=reason):
        return 0
    tried = runs.get(tx, trial_id)
    for one in trials.of_run(tx, trial_id):
        row = runs.get(tx, one.run_id)
        data = {"trial": runs.ref_of(tried), "good": reason is None, "why": reason.code if reason else ""}
        tx.emit(Event("trial.ended", trial_id, row.space_id, row.id, data=data))
        if row.state != RunState.HELD.value or _held_for(row) != "trial_waits":
            continue
        if reason is None and one.then_queue:
            row = runs.to_queue(tx, row, "run.released", data={"trial": runs.ref_of(tried)})
            stages.go_on(app, tx, row)
            tx.after_commit(lambda: app.wake.set("schedule"))
            continue
        about = {"trial": runs.ref_of(tried), "run": runs.ref_of(row)}
        held = Reason(
            code=reason.code if reason else "trial_good", params={**(reason.params if reason else {}), **about}
        )
        runs.set_columns(tx, row, reason=runs.to_json(held))
    return 1


def _held_for(row: runs.RunRow) -> str:
    reason = runs.reason_of(row.reason)
    return reason.code if reason else ""


# --- what it tells ---------------------------------------------------------------------------------------------------


def view_of(app: App, tx: ReadTx, row: runs.RunRow) -> TrialView | None:
    """Return the trial that was made for a run, or that it is; while it runs, with what is known so far."""
    rows = trials.of_run(tx, row.id)
    if not rows:
        return None
    first, tried = rows[0], runs.get(tx, rows[0].trial_id)
    full = [runs.get(tx, one.run_id) for one in rows]
    state = "running" if tried.started_us else "waiting"
    reason = trials.reason_of(first)
    if first.settled:
        state = "good" if first.good else "dropped" if reason and reason.code == "trial_stopped" else "bad"
    spec = runs.spec_of(tried)
    return TrialView(
        trial_id=tried.id, trial_ref=runs.ref_of(tried), state=state, runs=[runs.ref_of(one) for one in full],
        run_ids=[one.id for one in full], steps=spec.trial.steps if spec.trial else 0, data=trials.slices_of(first),
        then_queue=bool(first.then_queue), reason=reason,
        report=trials.report_of(first) if first.settled else report_of(app, tx, tried, runs.spec_of(full[0])) if tried.started_us else None,
    )  # fmt: skip


def report_of(app: App, tx: ReadTx, tried: runs.RunRow, full: Spec) -> TrialReport:
    """Return what the points, checkpoints and attempts of a trial tell of the full run."""
    remarks: list[Reason] = []
    attempts = runs_attempts.of_run(tx, tried.id)
    keys = key_names(tx, tried.id)
    view = app.curves.view(tx, tried.id)
    points = _steps(view, keys)
    attempt = next(
        (one for one in attempts if points and one.number == points[0].attempt), attempts[-1] if attempts else None
    )
    report = TrialReport(steps=len({point.step for point in points}))
    if attempt is not None and attempt.started_us:
        report.seconds = ((attempt.ended_us or tx.now_us) - attempt.started_us) / 1e6
    _memory(app, view, report, keys, attempts)
    sizes = [point.size_bytes for point in runs_attempts.checkpoints(tx, tried.id)]
    report.checkpoint_bytes = max(sizes) if sizes else None
    report.loss = _loss(tx, view, keys)
    if report.checkpoint_bytes is None:
        remarks.append(Reason(code="trial_no_checkpoint"))
    if report.loss is None:
        remarks.append(Reason(code="trial_no_loss"))
    took = step_seconds([point.step for point in points], [point.time_us for point in points])
    if took and attempt is not None:
        report.startup_s = max(0.0, (points[0].time_us - attempt.started_us) / 1e6)
        report.step_seconds = spread(took)
        report.steps_per_s = 1 / max(report.step_seconds[1], 1e-9)
        _forecast(app, report, took, tried, full, attempt.stage, remarks)
    else:
        remarks.append(Reason(code="trial_no_steps"))
    report.remarks = remarks
    return report


def _forecast(
    app: App, report: TrialReport, took: list[float], tried: runs.RunRow, full: Spec, stage_name: str, remarks: list[Reason]
) -> None:  # fmt: skip
    said = runs.spec_of(tried).trial
    stage = next((one for one in full.stages if one.name == stage_name), None)
    params = {**full.params, **(stage.params if stage else {})}
    steps = full_steps(said.full_steps if said else 0, tried.steps_total, params)
    if not steps:
        remarks.append(Reason(code="trial_length_unknown"))
        return
    price = app.settings.card_hour_price
    report.forecast = forecast(
        took, steps=steps, cards=most_cards(full, stage), startup_s=report.startup_s or 0.0,
        price=Price(price, app.settings.currency) if price is not None else None,
    )  # fmt: skip
    if full.stages:
        report.forecast.how.append(Reason(code="trial_one_stage", params={"stage": stage_name}))


def _steps(view: View, keys: list[str]) -> list[Point]:
    """The ends of the steps, of the attempt with the most: the SDK's own points, else those of the metric logged most often."""
    own = [STEP_KEY] if STEP_KEY in keys else [key for key in keys if not key.startswith("system/")]
    best: list[Point] = []
    for key in own[:50]:
        by_attempt: dict[int, dict[int, Point]] = {}
        for point in _points(view, key, all_attempts=True):
            if point.rank == 0:
                by_attempt.setdefault(point.attempt, {})[point.step] = point
        for found in by_attempt.values():
            if len(found) > len(best):
                best = [found[step] for step in sorted(found)]
    return best


def _memory(
    app: App, view: View, report: TrialReport, keys: list[str], attempts: list[runs_attempts.AttemptRow]
) -> None:
    seen = [int(runs.from_json(one.evidence, {}).get("peak_rss_bytes") or 0) for one in attempts]
    seen += [int(value) for value in _values(view, "system/rss_bytes")]
    report.peak_rss_bytes = max(seen, default=0) or None
    cards = [key for key in keys if key.startswith("system/card") and key.endswith("_memory_bytes")]
    used = [value for key in cards for value in _values(view, key)]
    report.peak_card_bytes = int(max(used)) if used else None
    sizes: list[int] = []
    for one in attempts[-1:]:
        for place in runs.from_json(one.placement, []):
            node = next((node for node in app.engine.inventory() if node.name == place["node"]), None)
            sizes += [card.memory_bytes for card in node.cards if card.index in place["cards"]] if node else []
    report.card_bytes = max(sizes, default=0) or None
    if report.peak_card_bytes and report.card_bytes and report.peak_card_bytes >= _FULL * report.card_bytes:
        report.remarks.append(
            Reason(code="trial_card_full", params={"used": report.peak_card_bytes, "of": report.card_bytes})
        )


def _points(view: View, key: str, *, all_attempts: bool = False) -> list[Point]:
    return history(view, key, all_attempts=all_attempts, limit=_MOST_POINTS).reply().points


def _values(view: View, key: str) -> list[float]:
    return [float(point.value) for point in _points(view, key, all_attempts=True)]


def _loss(tx: ReadTx, view: View, keys: list[str]) -> LossTrend | None:
    """The curve of the metric that is called loss, else of one whose name ends so, else of one that shall be small."""
    wanted = [key for key in keys if key == "loss"] or [
        key for key in keys if posixpath.basename(key).lower().endswith("loss")
    ]
    wanted = wanted or [key for key, said in definitions(tx, view.run_id).items() if said.get("goal") == "min"]
    if not wanted:
        return None
    key = min(wanted, key=len)
    points = _points(view, key)
    return trend_of(key, [p.step for p in points], [float(p.value) for p in points])
