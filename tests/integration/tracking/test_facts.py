"""Params, tags, summary, definitions, events: kept exactly, once, and judged one by one."""

import math
from typing import Any

from sqlalchemy import select
from tracking_bed import Bed, Rank

from trackbed.db.schema import event
from trackbed.domain.scope import SYSTEM
from trackbed.formats import spool
from trackbed.tracking import artifacts, facts, runs
from trackbed.tracking.ingest_tables import watermark
from trackbed.tracking.runs_views import run_view


def params(bed: Bed, run: str) -> dict[str, Any]:
    return bed.db.read(lambda tx: facts.params_of(tx, run))


def test_ten_thousand_params_and_one_of_64_kib_are_kept(bed: Bed) -> None:
    run, rank = bed.run(), Rank()
    many = {f"p{at}/损失": at / 7 for at in range(10_000)}
    large = {
        "text": "é" * 32_768,
        "nested": {"a": [1, None, {"b": "c"}]},
        "nan": math.nan,
        "inf": -math.inf,
        "zero": -0.0,
    }
    done = bed.send(run, rank.say(spool.PARAMS, many), rank.say(spool.PARAMS, large))
    assert done.receipt.rejected == []
    found = params(bed, run)
    assert {name: found[name] for name in many} == many
    assert found["text"] == large["text"] and found["nested"] == large["nested"]
    assert math.isnan(found["nan"]) and found["inf"] == -math.inf and str(found["zero"]) == "-0.0"


def test_a_param_does_not_change(bed: Bed) -> None:
    run, rank = bed.run(params={"lr": 0.1}), Rank()
    done = bed.send(run, rank.say(spool.PARAMS, {"lr": 0.2, "new": 1}), rank.say(spool.PARAMS, {"lr": 0.1, "new": 2}))
    assert [(one.item, one.code, one.params) for one in done.receipt.rejected] == [
        ("lr", "param_changed", {"stands": "0.1", "given": "0.2"}), ("new", "param_changed", {"stands": "1", "given": "2"}),
    ]  # fmt: skip
    assert params(bed, run) == {"lr": 0.1, "new": 1}


def test_tags_come_and_go_in_order(bed: Bed) -> None:
    run, rank = bed.run(tags='["old"]'), Rank()
    bed.send(
        run,
        rank.say(spool.TAGS, {"add": ["a", "基线"], "remove": ["old"]}),
        rank.say(spool.TAGS, {"add": ["b"], "remove": ["a"]}),
    )
    assert bed.db.read(lambda tx: run_view(runs.get(tx, run))).tags == ["基线", "b"]


def test_summary_and_definitions_keep_the_last_word(bed: Bed) -> None:
    run, rank = bed.run(), Rank()
    bed.send(run, rank.say(spool.SUMMARY, {"best": 2.0, "bad": math.nan}), rank.say(spool.SUMMARY, {"best": 1.0}))
    bed.send(run, rank.say(spool.DEFINE, {"key": "loss", "goal": "min", "unit": "nats"}))
    bed.send(run, rank.say(spool.DEFINE, {"key": "loss", "deterministic": True}))
    row = bed.db.read(lambda tx: runs.get(tx, run))
    assert runs.from_json(row.summary, {}) == {"best": 1.0, "bad": "NaN"}
    said = bed.db.read(lambda tx: facts.definitions(tx, run))
    assert said == {"loss": {"goal": "min", "unit": "nats", "deterministic": True}}


def test_progress_is_shown_and_an_older_word_is_dropped(bed: Bed) -> None:
    run, rank = bed.run(), Rank()
    late = rank.say(spool.EVENT, {"kind": "progress", "data": {"step": 1, "steps_total": 9, "seconds_left": 3}})
    bed.send(
        run, rank.say(spool.EVENT, {"kind": "progress", "data": {"step": 5, "steps_total": 9, "seconds_left": 1.5}})
    )
    other = Rank()
    other.client = "cli_other000000000000"
    bed.send(run, late)
    progress = bed.db.read(lambda tx: run_view(runs.get(tx, run))).progress
    assert progress is not None
    assert (progress.step, progress.steps_total, progress.seconds_left) == (5, 9, 1.5)


def test_other_events_are_in_the_journal(bed: Bed) -> None:
    run, rank = bed.run(), Rank()
    done = bed.send(
        run, rank.say(spool.EVENT, {"kind": "phase", "data": {"name": "warm-up"}}),
        rank.say(spool.EVENT, {"kind": "big", "data": {"x": "y" * 5000}}),
    )  # fmt: skip
    assert [one.code for one in done.receipt.rejected] == ["event_refused"]
    kinds = bed.db.read(
        lambda tx: [
            (row.kind, runs.from_json(row.data, {})) for row in tx.rows(select(event).where(event.c.run_id == run))
        ]
    )
    assert kinds == [("run.noted", {"what": "phase", "rank": 0, "data": {"name": "warm-up"}})]


def test_what_a_program_calls_a_file_goes_before_a_guess(bed: Bed) -> None:
    run, rank = bed.run(), Rank()
    bed.send(run, rank.say(spool.FILE, {"path": "out.bin", "kind": "sample"}))

    def report(tx: Any) -> None:
        row = runs.get(tx, run)
        files = [artifacts.Kept("out.bin", "other", 3, "0" * 64), artifacts.Kept("images/a.png", "", 3, "1" * 64)]
        artifacts.record(tx, row, 1, files)
        artifacts.record(tx, row, 2, files[:1])

    bed.db.write(report, actor=SYSTEM.actor)
    found = bed.db.read(lambda tx: artifacts.of_run(tx, run))
    assert [(view.path, view.kind, view.attempt) for view in found] == [
        ("images/a.png", "image", 1),
        ("out.bin", "sample", 2),
    ]


def test_broken_frames_are_counted_and_the_rest_is_kept(bed: Bed) -> None:
    run, rank = bed.run(), Rank()
    done = bed.send(
        run, rank.frame("metrics", b"\xc1"), rank.frame("weather", b"\x80"), b"damage",
        rank.say(spool.FILE, {"path": "../etc/passwd"}), rank.points([("loss", 1, 1, 1.0)]),
    )  # fmt: skip
    assert [one.code for one in done.receipt.rejected] == [
        "frame_body_broken", "frame_kind_unknown", "path_refused", "bytes_lost",
    ]  # fmt: skip
    assert (done.receipt.points, done.receipt.watermarks) == (1, {rank.client: 4})


def test_an_attempt_speaks_for_itself_and_its_run_only(bed: Bed) -> None:
    run, other = bed.run(), bed.run()
    done = bed.send(
        run, Rank(attempt=1, run=other).points([("loss", 1, 1, 1.0)]), Rank(attempt=7, run=run).points([("loss", 1, 1, 1.0)]),
        Rank(attempt=1, run=run).points([("loss", 2, 1, 1.0)]), attempt=1,
    )  # fmt: skip
    assert [one.code for one in done.receipt.rejected] == ["frame_of_another_run", "frame_of_another_attempt"]
    assert done.receipt.points == 1


def test_a_watermark_is_kept_per_run_so_that_nobody_burns_anothers_client(bed: Bed) -> None:
    mine, theirs = bed.run(), bed.run()
    honest, thief = Rank(), Rank()
    thief.client, thief.seq = honest.client, 10**9
    bed.send(theirs, thief.points([("loss", 1, 1, 1.0)]))
    assert bed.send(mine, honest.points([("loss", 1, 1, 1.0)])).receipt.points == 1
    assert bed.db.read(lambda tx: len(tx.rows(select(watermark)))) >= 2
