"""Pulling over real HTTP: a kill in the middle, a line that breaks, a part only, a limit on the rate."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from trackbed.base.errors import Conflict, Damaged, NotFound
from trackbed.client.config import Login
from trackbed.client.connection import Connection
from trackbed.client.pull import pull
from trackbed.formats.tree import decode_listing
from trackbed.storage.scan import scan

_PULL = """
import sys
from pathlib import Path
from trackbed.client.config import Login
from trackbed.client.connection import Connection
from trackbed.client.pull import pull
pull(Connection(Login(sys.argv[1], "t")), sys.argv[2], Path(sys.argv[3]), bytes_per_s=4e6)
"""


class Origin:
    """A server of one tree that counts what it sends, and may hang up after so many bytes."""

    def __init__(self, folder: Path) -> None:
        found = scan(folder)
        self.digest, self.listing, self.folder = found.info.digest, found.listing, folder
        self.files = {entry.path: entry for entry in decode_listing(found.listing)}
        self.sent = 0
        self.asked: list[str] = []
        self.hang_up_after: list[int] = []
        self.spoil = b""
        origin = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None: ...

            def do_GET(self) -> None:
                url = urlsplit(self.path)
                if url.path.endswith("/listing"):
                    self.answer(origin.listing, 200)
                    return
                path = parse_qs(url.query)["path"][0]
                data = (origin.folder / path).read_bytes()
                start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
                origin.asked.append(f"{path}:{start}")
                self.answer(data[start:], 206 if start else 200)

            def answer(self, data: bytes, status: int) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                data = (
                    data[: -len(origin.spoil)] + origin.spoil
                    if origin.spoil and status == 200 and data != origin.listing
                    else data
                )
                cut = origin.hang_up_after.pop(0) if origin.hang_up_after and data != origin.listing else len(data)
                for at in range(0, min(cut, len(data)), 1 << 16):
                    piece = data[at : min(at + (1 << 16), cut)]
                    try:
                        self.wfile.write(piece)
                    except OSError:
                        self.close_connection = True
                        return
                    origin.sent += len(piece)
                if cut < len(data):
                    self.close_connection = True

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def origin(tmp_path: Path) -> Iterator[Origin]:
    folder = tmp_path / "in"
    (folder / "deep" / "empty").mkdir(parents=True)
    dice = random.Random(1)
    for number in range(8):
        (folder / f"part-{number}").write_bytes(dice.randbytes(1_500_000))
    (folder / "deep" / "run.sh").write_text("#!/bin/sh\n")
    (folder / "deep" / "run.sh").chmod(0o755)
    (folder / "deep" / "link").symlink_to("run.sh")
    made = Origin(folder)
    yield made
    made.close()


@pytest.fixture
def connection(origin: Origin) -> Connection:
    return Connection(Login(origin.url, "t"))


def equal(one: Path, other: Path) -> bool:
    return scan(one).info.digest == scan(other).info.digest


def test_a_pull_killed_in_the_middle_goes_on_and_fetches_only_the_rest(
    origin: Origin, connection: Connection, tmp_path: Path
):
    target = tmp_path / "out"
    process = subprocess.Popen([sys.executable, "-c", _PULL, origin.url, origin.digest, str(target)])
    aside = tmp_path / f".out.{origin.digest[3:19]}.pull"
    deadline = time.monotonic() + 60

    def come() -> int:
        return sum(path.stat().st_size for path in aside.glob("part-*"))

    while come() < 4_000_000:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    left = come()
    assert not target.exists() and 4_000_000 <= left < 12_000_000
    origin.sent, origin.asked = 0, []
    seen: list[int] = []
    pull(connection, origin.digest, target, on_progress=lambda done, _: seen.append(done))
    total = 8 * 1_500_000
    assert origin.sent <= total - left + len(origin.listing) + 1_000 and len(origin.asked) < 9
    assert equal(target, origin.folder) and not aside.exists()
    assert seen == sorted(seen) and seen[-1] == total + 10
    assert os.access(target / "deep" / "run.sh", os.X_OK)


def test_a_line_that_breaks_is_taken_up_where_it_broke(origin: Origin, connection: Connection, tmp_path: Path):
    origin.hang_up_after = [700_000, 100_000]
    pull(connection, origin.digest, tmp_path / "out")
    assert equal(tmp_path / "out", origin.folder)
    assert any(not one.endswith(":0") for one in origin.asked)
    assert origin.sent <= 8 * 1_500_000 + 10 + len(origin.listing) + 500_000


def test_what_was_spoilt_meanwhile_is_fetched_again(origin: Origin, connection: Connection, tmp_path: Path):
    aside = tmp_path / f".out.{origin.digest[3:19]}.pull"
    aside.mkdir()
    (aside / "part-0").write_bytes(bytes(1_500_000))
    (aside / "part-1").write_bytes(bytes(1000))
    (aside / "stray").write_bytes(b"x")
    pull(connection, origin.digest, tmp_path / "out")
    assert equal(tmp_path / "out", origin.folder)


def test_only_the_paths_that_are_asked_for_come(origin: Origin, connection: Connection, tmp_path: Path):
    written = pull(connection, origin.digest, tmp_path / "out", paths=["part-3", "deep/"])
    assert sorted(path.name for path in (tmp_path / "out").rglob("*")) == ["deep", "empty", "link", "part-3", "run.sh"]
    assert [entry.path for entry in written if entry.kind == "f"] == [b"deep/run.sh", b"part-3"]
    assert origin.sent < 1_600_000
    with pytest.raises(NotFound) as unknown:
        pull(connection, origin.digest, tmp_path / "other", paths=["part-3", "part"])
    assert unknown.value.params["path"] == "part" and not (tmp_path / "other").exists()


def test_bytes_that_are_not_the_file_leave_nothing(origin: Origin, connection: Connection, tmp_path: Path):
    origin.spoil = b"spoilt"
    with pytest.raises(Damaged):
        pull(connection, origin.digest, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_folder_with_something_in_it_is_left_alone(origin: Origin, connection: Connection, tmp_path: Path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("x")
    with pytest.raises(Conflict):
        pull(connection, origin.digest, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]


def test_a_limit_is_kept(origin: Origin, connection: Connection, tmp_path: Path):
    begun = time.monotonic()
    pull(connection, origin.digest, tmp_path / "out", paths=["part-0", "part-1"], bytes_per_s=2e6)
    assert time.monotonic() - begun >= 0.9, "3 MB at 2 MB/s, the last piece waits for nothing"
