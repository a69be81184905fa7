"""The folder of a run that nobody submitted: what the trainer leaves in it, and what its sender answers.

<home>/client/spool/<key>/   begin.mp · *.tbs (+ .ack) · output/ · sender.log      by the trainer, then the sender
                             server.json · offline · done                           by the sender
"""

import os
from pathlib import Path

import msgspec

from trackbed.base.home import home


class Begin(msgspec.Struct, kw_only=True):
    """What `trackbed.init` was told. `key` makes a repeated create return the same run."""

    key: str
    project: str = ""
    name: str = ""
    tags: list[str] = []
    started_us: int = 0
    pid: int = 0


class Known(msgspec.Struct, kw_only=True):
    """The run that the server made of it."""

    run_id: str
    ref: str = ""
    url: str = ""


class OutsideFolder:
    """Reads and writes the small files of one folder, each whole or not there."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def output(self) -> Path:
        return self.path / "output"

    @property
    def begin(self) -> Begin:
        """What the trainer asked for; OSError or msgspec.MsgspecError where it could not write it."""
        return msgspec.msgpack.decode((self.path / "begin.mp").read_bytes(), type=Begin)

    def write_begin(self, begin: Begin) -> None:
        self._write("begin.mp", msgspec.msgpack.encode(begin))

    @property
    def known(self) -> Known | None:
        return self._read("server.json", Known)

    def write_known(self, known: Known) -> None:
        self._write("server.json", msgspec.json.encode(known))

    @property
    def offline(self) -> str:
        """Why the sender could not reach the server at its last try; empty where it could or has not tried."""
        try:
            return (self.path / "offline").read_text(encoding="utf-8")
        except OSError:
            return ""

    def set_offline(self, reason: str) -> None:
        if reason:
            self._write("offline", reason.encode())
        else:
            (self.path / "offline").unlink(missing_ok=True)

    @property
    def done(self) -> bool:
        """Everything is acknowledged and no process writes any more."""
        return (self.path / "done").exists()

    def set_done(self) -> None:
        self._write("done", b"")

    def _read(self, name: str, kind: type[Known]) -> Known | None:
        try:
            return msgspec.json.decode((self.path / name).read_bytes(), type=kind)
        except (OSError, msgspec.MsgspecError):
            return None

    def _write(self, name: str, data: bytes) -> None:
        part = self.path / f".{name}.{os.getpid()}.part"
        part.write_bytes(data)
        part.replace(self.path / name)


def spool_home() -> Path:
    """Return the folder that holds the folders of outside runs on this machine."""
    return home() / "client" / "spool"


def folders(root: Path) -> list[OutsideFolder]:
    """Return the folders below `root`, or `root` itself where it is one, oldest first."""
    found = [root] if (root / "begin.mp").exists() else [entry.parent for entry in root.glob("*/begin.mp")]
    return [OutsideFolder(path) for path in sorted(found, key=lambda path: (path / "begin.mp").stat().st_mtime_ns)]
