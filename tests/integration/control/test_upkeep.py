"""The store looks after itself: collecting on schedule, one server at a time, measuring, and the alarm with hours left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from control_world import World
from control_world import world as open_world

from trackbed.base.errors import BadInput
from trackbed.domain.scope import SYSTEM
from trackbed.server.flows import keep, upkeep
from trackbed.server.loops.upkeep import ACTOR, Upkeep
from trackbed.storage.chunks import ChunkStore
from trackbed.storage.open import open_chunks
from trackbed.tracking import keeping, runs_attempts
from trackbed.wire.attempts import CheckpointReport
from trackbed.wire.spec import CheckpointPolicy, Keep
from trackbed.wire.store import StoreSettings

GIB = 2**30
H = 3600.0


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[World]:
    """A world on the chunk store."""
    with open_world(tmp_path) as world:
        world.app.store = open_chunks(world.app.settings.store_url, bytes(range(32)))
        yield world


def kinds(world: World) -> list[str]:
    return [row.kind for row in world.app.db.events(0) if row.subject == "store"]


def room(world: World, free: int, total: int = 1000 * GIB) -> bool:
    return world.write(lambda tx: upkeep.note_room(tx, upkeep.Room(0, free, total)), ACTOR)


def folder(path: Path, text: str) -> Path:
    path.mkdir(parents=True)
    (path / "weights").write_text(text * 5000)
    return path


def test_growth_is_measured_over_the_window_where_it_is_faster_and_not_before_ten_minutes() -> None:
    us = upkeep.HOUR_US
    assert upkeep.growth_per_h([(0, 100), (us // 10, 90)], us // 10) is None
    assert upkeep.growth_per_h([(0, 100), (us, 90)], us) == pytest.approx(10)
    late = [(0, 1000), (5 * us, 995), (6 * us, 895)]
    assert upkeep.growth_per_h(late, 6 * us) == pytest.approx(100)
    assert upkeep.growth_per_h([(0, 90), (us, 100)], us) == pytest.approx(-10), "it shrinks"


def test_the_alarm_comes_with_the_hours_left_and_goes_when_there_is_room_again(world: World) -> None:
    assert not room(world, 500 * GIB)
    world.clock.advance(H)
    assert not room(world, 490 * GIB), "49 hours are left"
    world.clock.advance(H)
    assert room(world, 390 * GIB), "100 GiB in an hour: 3.9 hours are left"
    view = world.app.db.read(lambda tx: upkeep.view(world.app, tx))
    assert view.low and view.hours_left == pytest.approx(3.9, abs=0.1)
    (warning,) = world.app.db.read(lambda tx: upkeep.warnings(world.app, tx))
    assert (warning.code, warning.params["hours"]) == ("store_low", "3.9")
    world.clock.advance(7 * H)
    assert not room(world, 390 * GIB)
    assert kinds(world) == ["store.low", "store.low_over"]


def test_a_nearly_full_disk_is_low_however_slowly_it_grows(world: World) -> None:
    assert room(world, 40 * GIB)
    assert room(world, 60 * GIB), "not over before there is clearly more"
    assert not room(world, 80 * GIB)


def test_only_one_server_looks_after_the_store_until_its_lease_ends(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lead() -> bool:
        return world.write(lambda tx: upkeep.lead(tx, lasts_s=120), ACTOR)

    assert lead() and lead()
    monkeypatch.setattr(upkeep, "ME", "another")
    assert not lead()
    world.clock.advance(121)
    assert lead()
    monkeypatch.setattr(upkeep, "ME", "the first")
    assert not lead()


def test_settings_tell_every_wrong_field_and_each_change_is_on_record(world: World) -> None:
    with pytest.raises(BadInput) as wrong:
        world.write(
            lambda tx: upkeep.set_settings(tx, StoreSettings(gc_every_s=5, gc_grace_s=-1, low_water_h=-2)), ACTOR
        )
    assert [fault.field for fault in wrong.value.faults] == ["gc_grace_s", "low_water_h", "gc_every_s"]
    world.write(lambda tx: upkeep.set_settings(tx, StoreSettings(gc_every_s=0)), SYSTEM.actor)
    assert kinds(world) == ["store.settings_changed"]
    assert not world.app.db.read(upkeep.gc_due)


def test_the_store_is_collected_when_it_is_time_and_says_what_went(bed: World, tmp_path: Path) -> None:
    loop = Upkeep()
    store = bed.app.store
    assert isinstance(store, ChunkStore)
    digest = store.put_tree(folder(tmp_path / "a", "nobody names this ")).digest
    bed.write(lambda tx: upkeep.set_settings(tx, StoreSettings(gc_every_s=H, gc_grace_s=0)), ACTOR)
    loop.tick(bed.app)
    assert store.has_tree(digest), "not before its time"
    for _ in range(3):
        bed.clock.advance(H + 1)
        loop.tick(bed.app)
    assert not store.has_tree(digest) and not list(store.backend.list("packs/"))
    state = bed.app.db.read(upkeep.gc_state)
    assert state.report is not None and state.last_us == bed.clock.now_us() and state.next_us > state.last_us
    assert "store.collected" in kinds(bed)


def test_a_dry_run_tells_and_touches_nothing(bed: World, tmp_path: Path) -> None:
    loop = Upkeep()
    digest = bed.app.store.put_tree(folder(tmp_path / "a", "x")).digest
    bed.write(lambda tx: upkeep.set_settings(tx, StoreSettings(gc_every_s=H, gc_grace_s=0, gc_dry_run=True)), ACTOR)
    loop.tick(bed.app)
    for _ in range(3):
        bed.clock.advance(H + 1)
        loop.tick(bed.app)
    assert bed.app.store.has_tree(digest)
    state = bed.app.db.read(upkeep.gc_state)
    assert state.report is not None and state.report.dry_run and state.report.trees_marked == 1


def test_what_cannot_be_read_stops_the_collection_and_is_said_once(bed: World, tmp_path: Path) -> None:
    loop, store = Upkeep(), bed.app.store
    assert isinstance(store, ChunkStore)
    store.put_tree(folder(tmp_path / "a", "x"))
    (tree,) = store.backend.list("trees/")
    store.backend.put(tree.name, b"spoilt")
    bed.write(lambda tx: upkeep.set_settings(tx, StoreSettings(gc_every_s=H, gc_grace_s=0)), ACTOR)
    loop.tick(bed.app)
    for _ in range(2):
        bed.clock.advance(H + 1)
        loop.tick(bed.app)
    assert bed.app.db.read(upkeep.gc_state).failed == "storage_gc_refused"
    assert kinds(bed).count("store.gc_failed") == 1
    assert [one.code for one in bed.app.db.read(lambda tx: upkeep.warnings(bed.app, tx))][-1] == "store_gc_failed"


def test_checkpoints_that_are_not_kept_leave_the_store_within_minutes(bed: World, tmp_path: Path) -> None:
    loop, store = Upkeep(grace_s=0.0), bed.app.store
    assert isinstance(store, ChunkStore)
    run_id, attempt = bed.started(checkpoint=CheckpointPolicy(keep=Keep(last=1)))
    digests: list[str] = []
    for step in (1, 2, 3):
        made = folder(tmp_path / str(step), f"{step}{step * 7919}")
        digests.append(store.put_tree(made, owner=run_id).digest)
        report = CheckpointReport(epoch=1, name=f"s{step}", step=step, digest=digests[-1])
        bed.write(lambda tx, told=report: runs_attempts.record_checkpoint(tx, attempt, told), bed.actor_of(attempt))
        keep.prune(bed.app, run_id)
    before = sum(info.size for info in store.backend.list("packs/"))
    for _ in range(2):
        bed.clock.advance(1)
        loop.release_s = float("-inf")
        loop.tick(bed.app)
    assert [store.has_tree(digest) for digest in digests] == [False, False, True]
    assert sum(info.size for info in store.backend.list("packs/")) < before
    assert bed.app.db.read(keeping.waiting) == []
    assert kinds(bed)[-1] == "store.checkpoints_freed"
    store.get_tree(digests[-1], tmp_path / "out")
    assert (tmp_path / "out" / "weights").read_bytes() == (tmp_path / "3" / "weights").read_bytes()
