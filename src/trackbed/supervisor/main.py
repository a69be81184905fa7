"""The life of an attempt on this node, in order: prepare, start, watch, end, save, report.

The main thread starts and watches the ranks (they die with the thread that started them); the lease, the sender, the output,
checkpoints, vitals and the relay have threads of their own. None of them can end a rank but through `stopping`.
"""

import logging
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from trackbed.base.errors import TrackbedError
from trackbed.client.spool import Writer
from trackbed.clusters import NodeFolder
from trackbed.clusters.accelerators import by_kind
from trackbed.clusters.node_folder import AttemptFacts, SupervisorId, take
from trackbed.clusters.processes import boot_id, identify, kill_all, marked
from trackbed.domain.states import Cause, OrderKind
from trackbed.formats.spool import Line, Metrics
from trackbed.storage import open_store
from trackbed.supervisor import environment, outputs
from trackbed.supervisor.capture import Capture, readable
from trackbed.supervisor.evidence import CAUSE_OF_ORDER, Judged, judge
from trackbed.supervisor.launch import Ground, askers, plan
from trackbed.supervisor.lease import Lease, Server
from trackbed.supervisor.prepare import Inputs, Preparation, free_port
from trackbed.supervisor.ranks import Ranks, become_subreaper, signal_number
from trackbed.supervisor.relay import Relay
from trackbed.supervisor.saving import Ended, Saver, Watch, look
from trackbed.supervisor.sender import Sender
from trackbed.supervisor.spooled import Spooled, read_spool
from trackbed.supervisor.stopping import Stopping
from trackbed.supervisor.vitals import Vitals, oom_kills
from trackbed.wire.attempts import ExitReport, LeaseRequest, Order, OutputEntry, OutputsReport

_BEAT_S = 0.02  # of the main loop: how soon an end or an order is seen
_TOGETHER_S = 1.0  # after a rank failed, others may be failing of the same reason: their codes are evidence too
_END_OTHERS_S = 7.0  # then the rest is asked to leave, and ended after this
_GIVE_UP_SUPERSEDED_S = 30.0
_STORE_PATIENCE_S = 300.0


class OrderedToEnd(Exception):
    """The preparation was ended by an order."""


@dataclass
class End:
    judged: Judged
    ended: Ended


class Facts:
    """`state.json`, changed by several threads, whole on disk after each change."""

    def __init__(self, folder: NodeFolder, value: AttemptFacts) -> None:
        self._folder, self.value = folder, value
        self._lock = threading.Lock()

    def change(self, **fields: Any) -> None:
        with self._lock:
            self.value = msgspec.structs.replace(self.value, **fields)
            try:
                self._folder.write_state(self.value)
            except OSError as fault:  # a full disk must not end the run
                logging.getLogger("trackbed.supervisor").warning("state.json was not written: %s", fault)


class Supervisor:
    """One attempt on one node. `salvage` takes over from a dead one and starts nothing."""

    def __init__(self, root: Path, *, salvage: bool = False) -> None:
        self.folder = NodeFolder(root)
        self.given = self.folder.assignment()
        self.salvage = salvage
        self.log = logging.getLogger("trackbed.supervisor")
        self.facts = Facts(self.folder, self.folder.state() or AttemptFacts())
        self.preparation = Preparation(self.given, self.folder, open_store)
        self.stopping = Stopping(self.folder)
        self.writers: dict[int, Writer] = {}
        self._writers_lock = threading.Lock()
        self.sender = Sender(self.folder, Server(self.given), keep_file=self._keep_file)
        self.lease = Lease(Server(self.given), self._lease_request, heartbeat_s=self.given.lease.heartbeat_s)
        self._seen_order = ""
        self._orphaned_s: float | None = None

    # The whole story

    def run(self) -> int:
        """Live the attempt to its last report. Returns the exit status of the process."""
        self.folder.make()
        if self.facts.value.finished:
            return 0
        self.lease.start()
        self.sender.start()
        if self.salvage:
            self._salvage()
        else:
            become_subreaper()
            self._live()
        return self._send_all()

    def _live(self) -> None:
        self.facts.change(phase="starting", boot_id=boot_id())
        self.say(f"attempt {self.given.number} of {self.given.run_ref or self.given.run_id}: preparing")
        oom_before = oom_kills()
        try:
            inputs = self._prepare()
        except OrderedToEnd:
            kind = self.stopping.kind or OrderKind.STOP
            self._finish(End(Judged(CAUSE_OF_ORDER[kind], {"order": kind.value, "before": "start"}), Ended.CLEAN))
            return
        except (TrackbedError, OSError) as fault:
            self._finish(End(_prepare_failed(fault), Ended.CLEAN))
            return
        self._finish(self._run_ranks(inputs, oom_before))

    def _prepare(self) -> Inputs:
        inputs = self.preparation.run(self._between)
        if self.given.environment:
            environment.verify(self.given.environment)
        self._between()
        return inputs

    def _between(self) -> None:
        self._look_for_orders()
        if self.stopping.order is not None:
            raise OrderedToEnd

    # Ranks

    def _run_ranks(self, inputs: Inputs, oom_before: int) -> End:
        accelerator = by_kind(self._slot_kind())
        cards = self.given.nodes[self.given.node_rank].cards if self.given.nodes else []
        relay = Relay(self.given.server_url, self.given.token)
        capture = Capture(self._write_lines)
        ranks = Ranks(
            self.folder.control, add_pipe=lambda handle, rank, stream: capture.add(handle, rank=rank, stream=stream)
        )
        vitals = Vitals(accelerator, cards, self._write_metrics)
        saver = self._saver()
        ground = Ground(
            folder=self.folder, port=free_port(), relay_url=relay.url, relay_secret=relay.secret, data=inputs.data,
            from_=inputs.from_, visible=accelerator.env(cards), inherited=dict(os.environ),
        )  # fmt: skip
        plans = plan(self.given, ground)
        relay.start()
        capture.start()
        saver.start()
        self.facts.change(started_us=_now_us())
        self.say(f"starting {len(plans)} rank(s): {' '.join(plans[0].argv) if plans else 'none on this node'}")
        for item in plans:
            ranks.start(item, self.folder.work)
        self.facts.change(phase="running", ranks=list(ranks.states.values()))
        vitals.start()
        killed_by_us = self._watch(ranks)
        torn = killed_by_us or any(end.by_signal is not None and not end.ours for end in ranks.ends)
        left = ranks.kill()
        vitals.stop()
        capture.close()
        relay.close()
        ranks.close()
        ended_us = max((end.ended_us for end in ranks.ends), default=_now_us())
        tails = {rank: readable(capture.tail(rank)) for rank in ranks.states}
        judged = judge(
            ranks.ends, tails, order=self.stopping.kind, verdict_at=self.stopping.verdict_at,
            oom_kills=oom_kills() - oom_before,
        )  # fmt: skip
        if left:
            judged.evidence["unkillable"] = left
        if capture.dropped_lines:
            judged.evidence["log_lines_dropped"] = capture.dropped_lines
        if self._orphaned_s is not None:
            judged = Judged(Cause.NETWORK, judged.evidence | {"silent_s": round(self._orphaned_s)})
        self.facts.change(
            phase="saving", ranks=list(ranks.states.values()), ended_us=ended_us,
            end={"cause": judged.cause.value, "evidence": judged.evidence},
        )  # fmt: skip
        return self._saved(saver, End(judged, Ended.TORN if torn else Ended.CLEAN), ended_us)

    def _watch(self, ranks: Ranks) -> bool:
        """Return when every rank has ended; whether some had to be killed (so that a file may be half written)."""
        number = signal_number(self.given.on_preempt.signal)
        failed_s: float | None = None
        limit_s = self.given.time_limit_s
        begun_s = time.monotonic()
        killed = False
        while ranks.live:
            if ranks.poll():
                self.facts.change(ranks=list(ranks.states.values()))
                continue
            now_s = time.monotonic()
            self._look_for_orders()
            if limit_s is not None and now_s - begun_s >= limit_s and self.stopping.order is None:
                self._obey(
                    Order(id="local-limit", kind="limit", grace_s=self.given.on_preempt.grace_s, reason="time limit")
                )
            actions = self.stopping.tick(now_s, askers=askers(self.given, ranks.live), processes=ranks.live)
            for rank in actions.signal:
                ranks.signal(rank, number)
            if failed_s is None and any(not end.good and not end.ours for end in ranks.ends):
                failed_s = now_s
            elif failed_s is not None and self.stopping.order is None:
                killed |= self._end_others(ranks, now_s - failed_s)
            if actions.kill:
                killed = True
                self.say("the grace is over: ending what is left")
                ranks.kill()
            time.sleep(_BEAT_S)
        return killed

    def _end_others(self, ranks: Ranks, since_s: float) -> bool:
        """A rank failed: the others cannot go on without it. They get TERM, then KILL, within 10 s in all."""
        if since_s >= _TOGETHER_S + _END_OTHERS_S:
            ranks.kill()
            return True
        if since_s >= _TOGETHER_S:
            for rank in ranks.live - ranks.told:
                ranks.signal(rank, 15)
        return False

    # Orders

    def _look_for_orders(self) -> None:
        order, lease = self.lease.order, self.given.lease
        if self.lease.superseded:
            if self.stopping.kind is not OrderKind.SUPERSEDED:
                self.say("another attempt owns the run: stopping, the spool is kept")
                self._obey(Order(id="superseded", kind="superseded", grace_s=5.0, reason="superseded"))
            return
        if order is not None:
            if order.withdrawn:
                if self.stopping.order is not None and self.stopping.order.id == order.id and self.stopping.withdraw():
                    self.say("the order was withdrawn: going on")
                    self.facts.change(order="", phase="running")
                self._seen_order = order.id
            elif order.id != self._seen_order:
                self._seen_order = order.id
                self._obey(order)
        silent_s = self.lease.silent_s
        strict_s = lease.lease_s - min(self.given.on_preempt.grace_s, lease.lease_s / 3)
        if self.stopping.order is None and (
            silent_s >= lease.orphan_limit_s or (lease.fencing == "strict" and silent_s >= strict_s)
        ):
            self._orphaned_s = silent_s
            grace_s = lease.lease_s - strict_s if lease.fencing == "strict" else self.given.on_preempt.grace_s
            self.say(f"no contact for {silent_s:.0f} s: stopping")
            self._obey(Order(id="local-silent", kind="stop", grace_s=grace_s, reason="no contact"))

    def _obey(self, order: Order) -> None:
        self.say(
            f"order: {order.kind}, {order.grace_s:.0f} s of grace" + (f" ({order.reason})" if order.reason else "")
        )
        self.stopping.begin(order, time.monotonic())
        phase = "saving" if self.facts.value.phase == "running" else self.facts.value.phase
        self.facts.change(order=order.kind, phase=phase)

    # The end

    def _saver(self) -> Saver:
        first = self.given.resume.step if self.given.resume is not None else 0
        facts = self.facts.value
        watch = Watch(
            self.folder.checkpoints, first_step=first, complete=dict(facts.complete), reported=dict(facts.reported)
        )
        resume = self.given.resume
        seen = look(self.folder.checkpoints / resume.name) if resume is not None and not self.salvage else None
        if resume is not None and seen is not None:
            watch.complete[resume.name] = watch.reported[resume.name] = seen.signature

        def changed() -> None:
            self.facts.change(complete=dict(watch.complete), reported=dict(watch.reported))

        return Saver(
            self.given, watch, self.folder.checkpoints,
            store=lambda: self.preparation.store, report=self.sender.journal.add, changed=changed,
        )  # fmt: skip

    def _saved(self, saver: Saver, end: End, ended_us: int) -> End:
        try:
            code = saver.finish(end.ended, ended_us)
        except Exception as fault:  # the exit must be reported, whatever a store does
            self.log.exception("the last checkpoint was not kept")
            code = str(fault)
        if not code:
            return end
        evidence = end.judged.evidence | {"checkpoint_not_kept": code}
        cause = Cause.STORAGE if end.judged.cause is Cause.DONE else end.judged.cause
        return End(Judged(cause, evidence), end.ended)

    def _finish(self, end: End) -> None:
        """Archive the outputs and write the last report."""
        spooled = read_spool(self.folder.spool)
        judged = self._archive(end.judged, spooled)
        facts = self.facts.value
        self.say(f"ended: {judged.cause.value}")
        with self._writers_lock:
            for writer in self.writers.values():
                writer.close()
        self.sender.journal.add(
            ExitReport(
                epoch=self.given.epoch, cause=judged.cause.value, evidence=judged.evidence,
                ranks=[rank.report() for rank in facts.ranks], started_us=facts.started_us,
                ended_us=facts.ended_us or _now_us(), stop_step=self.stopping.verdict_at,
                lost_to_step=spooled.last_step, salvaged=self.salvage,
            )
        )  # fmt: skip
        self.facts.change(phase="ended")

    def _archive(self, judged: Judged, spooled: Spooled) -> Judged:
        """Keep what lies in the output folder; a run whose outputs cannot be kept is not done."""
        stage = self.given.stage
        if not any(self.folder.output.iterdir()) and (stage is None or not stage.produces):
            return judged
        deadline, pause_s = time.monotonic() + _STORE_PATIENCE_S, 0.5
        while True:
            try:
                report, left_out = outputs.archive(
                    self.preparation.store, self.given, output=self.folder.output, work=self.folder.work,
                    scratch=self.folder.scratch, kinds=spooled.kinds, products=judged.cause is Cause.DONE,
                )  # fmt: skip
            except outputs.Missing as fault:
                judged = Judged(Cause.USER_ERROR, judged.evidence | {"missing_products": fault.names})
                continue  # what is there is still kept
            except (TrackbedError, OSError) as fault:
                code = fault.code if isinstance(fault, TrackbedError) else str(fault)
                self.log.warning("the outputs cannot be kept yet: %s", fault)
                if time.monotonic() > deadline or code == "not_yet":
                    cause = Cause.STORAGE if judged.cause is Cause.DONE else judged.cause
                    return Judged(cause, judged.evidence | {"outputs_not_kept": code})
                time.sleep(pause_s)
                pause_s = min(pause_s * 2, 20.0)
                continue
            self.sender.journal.add(report)
            return Judged(judged.cause, judged.evidence | {"outputs_left_out": left_out}) if left_out else judged

    def _send_all(self) -> int:
        """Wait until the last report is answered, or give up and leave the rest to a salvager."""
        self.sender.finish()
        begun_s = time.monotonic()
        while not self.sender.done.wait(0.1):
            waited_s = time.monotonic() - begun_s
            if self.lease.superseded and waited_s > _GIVE_UP_SUPERSEDED_S:
                self.log.warning("superseded, and the server does not take the rest: it stays in %s", self.folder.root)
                break
            if min(waited_s, self.lease.silent_s) > self.given.lease.orphan_limit_s:
                self.log.warning("no contact: the rest stays in %s for a salvager", self.folder.root)
                break
        self.lease.stop()
        if not self.sender.done.is_set():
            self.sender.stop()
            return 1
        self.facts.change(finished=True)
        return 0

    # For a dead supervisor

    def _salvage(self) -> None:
        """End what is left, keep what is complete, and report; what was decided before stays decided."""
        facts = self.facts.value
        left = kill_all(lambda: marked(self.folder.control), timeout_s=10.0)
        if self.sender.journal.has_exit():
            return
        ended_us = facts.ended_us or _newest_us(self.folder)
        if facts.end:
            judged = Judged(Cause(facts.end["cause"]), dict(facts.end["evidence"]))
        else:
            same_boot = facts.boot_id in ("", boot_id())
            judged = Judged(
                Cause.LOST if same_boot else Cause.NODE,
                {"supervisor": "gone", "same_boot": same_boot, "ranks": [_remembered(rank) for rank in facts.ranks]},
            )
        if left:
            judged.evidence["unkillable"] = left
        ranks = [msgspec.structs.replace(rank, state="exited") for rank in facts.ranks]
        self.facts.change(ranks=ranks, ended_us=ended_us, phase="saving")
        self._finish(self._saved(self._saver(), End(judged, Ended.TORN), ended_us))

    # Threads' small needs

    def _keep_file(self, path: str, kind: str) -> None:
        """Archive a file that the program saved on the way (called by the sender before it ships that news)."""
        place = self.folder.output / path
        if not place.is_file() or not place.resolve().is_relative_to(self.folder.output.resolve()):
            return
        digest, size = self.preparation.store.put_blob(place)
        entry = OutputEntry(path=path, size_bytes=size, file_digest=digest, kind=kind or "other")
        self.sender.journal.add(OutputsReport(epoch=self.given.epoch, entries=[entry], partial=True))

    def say(self, text: str) -> None:
        """A line of ours, in our log and in the run's (stream `trackbed`)."""
        self.log.info("%s", text)
        self._write_lines(self.given.node_rank, [Line(_now_us(), "trackbed", "info", text.encode())])

    def _writer(self, rank: int) -> Writer:
        with self._writers_lock:
            if rank not in self.writers:
                number = sum(1 for _ in self.folder.spool.glob(f"supervisor-{rank}-*.tbs"))
                self.writers[rank] = Writer(
                    self.folder.spool / f"supervisor-{rank}-{number}.tbs",
                    run=self.given.run_id, attempt=self.given.number, rank=rank,
                )  # fmt: skip
            return self.writers[rank]

    def _write_lines(self, rank: int, lines: list[Line]) -> None:
        self._writer(rank).lines(lines)

    def _write_metrics(self, points: Metrics) -> None:
        self._writer(self.given.node_rank).metrics(points)

    def _slot_kind(self) -> str:
        return self.given.nodes[self.given.node_rank].card_kind if self.given.nodes else "cpu"

    def _lease_request(self) -> LeaseRequest:
        facts = self.facts.value
        slots = self.given.nodes
        phase = facts.phase if facts.phase in ("starting", "running", "saving", "ended") else "running"
        return LeaseRequest(
            epoch=self.given.epoch, node=slots[self.given.node_rank].node if slots else "local",
            node_rank=self.given.node_rank, boot_id=boot_id(), phase=phase,  # type: ignore[arg-type]
            ranks=[rank.report() for rank in facts.ranks], backlog_bytes=self.sender.backlog_bytes,
            order_seen=self._seen_order,
        )  # fmt: skip


def _prepare_failed(fault: TrackbedError | OSError) -> Judged:
    code = fault.code if isinstance(fault, TrackbedError) else "prepare_failed"
    params = {k: str(v) for k, v in fault.params.items()} if isinstance(fault, TrackbedError) else {"what": str(fault)}
    cause = Cause.ENVIRONMENT if code.startswith("environment_") else Cause.STORAGE
    return Judged(cause, {"code": code, "params": params, "message": str(fault), "before": "start"})


def _remembered(rank: Any) -> dict[str, Any]:
    return {"rank": rank.rank, "state": rank.state, "exit_code": rank.exit_code, "signal": rank.signal}


def _newest_us(folder: NodeFolder) -> int:
    """The last sign of life: the youngest file that the attempt wrote."""
    paths = [*folder.spool.glob("*.tbs"), folder.root / "state.json"]
    return max((path.stat().st_mtime_ns // 1000 for path in paths if path.exists()), default=_now_us())


def _now_us() -> int:
    return time.time_ns() // 1000


def main(argv: list[str]) -> int:
    """Run the supervisor (or salvager) of a folder; returns 3 when another one works on it."""
    root = Path(argv[0])
    salvage = "--salvage" in argv[1:]
    lock = take(root / "supervisor.lock")
    if lock is None:
        logging.getLogger("trackbed.supervisor").error("another supervisor works on %s", root)
        return 3
    who = identify(os.getpid())
    folder = NodeFolder(root)
    folder.write_supervisor(
        SupervisorId(pid=who.pid, pid_start=who.start, boot_id=boot_id(), started_us=_now_us(), salvager=salvage)
    )
    return Supervisor(root, salvage=salvage).run()
