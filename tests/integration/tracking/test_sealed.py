"""Sealed points are read as if they had never moved: levels, zooms, replays, deltas, and a kill between any two steps."""

import math
import os
import shutil
import signal
import subprocess
import sys
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import func, select
from tracking_bed import Bed, Rank

from trackbed.base.errors import Conflict, Damaged
from trackbed.base.ids import FileDigest
from trackbed.domain.scope import SYSTEM
from trackbed.formats import spool
from trackbed.formats.spool import Metrics
from trackbed.server.app import App
from trackbed.server.loops import seal
from trackbed.server.main import open_app
from trackbed.server.settings import Settings
from trackbed.tracking import metrics, metrics_sealing
from trackbed.tracking.ingest_tables import frame
from trackbed.tracking.metrics_cells import Window
from trackbed.tracking.metrics_sealed import seals_of
from trackbed.tracking.metrics_series import Asked, series
from trackbed.tracking.metrics_view import Curves
from trackbed.wire.series import Series, SeriesReply


def curve_frame(rank: Rank, steps: np.ndarray[Any, Any], values: np.ndarray[Any, Any], *, key: str = "loss") -> bytes:
    columns = Metrics(
        [key], array("I", bytes(4 * len(steps))), array("q", steps.astype("<i8").tobytes()),
        array("q", (steps * 1_000_000).astype("<i8").tobytes()), array("d", values.astype("<f8").tobytes()),
    )  # fmt: skip
    return rank.frame(spool.METRICS, spool.encode_metrics(columns), len(steps))


def answer(
    bed: Bed, run: str, window: Window, *, keys: tuple[str, ...] = ("loss",), since: int | None = None
) -> SeriesReply:
    return series([Asked(bed.view(run), 0, since)], keys, window).reply()


def frames_left(bed: Bed, run: str) -> int:
    return bed.db.read(lambda tx: tx.scalar(select(func.count()).select_from(frame).where(frame.c.run_id == run)))


@pytest.fixture(scope="module")
def noise() -> np.ndarray[Any, Any]:
    values = np.random.default_rng(1).normal(size=300_000)
    values[123_456], values[200_000], values[250_000] = 99.0, -99.0, math.nan
    return values


def long_run(bed: Bed, values: np.ndarray[Any, Any]) -> str:
    run, rank = bed.run(), Rank()
    for start in range(0, len(values), 50_000):
        steps = np.arange(start, min(start + 50_000, len(values)))
        bed.send(run, curve_frame(rank, steps, values[steps]))
        if start == 100_000:
            bed.seal(run)
    bed.seal(run, most=100_000)
    bed.sweep(run)
    return run


def test_a_curve_drawn_from_levels_hides_nothing(bed: Bed, noise: np.ndarray[Any, Any]) -> None:
    run = long_run(bed, noise)
    window = Window(buckets=100)
    (curve,) = answer(bed, run, window).series
    assert curve.points == sum(curve.count) == 300_000 and sum(curve.non_finite) == 1
    finite = noise[np.isfinite(noise)]
    assert max(map(float, curve.max)) == 99.0 and min(map(float, curve.min)) == -99.0
    total = sum(mean * (count - odd) for mean, count, odd in zip(
        map(float, curve.mean), curve.count, curve.non_finite + [0] * 100, strict=False))  # fmt: skip
    assert total == pytest.approx(finite.sum(), rel=1e-9, abs=1e-6)
    kinds = {name[1] for name in bed.curves.reader._kept}
    assert "level" in kinds
    for x, last, count in zip(np.cumsum(curve.count) - 1, curve.last, curve.count, strict=True):
        assert count > 0 and (last == noise[x] or (last == "NaN" and math.isnan(noise[x])))


def test_a_zoom_reads_the_points_themselves_and_only_those_pages(bed: Bed, noise: np.ndarray[Any, Any]) -> None:
    run = long_run(bed, noise)
    bed.curves = Curves(bed.store)
    (curve,) = answer(bed, run, Window(low=123_400, high=123_499, buckets=200)).series
    assert not curve.bucketed and curve.last == noise[123_400:123_500].tolist()
    assert sum(1 for name in bed.curves.reader._kept if name[1] == "page") == 1
    (wall,) = answer(bed, run, Window(x="wall", low=123_400, high=123_499, buckets=200)).series
    assert wall.last == curve.last
    assert sum(1 for name in bed.curves.reader._kept if name[1] == "page") == 1


def test_a_replay_over_sealed_points_replaces_them_and_mends_the_summary(bed: Bed, noise: np.ndarray[Any, Any]) -> None:
    run = long_run(bed, noise)
    again = np.arange(123_000, 124_000)
    bed.send(run, curve_frame(Rank(attempt=2), again, np.full(1000, 0.5)))
    (info,) = bed.db.read(lambda tx: metrics.keys(tx, run)).keys
    counted = noise.copy()
    counted[again] = 0.5
    finite = counted[np.isfinite(counted)]
    assert (info.count, info.non_finite, info.max) == (300_000, 1, finite.max())
    assert info.argmax == int(np.nanargmax(counted)) and (info.min, info.argmin) == (-99.0, 200_000)
    for sealed in (False, True):
        if sealed:
            bed.seal(run)
            bed.merge(run)
            bed.sweep(run)
            assert frames_left(bed, run) == 0
        (curve,) = answer(bed, run, Window(buckets=100)).series
        assert sum(curve.count) == 300_000 and max(map(float, curve.max)) == finite.max()
        page = metrics.history(bed.view(run), "loss", limit=1_000_000)
        assert page.points.value.tobytes() == counted.tobytes()
        whole = metrics.history(bed.view(run), "loss", all_attempts=True, limit=1_000_000)
        assert len(whole.points) == 301_000 and whole.attempts.max() == 2


def test_an_object_is_kept_once_and_a_hole_never(bed: Bed) -> None:
    run, rank = bed.run(), Rank()
    bed.send(run, rank.points([("loss", step, step, 1.0) for step in range(10)]))
    loose = bed.db.read(lambda tx: metrics_sealing.take(tx, run, most=1000))
    one, other = metrics_sealing.build(run, loose), metrics_sealing.build(run, loose)
    bed.store.put_blobs([(FileDigest(one.digest), one.body)])
    bed.db.write(lambda tx: metrics_sealing.keep(tx, one), actor=SYSTEM.actor)
    with pytest.raises(Conflict):
        bed.db.write(lambda tx: metrics_sealing.keep(tx, other), actor=SYSTEM.actor)
    assert bed.db.read(metrics_sealing.unswept) == [run]
    bed.sweep(run)
    assert bed.db.read(metrics_sealing.unswept) == [] and frames_left(bed, run) == 0


def test_points_are_read_while_others_seal_and_merge_them(bed: Bed) -> None:
    run, rank = bed.run(), Rank()
    for start in range(0, 90, 10):
        bed.send(run, rank.points([("loss", step, step, float(step)) for step in range(start, start + 10)]))
        old = bed.view(run)
        bed.seal(run)
        if start == 50:
            bed.merge(run)
        bed.sweep(run)
        for view in (old, bed.view(run)):
            assert metrics.history(view, "loss").points.value.tolist() == [float(step) for step in range(start + 10)]
    small = metrics_sealing.small_ones(bed.db.read(lambda tx: seals_of(tx, run)))
    assert small == []  # four small objects are not worth one


def test_what_is_new_since_a_cursor_is_a_piece_and_a_replay_is_the_whole(bed: Bed) -> None:
    run, rank = bed.run(), Rank()
    bed.send(run, rank.points([("loss", step, step, float(step)) for step in range(10)]))
    first = answer(bed, run, Window())
    bed.send(run, rank.points([("loss", step, step, float(step)) for step in range(10, 15)]))
    second = answer(bed, run, Window(), since=int(first.cursors[run]))
    assert second.series[0].appended and second.series[0].last == [10.0, 11.0, 12.0, 13.0, 14.0]
    nothing = answer(bed, run, Window(), since=int(second.cursors[run]))
    assert nothing.series[0].appended and nothing.series[0].last == []
    bed.send(run, Rank(attempt=2).points([("loss", 12, 20, -1.0)]))
    third = answer(bed, run, Window(), since=int(second.cursors[run]))
    assert not third.series[0].appended and third.series[0].last == [*map(float, range(12)), -1.0, 13.0, 14.0]
    bed.seal(run)
    assert not answer(bed, run, Window(), since=int(second.cursors[run])).series[0].appended


def test_one_grid_serves_all_curves_of_an_answer(bed: Bed) -> None:
    runs = [bed.run(), bed.run()]
    for number, run in enumerate(runs):
        steps = np.arange(1000 * (number + 1))
        bed.send(run, curve_frame(Rank(), steps, steps + 0.0))
    reply = series([Asked(bed.view(run)) for run in runs], ["loss"], Window(buckets=100)).reply()
    assert reply.grid is not None and (reply.grid.start, reply.grid.buckets) == (0.0, 100)
    short, long = reply.series
    assert short.at == list(range(len(short.at))) and len(short.at) == 50 and long.at == list(range(100))
    for curve in (short, long):
        for at, x in zip(curve.at, curve.x, strict=True):
            assert -1e-6 <= x - reply.grid.start - at * reply.grid.width <= reply.grid.width + 1e-6


def test_any_metric_is_an_axis(bed: Bed) -> None:
    run, rank = bed.run(), Rank()
    points = [("tokens", step, step, 1000.0 * step) for step in range(5)]
    points += [("loss", step, step, float(-step)) for step in (1, 2, 3, 7)]
    bed.send(run, rank.points([*points, ("tokens", 9, 9, math.nan), ("loss", 9, 9, 1.0)]))
    (curve,) = answer(bed, run, Window(x="metrics.tokens")).series
    assert curve.x == [1000.0, 2000.0, 3000.0] and curve.last == [-1.0, -2.0, -3.0]
    (none,) = answer(bed, run, Window(x="metrics.nothing")).series
    assert none.x == []
    _same(answer(bed, run, Window(x="step", low=2, high=3)).series[0], [2.0, 3.0])


def _same(curve: Series, xs: list[float]) -> None:
    assert curve.x == xs


def test_a_spoiled_object_is_said_and_never_drawn(bed: Bed) -> None:
    run, rank = bed.run(), Rank()
    bed.send(run, rank.points([("loss", step, step, 1.0) for step in range(10)]))
    loose = bed.db.read(lambda tx: metrics_sealing.take(tx, run, most=1000))
    made = metrics_sealing.build(run, loose)
    junk = b"TBPOINT1" + bytes(len(made.body) - 8)
    digest, _ = bed.store.put_blob(junk)
    spoiled = replace(made, digest=str(digest))
    bed.db.write(lambda tx: metrics_sealing.keep(tx, spoiled), actor=SYSTEM.actor)
    with pytest.raises(Damaged) as said:
        metrics.history(bed.view(run), "loss")
    assert said.value.code == "points_damaged"


SEALER = """
import sys
from pathlib import Path
from trackbed.server.loops import seal
from trackbed.server.main import open_app
from trackbed.server.settings import Settings
from trackbed.tracking import metrics_sealing
metrics_sealing.LINGER_S = 0.0
metrics_sealing.REST_S, metrics_sealing.OBJECT_POINTS, metrics_sealing.SLICE_BYTES = 0.0, 400, 2000
app = open_app(Settings(home=Path(sys.argv[1])))
sealer = seal.Sealer()
sealer.tick(app)
sealer.tick(app)
app.db.close()
"""
LIMITS = {"REST_S": 0.0, "LINGER_S": 0.0, "OBJECT_POINTS": 400, "SLICE_BYTES": 2000}


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A home folder with a run that ended with 1,000 points in 20 frames, none sealed."""
    home = tmp_path_factory.mktemp("logged") / "home"
    app = open_app(Settings(home=home))
    try:
        bed = Bed(app.db, app.store)
        run, rank = bed.run(state="finished", ended_us=1), Rank()
        for start in range(0, 1000, 50):
            bed.send(run, rank.points([("loss", step, step, step / 7) for step in range(start, start + 50)]))
    finally:
        app.db.close()
    return home, run


@contextmanager
def opened(home: Path) -> Iterator[App]:
    app = open_app(Settings(home=home))
    try:
        yield app
    finally:
        app.db.close()


def read_all(app: App, run: str) -> None:
    page = metrics.history(app.db.read(lambda tx: app.curves.view(tx, run)), "loss", limit=10_000)
    assert page.points.step.tolist() == list(range(1000))
    assert page.points.value.tolist() == [step / 7 for step in range(1000)]


@pytest.mark.parametrize(
    "fault",
    ["seal.blob=kill", "seal.blob@2=kill", "seal.row=kill", "seal.row@2=kill", "seal.sweep=kill", "seal.swept=kill",
     "seal.swept@3=kill", "seal.row=EIO"],
)  # fmt: skip
def test_a_sealer_killed_between_any_two_steps_loses_and_doubles_nothing(
    tmp_path: Path, logged: tuple[Path, str], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, run = tmp_path / "home", logged[1]
    shutil.copytree(logged[0], home)
    env = {**os.environ, "TRACKBED_FAULT": fault, "PYTHONPATH": str(Path(metrics.__file__).parents[2])}
    died = subprocess.run(
        [sys.executable, "-c", SEALER, home], env=env, capture_output=True, text=True, timeout=150, check=False
    )
    assert died.returncode == (-signal.SIGKILL if fault.endswith("kill") else 1), died.stderr
    for name, value in LIMITS.items():
        monkeypatch.setattr(metrics_sealing, name, value)
    with opened(home) as app:
        read_all(app, run)
        sealer = seal.Sealer()
        sealer.tick(app)
        sealer.tick(app)  # what lingered goes
        read_all(app, run)
        assert [one.points for one in app.db.read(lambda tx: seals_of(tx, run))] == [400, 400]  # 200 are too few
        assert app.db.read(lambda tx: tx.scalar(select(func.count()).select_from(frame))) == 4
