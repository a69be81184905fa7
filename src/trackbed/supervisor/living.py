"""From assignment to the end of the ranks: prepare, start, watch, obey.

The main thread starts and watches the ranks (they die with the thread that started them); the lease, the sender, the output,
checkpoints, vitals and the relay have threads of their own. None of them can end a rank but through `stopping`.
"""

import errno
import os
import time
from pathlib import Path

import msgspec

from trackbed.base.errors import TrackbedError
from trackbed.clusters.accelerators import by_kind
from trackbed.clusters.processes import boot_id
from trackbed.domain.states import Cause, OrderKind
from trackbed.formats.tree import show
from trackbed.sources.surroundings import around
from trackbed.supervisor import environment
from trackbed.supervisor.attempt import Attempt, now_us
from trackbed.supervisor.capture import Capture, readable
from trackbed.supervisor.ending import last_checkpoint, new_saver, report_end
from trackbed.supervisor.evidence import CAUSE_OF_ORDER, Judged, judge
from trackbed.supervisor.hang import HangWatch
from trackbed.supervisor.launch import Ground, askers, plan, variables_of
from trackbed.supervisor.prepare import Inputs, free_port
from trackbed.supervisor.ranks import Ranks, become_subreaper, signal_number
from trackbed.supervisor.relay import Relay, Upstream
from trackbed.supervisor.relay_files import Files
from trackbed.supervisor.relay_mlflow import Mlflow
from trackbed.supervisor.relay_told import Spooler
from trackbed.supervisor.saving import Ended
from trackbed.supervisor.vitals import EVERY_S, TRIAL_EVERY_S, Vitals, oom_kills, peak_rss_bytes
from trackbed.wire.attempts import InputsReport, Order
from trackbed.wire.surroundings import EnvironmentFound

_BEAT_S = 0.02  # how soon an end or an order is seen
_TOGETHER_S = 1.0  # after a rank failed, others may be failing of the same reason: their codes are evidence too
_END_OTHERS_S = 7.0  # then the rest is asked to leave, and ended after this


class OrderedToEnd(Exception):
    """The preparation was ended by an order."""


class Living:
    """The part of the story in which something runs. One use, in the main thread."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._given, self._facts, self._stopping = attempt.given, attempt.facts, attempt.stopping
        self._say = attempt.say
        self._silent_s: float | None = None  # how long nobody answered when we gave up
        self._hung: dict[str, object] = {}  # what was noted when it hung for as long as its spec allows
        self._killed = False  # some rank had to be: a file may be half written

    def run(self) -> None:
        """Live up to the exit report in the journal."""
        become_subreaper()
        self._facts.change(phase="starting", boot_id=boot_id())
        self._say(f"attempt {self._given.number} of {self._given.run_ref or self._given.run_id}: preparing")
        try:
            inputs = self._prepare()
        except OrderedToEnd:
            kind = self._stopping.kind or OrderKind.STOP
            judged = Judged(CAUSE_OF_ORDER[kind], {"order": kind.value, "before": "start"})
        except (TrackbedError, OSError) as fault:
            judged = _prepare_failed(fault)
        else:
            judged = self._run_ranks(inputs)
        report_end(self._attempt, judged)

    def _prepare(self) -> Inputs:
        preparation = self._attempt.preparation
        inputs = preparation.run(self._between)
        pack = preparation.pack()
        if preparation.fetches:
            told = InputsReport(epoch=self._given.epoch, node_rank=self._given.node_rank, inputs=preparation.fetches)
            self._attempt.sender.journal.add(told)
        self._settle_environment(pack)
        self._between()
        return inputs

    def _settle_environment(self, pack: Path | None) -> None:
        given = self._given
        settled = environment.settle(given.environment, pack, self._attempt.folder.root / "environment")
        self._given = msgspec.structs.replace(given, environment=settled.document)
        cards = [self._attempt.slot.card_kind] * len(self._attempt.slot.cards)
        surroundings = around(cards, variables_of(given, os.environ))
        self._attempt.tell_found(
            EnvironmentFound(surroundings=surroundings, python=settled.python, drift=list(settled.drift))
        )
        if settled.drift and given.environment_drift == "flag":
            self._say(f"the environment is not as it was pinned, and the site lets it run: {', '.join(settled.drift)}")
        else:
            environment.refuse(settled.drift)

    def _between(self) -> None:
        self._look_for_orders()
        if self._stopping.order is not None:
            raise OrderedToEnd

    # Ranks

    def _run_ranks(self, inputs: Inputs) -> Judged:
        attempt, folder, slot = self._attempt, self._attempt.folder, self._attempt.slot
        accelerator, oom_before = by_kind(slot.card_kind), oom_kills()
        spooler = Spooler(folder.spool, run=self._given.run_id, attempt=self._given.number)
        upstream = Upstream(self._given.server_url, self._given.token, attempt.sender.ship_now)
        mlflow = Mlflow(self._given, spooler, upstream.ask)
        files = Files(self._given.run_id, folder.output, folder.scratch, spooler, attempt.keep_blob)
        relay = Relay(upstream, mlflow, files)
        ranks: Ranks | None = None
        hang = HangWatch(
            folder.control, folder.checkpoints, self._given.hang,
            leaders=lambda: {} if ranks is None else {rank: ranks.states[rank].pid for rank in sorted(ranks.live)},
            tell=attempt.write_lines, note=attempt.note, idle=lambda: self._stopping.order is not None,
        )  # fmt: skip
        capture = Capture(hang.counting(attempt.write_lines))
        every_s = TRIAL_EVERY_S if self._given.trial_steps else EVERY_S
        vitals = Vitals(accelerator, slot.cards, attempt.write_metrics, every_s=every_s)
        saver = new_saver(attempt)
        ground = Ground(
            folder=folder, port=free_port(), relay_url=relay.url, relay_secret=relay.secret, data=inputs.data,
            from_=inputs.from_, visible=accelerator.env(slot.cards), inherited=dict(os.environ),
        )  # fmt: skip
        ranks = Ranks(folder.control, add_pipe=capture.add)
        for part in (relay, capture, saver):
            part.start()
        not_started = self._start(ranks, ground)
        vitals.start()
        hang.start()
        self._watch(ranks, hang)
        hang.stop()
        torn = self._killed or any(end.by_signal is not None and not end.ours for end in ranks.ends)
        left = ranks.kill()
        vitals.stop()
        capture.close()
        relay.close()
        ranks.close()
        judged = not_started or self._judge(ranks, capture, oom_kills() - oom_before)
        self._end_told(mlflow, spooler, judged)
        if left:
            judged.evidence["unkillable"] = left
        judged.evidence["peak_rss_bytes"] = peak_rss_bytes()
        self._facts.change(
            phase="saving", ranks=list(ranks.states.values()),
            ended_us=max((end.ended_us for end in ranks.ends), default=now_us()),
            end={"cause": judged.cause.value, "evidence": judged.evidence},
        )  # fmt: skip
        return last_checkpoint(attempt, saver, judged, Ended.TORN if torn else Ended.CLEAN)

    def _end_told(self, mlflow: Mlflow, spooler: Spooler, judged: Judged) -> None:
        try:
            mlflow.end_children(judged.cause)
        except TrackbedError as fault:  # a full disk must not end the run otherwise than it ended
            self._say(f"the ends of child runs were not noted: {fault}")
        spooler.close()

    def _start(self, ranks: Ranks, ground: Ground) -> Judged | None:
        """Start all ranks of the node, or none: then return why."""
        plans = plan(self._given, ground)
        self._facts.change(started_us=now_us())
        self._say(
            f"starting {len(plans)} rank{'' if len(plans) == 1 else 's'}: {' '.join(plans[0].argv) if plans else 'none on this node'}"
        )
        failed: Judged | None = None
        try:
            for item in plans:
                ranks.start(item, ground.folder.work)
        except (OSError, ValueError) as fault:  # no room for a process, or a command that no process can be given
            self._say(f"it could not be started: {fault}")
            self._kill(ranks)
            failed = _start_failed(fault)
        self._facts.change(phase="running", ranks=list(ranks.states.values()))
        return failed

    def _watch(self, ranks: Ranks, hang: HangWatch) -> None:
        """Return when every rank has ended."""
        number, limit_s = signal_number(self._given.on_preempt.signal), self._given.time_limit_s
        begun_s, failed_s = time.monotonic(), None
        while ranks.live:
            if ranks.poll():
                self._facts.change(ranks=list(ranks.states.values()))
                continue
            now_s = time.monotonic()
            self._look_for_orders()
            if limit_s is not None and now_s - begun_s >= limit_s and self._stopping.order is None:
                grace_s = self._given.on_preempt.grace_s
                self._obey(Order(id="local-limit", kind="limit", grace_s=grace_s, reason="time limit"))
            if hang.end.is_set() and self._stopping.order is None:
                self._hung = hang.evidence
                self._obey(Order(id="local-hung", kind="stop", grace_s=self._given.on_preempt.grace_s, reason="hung"))
            actions = self._stopping.tick(now_s, askers=askers(self._given, ranks.live), processes=ranks.live)
            for rank in actions.signal:
                ranks.signal(rank, number)
            if failed_s is None and any(not end.good and not end.ours for end in ranks.ends):
                failed_s = now_s
            elif failed_s is not None and self._stopping.order is None:
                self._end_others(ranks, now_s - failed_s)
            if actions.kill:
                self._say("the grace is over: ending what is left")
                self._kill(ranks)
            time.sleep(_BEAT_S)

    def _end_others(self, ranks: Ranks, since_s: float) -> None:
        """A rank failed: the others cannot go on without it. They get TERM, then KILL, within 10 s in all."""
        if since_s >= _TOGETHER_S + _END_OTHERS_S:
            self._kill(ranks)
        elif since_s >= _TOGETHER_S:
            for rank in ranks.live - ranks.told:
                ranks.signal(rank, signal_number("TERM"))

    def _kill(self, ranks: Ranks) -> None:
        self._killed = True
        ranks.kill()

    def _judge(self, ranks: Ranks, capture: Capture, oom: int) -> Judged:
        tails = {rank: readable(capture.tail(rank)) for rank in ranks.states}
        stopping = self._stopping
        judged = judge(ranks.ends, tails, order=stopping.kind, verdict_at=stopping.verdict_at, oom_kills=oom)
        if capture.dropped_lines:
            judged.evidence["log_lines_dropped"] = capture.dropped_lines
        if self._silent_s is not None and judged.cause is Cause.STOPPED:
            judged = Judged(Cause.NETWORK, judged.evidence | {"silent_s": round(self._silent_s)})
        if self._hung and judged.cause is Cause.STOPPED:
            judged = Judged(Cause.HUNG, judged.evidence | self._hung)
        return judged

    # Orders

    def _look_for_orders(self) -> None:
        order = self._attempt.lease.order
        if self._attempt.lease.superseded:
            if self._stopping.kind is not OrderKind.SUPERSEDED:
                self._say("another attempt owns the run: stopping, the spool is kept")
                self._obey(Order(id="superseded", kind="superseded", grace_s=5.0, reason="superseded"))
            return
        if order is not None and order.withdrawn:
            if self._stopping.order is not None and self._stopping.order.id == order.id and self._stopping.withdraw():
                self._say("the order was withdrawn: going on")
                self._facts.change(order="", phase="running")
            self._attempt.order_seen = order.id
        elif order is not None and order.id != self._attempt.order_seen:
            self._attempt.order_seen = order.id
            self._obey(order)
        self._mind_silence()

    def _mind_silence(self) -> None:
        """No contact ends ranks only where the spec fences strictly, before the lease ends, or after the orphan limit."""
        lease, silent_s = self._given.lease, self._attempt.lease.silent_s
        grace_s, limit_s = self._given.on_preempt.grace_s, lease.orphan_limit_s
        if lease.fencing == "strict":
            grace_s = min(grace_s, lease.lease_s / 3)
            limit_s = lease.lease_s - grace_s
        if self._stopping.order is None and silent_s >= limit_s:
            self._silent_s = silent_s
            self._say(f"no contact for {silent_s:.0f} s: stopping")
            self._obey(Order(id="local-silent", kind="stop", grace_s=grace_s, reason="no contact"))

    def _obey(self, order: Order) -> None:
        self._say(
            f"order: {order.kind}, {order.grace_s:.0f} s of grace" + (f" ({order.reason})" if order.reason else "")
        )
        self._stopping.begin(order, time.monotonic())
        phase = "saving" if self._facts.value.phase == "running" else self._facts.value.phase
        self._facts.change(order=order.kind, phase=phase)


def _prepare_failed(fault: TrackbedError | OSError) -> Judged:
    what = show(os.fsencode(str(fault)))
    code, params = "prepare_failed", {"what": what}
    if isinstance(fault, TrackbedError):
        code, params = fault.code, {name: show(os.fsencode(str(value))) for name, value in fault.params.items()}
    cause = Cause.ENVIRONMENT if code.startswith("environment_") else Cause.STORAGE
    return Judged(cause, {"code": code, "params": params, "message": what, "before": "start"})


def _start_failed(fault: OSError | ValueError) -> Judged:
    asked_wrong = isinstance(fault, ValueError) or fault.errno == errno.E2BIG  # else the node has no room for it
    what = show(os.fsencode(fault.strerror or str(fault) if isinstance(fault, OSError) else str(fault)))
    evidence = {"code": "start_failed", "params": {"what": what}, "message": what, "before": "start"}
    return Judged(Cause.USER_ERROR if asked_wrong else Cause.NODE, evidence)
