"""The end of an attempt, by a living supervisor or for a dead one: last checkpoint, outputs, exit report, all told."""

import os
import time
from pathlib import Path

from trackbed.base.errors import BadInput, NotYet, TrackbedError
from trackbed.domain.states import Cause
from trackbed.formats.tree import show
from trackbed.supervisor import outputs
from trackbed.supervisor.attempt import Attempt, now_us
from trackbed.supervisor.evidence import Judged
from trackbed.supervisor.saving import Ended, Saver, Watch, look
from trackbed.supervisor.spooled import Spooled, read_spool
from trackbed.wire.attempts import ExitReport

_GIVE_UP_SUPERSEDED_S = 30.0
_STORE_PATIENCE_S = 300.0


def new_saver(attempt: Attempt) -> Saver:
    """Return who watches the checkpoints folder; what was restored or reported before is known to it."""
    given, facts, folder = attempt.given, attempt.facts.value, attempt.folder.checkpoints
    resume = given.resume
    watch = Watch(
        folder,
        first_step=resume.step if resume is not None else 0,
        complete=dict(facts.complete),
        reported=dict(facts.reported),
    )
    restored = look(folder / resume.name) if resume is not None and not attempt.salvaged else None
    if resume is not None and restored is not None:
        watch.complete[resume.name] = watch.reported[resume.name] = restored.signature

    def changed() -> None:
        attempt.facts.change(complete=dict(watch.complete), reported=dict(watch.reported))

    changed()
    return Saver(
        given, watch, folder,
        store=lambda: attempt.preparation.store, report=attempt.sender.journal.add, changed=changed,
    )  # fmt: skip


def last_checkpoint(attempt: Attempt, saver: Saver, judged: Judged, ended: Ended) -> Judged:
    """Upload the newest complete checkpoint; a run that cannot keep it is not done."""
    try:
        code = saver.finish(ended, attempt.facts.value.ended_us)
    except Exception as fault:  # the exit must be reported, whatever a store does
        attempt.log.exception("the last checkpoint was not kept")
        code = _code(fault)
    return _unless_done(judged, "checkpoint_not_kept", code) if code else judged


def report_end(attempt: Attempt, judged: Judged) -> None:
    """Archive the outputs and write the last report."""
    spooled = Spooled()
    try:
        spooled = read_spool(attempt.folder.spool)
        judged = _archive(attempt, judged, spooled)
    except Exception as fault:  # the exit must be reported, whatever a program left there
        attempt.log.exception("the outputs were not kept")
        judged = _unless_done(judged, "outputs_not_kept", _code(fault))
    facts = attempt.facts.value
    attempt.say(f"ended: {judged.cause.value}")
    attempt.close_writers()
    attempt.sender.journal.add(
        ExitReport(
            epoch=attempt.given.epoch, cause=judged.cause.value, evidence=judged.evidence,
            ranks=[rank.report() for rank in facts.ranks], started_us=facts.started_us,
            ended_us=facts.ended_us or now_us(), stop_step=attempt.stopping.verdict_at,
            lost_to_step=spooled.last_step, salvaged=attempt.salvaged,
        )
    )  # fmt: skip
    attempt.facts.change(phase="ended")


def send_all(attempt: Attempt) -> int:
    """Wait until the last report is answered, or give up and leave the rest to a salvager. Returns the exit status."""
    sender, lease = attempt.sender, attempt.lease
    sender.finish()
    begun_s = time.monotonic()
    while not sender.done.wait(0.1):
        waited_s = time.monotonic() - begun_s
        if lease.superseded and waited_s > _GIVE_UP_SUPERSEDED_S:
            attempt.log.warning("superseded, and the server does not take the rest: it stays on this node")
            break
        if min(waited_s, lease.silent_s) > attempt.given.lease.orphan_limit_s:
            attempt.log.warning("no contact: the rest stays on this node for a salvager")
            break
        if not attempt.folder.reports.exists():
            attempt.log.warning("the attempt's folder was removed: there is nothing left to tell")
            break
    lease.stop()
    if not sender.done.is_set():
        sender.stop()
        return 1
    attempt.facts.change(finished=True)
    return 0


def _archive(attempt: Attempt, judged: Judged, spooled: Spooled) -> Judged:
    """Keep what lies in the output folder; a run whose outputs cannot be kept is not done."""
    folder, stage = attempt.folder, attempt.given.stage
    if folder.output.is_symlink() and not folder.output.resolve().is_relative_to(folder.root.resolve()):
        folder.output.unlink()  # a link that leads out is not kept, here as below
        judged = Judged(judged.cause, judged.evidence | {"outputs_left_out": ["."]})
    if not _anything(folder.output) and (stage is None or not stage.produces):
        return judged
    folder.make()  # what the program removed is empty
    deadline, pause_s = time.monotonic() + _STORE_PATIENCE_S, 0.5
    while True:
        try:
            report, left_out = outputs.archive(
                attempt.preparation.store, attempt.given, output=folder.output, work=folder.work,
                scratch=folder.scratch, kinds=spooled.kinds, products=judged.cause is Cause.DONE,
            )  # fmt: skip
        except outputs.Missing as fault:
            judged = Judged(Cause.USER_ERROR, judged.evidence | {"missing_products": fault.names})
            continue  # what is there is still kept
        except (TrackbedError, OSError) as fault:
            attempt.log.warning("the outputs cannot be kept yet: %s", fault)
            lasting = isinstance(fault, (BadInput, NotYet, PermissionError))  # another try would not mend it
            if lasting or time.monotonic() > deadline:
                return _unless_done(judged, "outputs_not_kept", _code(fault))
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, 20.0)
            continue
        attempt.sender.journal.add(report)
        return Judged(judged.cause, judged.evidence | {"outputs_left_out": left_out}) if left_out else judged


def _anything(output: Path) -> bool:
    """Whether something lies there; a program may have removed the folder, or put a file in its place."""
    return os.path.lexists(output) and not (output.is_dir() and not any(output.iterdir()))


def _code(fault: Exception) -> str:
    """What the record says of a fault: its code, or its text with broken bytes written out."""
    return fault.code if isinstance(fault, TrackbedError) else show(os.fsencode(str(fault) or type(fault).__name__))


def _unless_done(judged: Judged, what: str, code: str) -> Judged:
    cause = Cause.STORAGE if judged.cause is Cause.DONE else judged.cause
    return Judged(cause, judged.evidence | {what: code})
