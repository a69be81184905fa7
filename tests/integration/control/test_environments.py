"""Environments of runs: packed once while runs are preparing, holding no cards; what cannot be packed ends them by name."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from trackbed.base.errors import BadInput, Conflict, Denied, NotFound
from trackbed.base.ids import Digest
from trackbed.domain.scope import Role, Scope
from trackbed.scheduling import holds
from trackbed.server.app import Settings
from trackbed.server.flows import environments
from trackbed.server.flows.collect import collect_store
from trackbed.server.flows.trees import tree_is_readable
from trackbed.server.loops.environments import Builder
from trackbed.sources import packs, packs_sql
from trackbed.sources.environment import digest_of, record_current
from trackbed.sources.locking import lock_of, record_of_lock, this_platform
from trackbed.sources.locks import Lock, parse, render
from trackbed.testing.wheels import wheel
from trackbed.tracking import runs
from trackbed.wire.environments import NameRequest
from trackbed.wire.runs import EnvironmentRecord
from trackbed.wire.store import CollectRequest
from trackbed.wire.surroundings import EnvironmentFound, Surroundings

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="packs are for Linux")
World = Any


@pytest.fixture(autouse=True)
def shelf(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An index of two tiny wheels, the only one there is."""
    folder = tmp_path / "wheels"
    wheel(folder, "tb-beta", "1.0", {"tb_beta.py": "x = 1\n"})
    wheel(folder, "tb-gamma", "1.0", {"tb_gamma.py": "x = 1\n"})
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    return folder


def locked(folder: Path, requirements: str = "tb-beta\n") -> Lock:
    path = folder / "requirements.txt"
    path.write_text(requirements)
    return lock_of(path)


def submit(world: World, lock: Lock, **spec: Any) -> str:
    return str(world.submit(environment="requirements.lock", installed=record_of_lock(lock), **spec).run_id)


def pack_of(world: World, lock: Lock) -> Any:
    return world.app.db.read(lambda tx: packs_sql.get(tx, lock.digest, this_platform()))


def test_one_build_serves_all_that_wait_and_they_hold_no_cards(world: World, tmp_path: Path) -> None:
    lock = locked(tmp_path)
    waiting = [submit(world, lock) for _ in range(3)]
    other = world.submit().run_id
    world.plan()
    assert [world.state(one) for one in waiting] == ["preparing"] * 3
    assert world.state(other) == "starting"
    assert runs.reason_of(world.run(waiting[0]).reason).code == "environment_building"
    assert len(world.app.db.read(holds.all_holds)) == 1
    builder = Builder()
    assert builder.tick(world.app)
    assert not builder.tick(world.app), "nothing is left to build"
    assert [world.state(one) for one in waiting] == ["queued"] * 3
    assert "run.queued" in world.kinds(waiting[2])
    assert submit_state(world, lock) == "queued", "who comes later finds it packed"
    row = pack_of(world, lock)
    assert row.state == "ready" and world.app.store.has_tree(Digest(row.tree_digest))
    world.plan()
    begun = next(attempt for attempt in map(world.newest, waiting) if attempt)
    told = world.engine.processes[begun].assignment
    assert told.pack == row.tree_digest
    assert told.environment["digest"] == lock.digest


def submit_state(world: World, lock: Lock) -> str:
    return str(world.state(submit(world, lock)))


def test_a_build_that_fails_ends_its_runs_with_the_cause_and_the_end_of_the_log(world: World, tmp_path: Path) -> None:
    lock = locked(tmp_path)
    wrong = parse(render(lock).replace(lock.packages[0].hashes[0], "sha256:" + "0" * 64))
    first, second = submit(world, wrong), submit(world, wrong)
    Builder().tick(world.app)
    for one in (first, second):
        row = world.run(one)
        why = runs.reason_of(row.reason)
        assert (row.state, row.cause, why.code) == ("failed", "environment", "environment_build_failed")
        assert "tb-beta==1.0" in why.params["what"]
        assert "Hash mismatch" in why.params["log"]
    row = pack_of(world, wrong)
    assert row.state == "failed" and "Hash mismatch" in row.log
    view = world.app.db.read(lambda tx: environments.show(tx, world.ann, wrong.digest))
    assert view.packs[0].reason.code == "environment_hash"
    assert view.packs[0].reason.params["computed"] == lock.packages[0].hashes[0]


def test_what_failed_is_built_again_on_retry_and_then_runs(world: World, tmp_path: Path, shelf: Path) -> None:
    lock = locked(tmp_path)
    kept = tmp_path / "kept"
    shutil.move(shelf, kept)
    shelf.mkdir()
    run = submit(world, lock)
    Builder().tick(world.app)
    assert world.run(run).cause == "environment"
    assert pack_of(world, lock).state == "failed"
    shutil.rmtree(shelf)
    shutil.move(kept, shelf)
    assert world.verb("retry", run).state == "preparing"
    Builder().tick(world.app)
    assert world.state(run) == "queued"


def test_a_preparing_run_can_be_stopped_and_the_build_goes_on_for_the_others(world: World, tmp_path: Path) -> None:
    lock = locked(tmp_path)
    first, second = submit(world, lock), submit(world, lock)
    world.verb("stop", first)
    Builder().tick(world.app)
    assert (world.state(first), world.state(second)) == ("stopped", "queued")


def test_a_build_that_a_dead_server_left_is_taken_over(world: World, tmp_path: Path) -> None:
    lock = locked(tmp_path)
    run = submit(world, lock)
    platforms = [this_platform()]
    world.write(lambda tx: packs_sql.claim(tx, "dead", platforms), world.ann.actor)
    assert not Builder().tick(world.app), "it may still be at work"
    world.clock.advance(packs_sql.STALE_US / 1e6 + 1)
    assert Builder().tick(world.app)
    assert world.state(run) == "queued"


def test_a_server_that_ends_puts_its_build_back(world: World, tmp_path: Path) -> None:
    lock = locked(tmp_path)
    run = submit(world, lock)
    world.app.stopping.set()
    Builder().tick(world.app)
    world.app.stopping.clear()
    assert (pack_of(world, lock).state, world.state(run)) == ("wanted", "preparing")
    Builder().tick(world.app)
    assert world.state(run) == "queued"


def test_a_lock_for_another_platform_or_python_is_refused_at_submit(world: World, tmp_path: Path) -> None:
    lock = locked(tmp_path)
    other = "linux-aarch64" if this_platform() == "linux-x86_64" else "linux-x86_64"
    for wrong, code in (
        (Lock(lock.python, (other,), lock.packages), "environment_platform"),
        (Lock("3.99", lock.platforms, lock.packages), "environment_interpreter"),
    ):
        with pytest.raises(BadInput) as refused:
            submit(world, wrong)
        assert code in {fault.code for fault in refused.value.faults}
    with pytest.raises(BadInput) as refused:
        submit(world, lock, run="", recipe="pretrain")
    assert "environment_without_trackbed" in {fault.code for fault in refused.value.faults}


def test_a_record_that_lies_about_its_lock_is_refused(world: World, tmp_path: Path) -> None:
    record = record_of_lock(locked(tmp_path))
    record.digest = "b3:" + "0" * 64
    with pytest.raises(BadInput) as refused:
        world.submit(environment="requirements.lock", installed=record)
    assert "sources_environment_digest" in {fault.code for fault in refused.value.faults}
    record.lock = "torch>=2\n"
    with pytest.raises(BadInput) as refused:
        world.submit(environment="requirements.lock", installed=record)
    assert "lock_not_pinned" in {fault.code for fault in refused.value.faults}


def test_an_image_is_refused_where_no_engine_runs_containers(world: World) -> None:
    image = EnvironmentRecord(kind="image", image="pytorch/pytorch@sha256:" + "a" * 64)
    image.digest = digest_of(image)
    with pytest.raises(BadInput) as refused:
        world.submit(environment=image.image, installed=image)
    assert "environment_image" in {fault.code for fault in refused.value.faults}


def test_a_site_may_allow_only_named_environments(world: World, tmp_path: Path) -> None:
    lock = locked(tmp_path)
    world.app.settings = Settings(home=world.app.home, environments="published")
    with pytest.raises(BadInput) as refused:
        submit(world, lock)
    assert "environment_unpublished" in {fault.code for fault in refused.value.faults}
    body = NameRequest(environment=record_of_lock(lock))
    reader = world.person("bob", Role.MEMBER)
    with pytest.raises(Denied):
        world.write(lambda tx: environments.name(tx, reader, "base", body), reader.actor)
    made = world.write(lambda tx: environments.name(tx, world.ann, "base", body), world.ann.actor)
    assert (made.version, made.digest) == (1, lock.digest)
    assert submit_state(world, lock) == "preparing"
    with pytest.raises(Conflict) as stale:
        late = NameRequest(environment=record_of_lock(lock), expected=0)
        world.write(lambda tx: environments.name(tx, world.ann, "base", late), world.ann.actor)
    assert stale.value.code == "environment_name_moved"


def test_a_pack_of_a_kept_run_or_name_stays_and_one_of_nobody_goes(world: World, tmp_path: Path) -> None:
    kept, named, lost = (locked(tmp_path, text) for text in ("tb-beta\n", "tb-gamma\n", "tb-beta\ntb-gamma\n"))
    submit(world, kept)
    world.write(
        lambda tx: environments.name(tx, world.ann, "base", NameRequest(environment=record_of_lock(named))),
        world.ann.actor,
    )
    for lock in (named, lost):
        world.write(lambda tx, lock=lock: save(tx, lock), world.ann.actor)
    builder = Builder()
    while builder.tick(world.app):
        pass
    trees = {lock.digest: pack_of(world, lock).tree_digest for lock in (kept, named, lost)}
    world.clock.advance(environments.KEEP_US / 1e6 + 1)
    with pytest.raises(Conflict):  # this store keeps everything; the rows are judged all the same
        collect_store(world.app, CollectRequest(dry_run=False))
    gone = world.write(environments.forget_unused, world.ann.actor)
    assert gone == [lost.digest]
    assert all(trees.values())
    assert pack_of(world, lost) is None
    assert (pack_of(world, kept).state, pack_of(world, named).state) == ("ready", "ready")


def save(tx: Any, lock: Lock) -> None:
    environments.save_environment(tx, record_of_lock(lock))
    packs_sql.want(tx, lock.digest, this_platform())


def test_the_log_of_a_build_can_be_read_while_it_goes_on(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = locked(tmp_path)
    submit(world, lock)
    seen: list[tuple[str, int]] = []
    monkeypatch.setattr("trackbed.server.loops.environments._BEAT_S", 0.0)

    def slow(*args: Any, log: Path, beat: Any, **more: Any) -> Any:
        log.write_text("halfway\n")
        beat()
        view = world.app.db.read(lambda tx: environments.show(tx, world.ann, lock.digest)).packs[0]
        seen.append((view.state + " " + view.log.strip(), view.waiting))
        return build(*args, log=log, beat=beat, **more)

    build = packs.build
    monkeypatch.setattr(packs, "build", slow)
    Builder().tick(world.app)
    assert seen == [("building halfway", 1)]


def test_what_a_supervisor_found_is_kept_once_and_compared(world: World) -> None:
    installed = record_current()
    pairs = [world.started(installed=installed) for _ in range(2)]
    for (_, attempt), driver in zip(pairs, ("550.1", "560.2"), strict=True):
        found = EnvironmentFound(
            surroundings=Surroundings(os="Debian", driver=driver, variables={"OMP_NUM_THREADS": "4"})
        )
        world.renew(attempt, environment=found)
        world.renew(attempt, environment=EnvironmentFound(surroundings=Surroundings(os="late"), drift=["late"]))
    refs = [runs.ref_of(world.run(run)) for run, _ in pairs]

    def read(tx: Any) -> Any:
        from trackbed.sources.compare import compare

        return compare(*(environments.facts(tx, world.ann, ref) for ref in refs))

    told = world.app.db.read(read)
    assert [(one.area, one.before, one.after) for one in told.differences] == [("driver", "550.1", "560.2")]
    assert told.unknown == []


def test_drift_that_a_site_flags_is_an_event_of_the_run(world: World) -> None:
    run, attempt = world.started(installed=record_current())
    drift = ["numpy: numpy/core.py  -> sha256=1"]
    world.renew(attempt, environment=EnvironmentFound(surroundings=Surroundings(os="x"), drift=drift))
    assert "attempt.environment_drift" in world.kinds(run)
    assert world.app.db.read(lambda tx: environments.facts(tx, world.ann, run)).drift == drift


def test_environments_behind_a_wall_are_not_shown(world: World, tmp_path: Path) -> None:
    lock = locked(tmp_path)
    submit(world, lock)
    stranger = world.person("eve", Role.VIEWER, space_id="spc_other")
    assert world.app.db.read(lambda tx: environments.list_all(tx, stranger)) == []
    with pytest.raises(NotFound):
        world.app.db.read(lambda tx: environments.show(tx, stranger, lock.digest))
    assert [one.digest for one in world.app.db.read(lambda tx: environments.list_all(tx, world.ann))] == [lock.digest]


def test_an_attempt_may_read_the_pack_of_its_own_run_and_no_other(world: World, tmp_path: Path) -> None:
    lock = locked(tmp_path)
    run = submit(world, lock)
    Builder().tick(world.app)
    world.plan()
    _, stranger = world.started()
    tree = Digest(pack_of(world, lock).tree_digest)
    reads = [
        world.app.db.read(lambda tx, one=one: tree_is_readable(tx, Scope(world.actor_of(one), {}), tree))
        for one in (world.newest(run), stranger)
    ]
    assert reads == [True, False]


def test_a_held_run_whose_pack_was_dropped_waits_for_it_again_when_it_is_released(world: World, tmp_path: Path) -> None:
    lock = locked(tmp_path)
    held = submit(world, lock)
    Builder().tick(world.app)
    world.verb("hold", held)
    world.write(lambda tx: tx.execute(packs_sql.pack.delete()), world.ann.actor)
    assert world.verb("release", held).state == "preparing"
    Builder().tick(world.app)
    assert world.state(held) == "queued"
