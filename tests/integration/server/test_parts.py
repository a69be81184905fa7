"""Parts of the server on their own: pokes, streams, static files."""

import asyncio
import gzip
import threading
import time
from pathlib import Path

import pytest
from litestar.exceptions import NotFoundException

from trackbed.base.errors import BadInput, NotYet
from trackbed.server.settings import Settings, lease_times
from trackbed.server.static_files import StaticFiles
from trackbed.server.stream import QUEUE, Change, Publisher
from trackbed.server.wakes import Wakes


def test_a_poke_between_looking_and_sleeping_is_not_missed() -> None:
    wakes = Wakes()
    seen = wakes.count("schedule")
    wakes.set("schedule")
    began = time.monotonic()
    assert wakes.wait("schedule", seen, 5) == seen + 1
    assert asyncio.run(wakes.until("schedule", seen, 5)) == seen + 1
    assert time.monotonic() - began < 1


def test_a_poke_wakes_threads_and_coroutines_of_its_name_only() -> None:
    wakes = Wakes()
    woken: list[str] = []
    threads = [
        threading.Thread(target=lambda n=name: woken.append(n) if wakes.wait(n, 0, 0.3) else None)
        for name in ("a", "b")
    ]
    for thread in threads:
        thread.start()

    async def story() -> list[int]:
        sleepers = [asyncio.create_task(wakes.until(name, 0, 0.3)) for name in ("a", "a", "b")]
        await asyncio.sleep(0.05)
        await asyncio.to_thread(wakes.set, "a")
        return list(await asyncio.gather(*sleepers))

    assert asyncio.run(story()) == [1, 1, 0]
    for thread in threads:
        thread.join()
    assert woken == ["a"]


def test_long_polls_end_when_the_server_stops() -> None:
    wakes = Wakes()

    async def story() -> float:
        began = time.monotonic()
        sleeper = asyncio.create_task(wakes.until("a", 0, 10))
        await asyncio.sleep(0.02)
        wakes.close()
        await sleeper
        await wakes.until("b", 0, 10)
        return time.monotonic() - began

    assert asyncio.run(story()) < 1


def test_a_slow_client_is_dropped_and_others_are_not() -> None:
    async def story() -> tuple[int, bool, int]:
        publisher = Publisher()
        slow = publisher.subscribe(lambda change: True)
        fast = publisher.subscribe(lambda change: True)
        got = 0
        for n in range(QUEUE * 3):
            publisher.publish("runs", {"n": n})
            await asyncio.sleep(0)
            while not fast.changes.empty():
                got += fast.changes.get_nowait() is not None
        await asyncio.sleep(0.01)
        while not fast.changes.empty():
            got += fast.changes.get_nowait() is not None
        left = [slow.changes.get_nowait() for _ in range(slow.changes.qsize())]
        return got, slow.dropped and left[-1] is None, len(left)

    got, dropped, left = asyncio.run(story())
    assert got == QUEUE * 3
    assert dropped
    assert left <= QUEUE + 1


def test_publishing_reaches_only_those_who_want_it_and_never_fails() -> None:
    async def story() -> list[Change | None]:
        publisher = Publisher()
        mine = publisher.subscribe(lambda change: change.topic == "run:run_1")
        await asyncio.to_thread(publisher.publish, "run:run_1", {"kind": "progress", "step": 3})
        publisher.publish("run:run_2", {"kind": "progress"})
        await asyncio.sleep(0.01)
        publisher.close()
        await asyncio.sleep(0.01)
        publisher.publish("run:run_1", {})
        return [mine.changes.get_nowait() for _ in range(mine.changes.qsize())]

    first, end = asyncio.run(story())
    assert first is not None
    assert first.data == {"topic": "run:run_1", "kind": "progress", "step": 3}
    assert first.id == 0
    assert end is None


@pytest.fixture
def built(tmp_path: Path) -> StaticFiles:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html>page")
    (tmp_path / "assets" / "app-1a2b.js").write_text("let x = 1;" * 50)
    (tmp_path / "assets" / "face.woff2").write_bytes(b"font")
    (tmp_path / ".fingerprint").write_text("secret")
    (tmp_path / "outside").symlink_to("/etc/hostname")
    return StaticFiles(tmp_path)


def test_hashed_files_are_kept_for_ever_and_the_page_is_asked_for_again(built: StaticFiles) -> None:
    asset = built.find("/assets/app-1a2b.js", gzipped=True)
    assert asset.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert gzip.decompress(asset.content).startswith(b"let x")
    assert built.find("/assets/face.woff2", gzipped=True).content == b"font"
    for path in ("/", "", "/index.html", "/runs/run_1", "/p/demo%2317", "/models/gpt-2.5", "/datasets/a.b"):
        page = built.find(path, gzipped=False)
        assert page.content == b"<!doctype html>page"
        assert page.headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize(
    "path",
    ["/api", "/api/v1/x", "/assets/old.js", "/.fingerprint", "/../main.py", "/assets/../../main.py", "/outside.txt", "//etc/hosts.d/x.y", "/models/../main.py"],
)  # fmt: skip
def test_what_is_not_in_the_build_is_not_there(built: StaticFiles, path: str) -> None:
    with pytest.raises(NotFoundException):
        built.find(path, gzipped=False)


def test_links_and_hidden_files_of_the_build_are_not_served(built: StaticFiles) -> None:
    assert built.find("/outside", gzipped=False).content == b"<!doctype html>page"


def test_settings_are_loopback_only_and_lease_times_are_read_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(NotYet):
        Settings(host="0.0.0.0")
    monkeypatch.setenv("TRACKBED_LEASE_TIMES", "0.5,2,4,6,15")
    assert (Settings().lease.heartbeat_s, Settings().lease.grace_s) == (0.5, 15)
    monkeypatch.setenv("TRACKBED_LEASE_TIMES", "soon")
    with pytest.raises(BadInput):
        lease_times()
    monkeypatch.setenv("TRACKBED_LEASE_TIMES", "5,4,3,2")
    with pytest.raises(BadInput):
        lease_times()
