"""The loop that looks at what runs say: what it finds is on the record at its next tick, told once, and survives a restart."""

import math
import random
from array import array
from typing import Any

import pytest
from sqlalchemy import delete

from trackbed.base.entropy import new_id
from trackbed.formats import spool
from trackbed.formats.spool import Header, Metrics
from trackbed.server.loops.notice import Notice
from trackbed.tracking import anomalies, runs
from trackbed.tracking.ingest import ingest, prepare
from trackbed.tracking.ingest_tables import frame
from trackbed.tracking.runs_views import view

S = 1_000_000


class Voice:
    """A rank that logs; its time is the world's."""

    def __init__(self, world: Any, run_id: str, *, rank: int = 0, attempt: int = 1) -> None:
        self.world, self.run_id, self.rank, self.attempt = world, run_id, rank, attempt
        self.client, self.seq = new_id("cli"), 0

    def log(self, step: int, **values: float) -> None:
        self.log_many([(step, values)])

    def log_many(self, steps: list[tuple[int, dict[str, float]]]) -> None:
        points = [(key, step, value) for step, values in steps for key, value in values.items()]
        keys = sorted({key for key, _, _ in points})
        now = self.world.clock.now_us()
        columns = Metrics(
            keys, array("I", [keys.index(key) for key, _, _ in points]), array("q", [step for _, step, _ in points]),
            array("q", [now] * len(points)), array("d", [value for _, _, value in points]),
        )  # fmt: skip
        self._send(spool.METRICS, spool.encode_metrics(columns))

    def define(self, key: str, **said: Any) -> None:
        self._send(spool.DEFINE, spool.encode_document({"key": key, **said}))

    def _send(self, kind: str, body: bytes) -> None:
        self.seq += 1
        head = Header(kind=kind, attempt=self.attempt, rank=self.rank, client=self.client, seq=self.seq, ts=1, n=1)
        prepared = prepare(spool.encode(head, body))
        self.world.write(lambda tx: ingest(tx, runs.get(tx, self.run_id), prepared), self.world.ann.actor)


def told(world: Any, run_id: str) -> list[tuple[str, str, str]]:
    events = world.app.db.events(0, limit=10_000, run_id=run_id)
    return [
        (event.kind, data["anomaly"], data["key"])
        for event in events
        if event.kind.startswith("run.anomaly")
        for data in [runs.from_json(event.data, {})]
    ]


def found(world: Any, run_id: str) -> Any:
    return world.app.db.read(lambda tx: anomalies.anomalies_of(tx, run_id))


def marks(world: Any, run_id: str) -> list[str]:
    return world.app.db.read(lambda tx: view(tx, runs.get(tx, run_id))).marks


def test_a_nan_is_on_the_record_at_the_next_tick_and_over_after_good_points(world: Any) -> None:
    run_id, _ = world.started()
    voice, notice = Voice(world, run_id), Notice()
    voice.log(1, loss=1.0, other=2.0)
    voice.log(2, loss=1.0, other=math.inf)
    notice.tick(world.app)
    assert told(world, run_id) == [("run.anomaly", "non_finite", "other")]
    (one,) = found(world, run_id).anomalies
    assert (one.first_step, one.value, one.open) == (2, "Infinity", True)
    assert marks(world, run_id) == ["non_finite"]
    for step in range(3, 30):
        voice.log(step, loss=1.0, other=2.0)
    notice.tick(world.app)
    assert told(world, run_id)[1:] == [("run.anomaly_over", "non_finite", "other")]
    assert marks(world, run_id) == []
    (one,) = found(world, run_id).anomalies
    assert not one.open


def test_thousands_of_metrics_that_break_at_once_are_a_few_entries(world: Any) -> None:
    run_id, _ = world.started()
    Voice(world, run_id).log(1, **{f"m{n}": math.nan for n in range(3000)})
    Notice().tick(world.app)
    entries = found(world, run_id).anomalies
    assert len(entries) == anomalies.MOST_BAD_KEYS + 1
    assert sum(one.count for one in entries) == 3000


def test_a_server_that_starts_again_goes_on_where_it_was(world: Any) -> None:
    run_id, _ = world.started()
    voice, chance = Voice(world, run_id), random.Random(2)
    curve = [2.0 + chance.gauss(0, 0.05) for _ in range(200)]
    for at in range(0, 200, 10):
        voice.log_many([(step, {"loss": curve[step] + (5.0 if step == 100 else 0.0)}) for step in range(at, at + 10)])
        Notice().tick(world.app)  # each a new process
        world.clock.advance(10.0)
    assert told(world, run_id) == [("run.anomaly", "spike", "loss"), ("run.anomaly_over", "spike", "loss")]
    assert [one.first_step for one in found(world, run_id).anomalies] == [100]


def test_the_definition_of_a_metric_says_how_it_is_watched(world: Any) -> None:
    run_id, _ = world.started()
    voice, chance = Voice(world, run_id), random.Random(2)
    voice.define("loss", watch=False)
    voice.define("kl", watch={"spike": 6})
    rows = [
        (n, {name: 2.0 + chance.gauss(0, 0.05) + (5.0 if n == 90 else 0) for name in ("loss", "kl", "x")})
        for n in range(100)
    ]
    voice.log_many(rows)
    Notice().tick(world.app)
    assert [(one.kind, one.key) for one in found(world, run_id).anomalies] == [("spike", "kl")]
    assert found(world, run_id).watched == ["kl"]


def test_a_run_that_makes_no_step_is_stalled_since_its_last_one_until_it_moves(world: Any) -> None:
    run_id, attempt = world.started()
    ranks, notice = [Voice(world, run_id, rank=rank) for rank in range(3)], Notice()
    for step in range(40):
        world.clock.advance(10.0)
        for rank, voice in enumerate(ranks):
            if not (rank == 1 and step == 39):
                voice.log(step, loss=1.0)
        world.renew(attempt)
        notice.tick(world.app)
    since = world.clock.now_us()
    for _ in range(12):
        world.clock.advance(10.0)
        world.renew(attempt)
        notice.tick(world.app)
    assert told(world, run_id) == [("run.anomaly", "stalled", "")]
    (one,) = found(world, run_id).anomalies
    assert (one.opened_us, one.last_step, one.waits_for) == (since, 39, "ranks 1")
    assert marks(world, run_id) == ["stalled"]
    ranks[0].log(40, loss=1.0)
    notice.tick(world.app)
    assert told(world, run_id)[1:] == [("run.anomaly_over", "stalled", "")]
    assert marks(world, run_id) == []


def test_a_stall_is_over_with_its_run_also_where_the_server_was_away(world: Any) -> None:
    run_id, attempt = world.started()
    voice, notice = Voice(world, run_id), Notice()
    for step in range(40):
        world.clock.advance(1.0)
        voice.log(step, loss=1.0)
        notice.tick(world.app)
    world.clock.advance(100.0)
    notice.tick(world.app)
    (one,) = found(world, run_id).anomalies
    assert one.waits_for == "contact"
    world.exit(attempt, "user_error", code=1)
    Notice().tick(world.app)
    assert marks(world, run_id) == []


def test_frames_that_come_after_the_end_are_looked_at_too(world: Any) -> None:
    run_id, attempt = world.started()
    world.exit(attempt, "done", code=0)
    notice = Notice()
    notice.tick(world.app)
    Voice(world, run_id).log(1, loss=math.nan)
    world.clock.advance(31.0)
    notice.tick(world.app)
    assert told(world, run_id) == [("run.anomaly", "non_finite", "loss")]


def test_a_slow_step_is_kept_with_its_split_and_the_rank_that_was_waited_for(world: Any) -> None:
    run_id, _ = world.started()
    ranks, notice = [Voice(world, run_id, rank=rank) for rank in range(2)], Notice()
    for step in range(60):
        world.clock.advance(1.0)
        for rank, voice in enumerate(ranks):
            slow = 8.0 if step == 50 else 0.0
            values = {"time/compute_s": 0.8 + slow * rank, "time/communication_s": 0.2 + slow * (1 - rank)}
            voice.log(step, **values, **{"time/step_s": 1.0 + slow})
        notice.tick(world.app)
    reply = world.app.db.read(lambda tx: anomalies.steps_of(tx, run_id))
    assert reply.slow_total == 1
    (slow,) = reply.slow
    assert (slow.step, slow.seconds, slow.median_s, slow.straggler) == (50, 9.0, 1.0, 1)
    assert slow.cause == "communication"
    assert reply.split["compute"] == pytest.approx(0.8)
    assert [one.rank for one in reply.ranks] == [0, 1]


def test_of_a_run_with_many_slow_steps_the_slowest_are_kept_and_all_are_counted(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anomalies, "MOST_SLOW", 5)
    run_id, _ = world.started()
    voice, notice = Voice(world, run_id), Notice()
    for step in range(200):
        world.clock.advance(1.0)
        voice.log(step, **{"time/step_s": 10.0 + step if step % 20 == 19 else 1.0})
    notice.tick(world.app)
    reply = world.app.db.read(lambda tx: anomalies.steps_of(tx, run_id))
    assert reply.slow_total == 9
    assert [one.step for one in reply.slow] == [119, 139, 159, 179, 199]


def test_frames_that_were_swept_away_unseen_do_not_hold_up_what_follows(world: Any) -> None:
    run_id, attempt = world.started()
    voice = Voice(world, run_id)
    voice.log(1, loss=math.nan)
    world.write(lambda tx: tx.execute(delete(frame).where(frame.c.run_id == run_id)), world.ann.actor)
    notice = Notice()
    notice.tick(world.app)
    assert world.app.db.read(lambda tx: anomalies.load(tx, run_id))[1].missed_frames in (0, 1)
    voice.log(2, loss=math.inf)
    world.exit(attempt, "done", code=0)
    notice.tick(world.app)
    pos, seen = world.app.db.read(lambda tx: anomalies.load(tx, run_id))
    assert (pos, seen.missed_frames) == (2, 1)
    assert [one.first_step for one in found(world, run_id).anomalies] == [2]


@pytest.mark.parametrize("values", [[math.inf, -math.inf, math.nan], [1e308, 1e308, 1e308, math.nan]])
def test_both_infinities_and_sums_too_large_are_looked_at_like_any_nan(world: Any, values: list[float]) -> None:
    run_id, _ = world.started()
    voice, loop = Voice(world, run_id), Notice()
    voice.log_many([(step, {"loss": value}) for step, value in enumerate(values)])
    loop.tick(world.app)
    assert ("run.anomaly", "non_finite", "loss") in told(world, run_id)


def test_a_run_that_cannot_be_looked_at_does_not_keep_the_others_from_it(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bad, _), (good, _) = world.started(), world.started()
    Voice(world, bad).log(1, broken=math.nan)
    Voice(world, good).log(1, loss=math.nan)
    look = anomalies.look

    def fails(seen: Any, batch: Any, now_us: int) -> Any:
        if any("broken" in columns.keys for _, _, columns in batch.frames):
            raise RuntimeError("no such point")
        return look(seen, batch, now_us)

    loop = Notice()
    monkeypatch.setattr(anomalies, "look", fails)
    loop.tick(world.app)
    assert told(world, good) == [("run.anomaly", "non_finite", "loss")]
    assert told(world, bad) == []
    monkeypatch.setattr(anomalies, "look", look)
    world.clock.advance(61)
    loop.tick(world.app)
    assert ("run.anomaly", "non_finite", "broken") in told(world, bad)
