"""Lines by level: errors stay, debug output has its own age and limit, what goes is counted and told."""

from typing import Any

from trackbed.base.entropy import new_id
from trackbed.formats import spool
from trackbed.formats.spool import Header, Line
from trackbed.server.loops.logs import Logs
from trackbed.tracking import logs, logs_keep, runs
from trackbed.tracking.ingest import ingest, prepare
from trackbed.tracking.logs_keep import DAY_US, Keeping

LEVELS = ("debug", "info", "warning", "error")


def write(world: Any, run_id: str, lines: list[tuple[str, str]]) -> None:
    now = world.clock.now_us()
    body = spool.encode_lines(
        [Line(now + at, "stdout", level, text.encode()) for at, (level, text) in enumerate(lines)]
    )
    head = Header(kind=spool.LOG, attempt=1, client=new_id("cli"), seq=1, n=len(lines))
    prepared = prepare(spool.encode(head, body))
    world.write(lambda tx: ingest(tx, runs.get(tx, run_id), prepared), world.ann.actor)


def levels(world: Any, run_id: str) -> list[str]:
    page = world.app.db.read(lambda tx: logs.page(tx, run_id, logs.Wanted(limit=5000)))
    return [line.level for line in page.lines]


def trimmed(world: Any, run_id: str) -> dict[str, int]:
    return world.app.db.read(lambda tx: logs_keep.trimmed_of(tx, run_id))


def test_debug_goes_first_info_later_warnings_and_errors_stay(world: Any) -> None:
    run_id, attempt = world.started()
    write(world, run_id, [(level, level) for level in LEVELS])
    world.exit(attempt, "done", code=0)
    loop = Logs()
    loop.tick(world.app)
    assert levels(world, run_id) == list(LEVELS)
    world.clock.advance(15 * DAY_US / 1e6)
    loop.tick(world.app)
    loop.tick(world.app)
    assert levels(world, run_id) == ["info", "warning", "error"]
    assert trimmed(world, run_id) == {"debug": 1}
    world.clock.advance(390 * DAY_US / 1e6)
    loop.tick(world.app)
    assert levels(world, run_id) == ["warning", "error"]
    assert trimmed(world, run_id) == {"debug": 1, "info": 1}
    world.clock.advance(4000 * DAY_US / 1e6)
    loop.tick(world.app)
    assert levels(world, run_id) == ["warning", "error"]
    assert world.kinds(run_id).count("run.log_trimmed") == 2


def test_a_run_that_writes_much_debug_keeps_the_newest_and_every_other_line(world: Any) -> None:
    run_id, _ = world.started()
    write(world, run_id, [("error" if n == 3 else "debug", str(n)) for n in range(50)])
    loop = Logs(Keeping(debug_lines=10))
    loop.tick(world.app)
    page = world.app.db.read(lambda tx: logs.page(tx, run_id, logs.Wanted(limit=5000)))
    assert [line.text for line in page.lines] == ["3", *(str(n) for n in range(40, 50))]
    assert trimmed(world, run_id) == {"debug": 39}
    loop.tick(world.app)
    assert trimmed(world, run_id) == {"debug": 39}
