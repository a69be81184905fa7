"""The embedded engine: this machine is the only node, and supervisors are its processes.

A supervisor lives in a session of its own and outlives the server; the next server finds it by its folder.
"""

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

from trackbed.base.errors import BadInput, NotFound
from trackbed.clusters.accelerators import Accelerator, detect
from trackbed.clusters.engine import Caps, Handle, NodeFacts, Observation, Phase
from trackbed.clusters.node_folder import AttemptFacts, NodeFolder, SupervisorId, hold
from trackbed.clusters.processes import ProcessId, boot_id, identify, kill_all, marked, started_for
from trackbed.wire.attempts import Assignment

NODE = "local"
_CLEAN_EVERY_S = 3600.0


# keys of the server's store: a supervisor gets them by a grant, a job never
_SERVERS_OWN = frozenset({"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"})


class LocalEngine:
    """Attempts lie in `home/nodes/local/attempts/<attempt id>`; old ones are removed now and then by `inventory`."""

    name = "local"
    caps = Caps()

    def __init__(self, home: Path, *, accelerator: Accelerator) -> None:
        self.home = home.absolute() / "nodes" / NODE
        self.accelerator = accelerator
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()
        self._clean_s = time.monotonic() + 60.0

    def inventory(self) -> list[NodeFacts]:
        if time.monotonic() >= self._clean_s:
            self._clean_s = time.monotonic() + _CLEAN_EVERY_S
            self.clean()
        return [
            NodeFacts(
                name=NODE,
                cards=tuple(self.accelerator.cards()),
                cpus=os.cpu_count() or 1,
                memory_bytes=int(psutil.virtual_memory().total),
                boot_id=boot_id(),
                labels=frozenset({NODE, socket.gethostname()}),
            )
        ]

    def folder(self, attempt_id: str) -> NodeFolder:
        if not attempt_id or "/" in attempt_id or attempt_id.startswith("."):
            raise BadInput("attempt_id_wrong", attempt=attempt_id)
        return NodeFolder(self.home / "attempts" / attempt_id)

    def submit(self, assignment: Assignment) -> Handle:
        folder = self.folder(assignment.attempt_id)
        folder.make()
        with hold(folder.root / "start.lock"):
            if not (folder.root / "assignment.json").exists():
                folder.write_assignment(assignment)
            if folder.supervisor() is None and not folder.locked():
                self._start(folder, salvager=False)
        return _handle(folder, folder.assignment())

    def observe(self, attempt_ids: Iterable[str]) -> list[Observation]:
        self._reap()
        return [self._observe(attempt_id) for attempt_id in attempt_ids]

    def kill(self, attempt_id: str) -> None:
        folder = self.folder(attempt_id)
        who = folder.supervisor()
        if who is not None and who.alive():
            os.kill(who.pid, 9)
        kill_all(lambda: marked(folder.control), timeout_s=5.0)
        self._reap()

    def confirm_gone(self, attempt_id: str, *, timeout_s: float = 10.0) -> bool:
        folder = self.folder(attempt_id)
        deadline = time.monotonic() + timeout_s
        while True:
            self._reap()
            who = folder.supervisor()
            if not (who is not None and who.alive()) and not folder.locked() and not marked(folder.control):
                return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.05)

    def salvage(self, attempt_id: str) -> None:
        folder = self.folder(attempt_id)
        if not (folder.root / "assignment.json").exists():
            raise NotFound("attempt_folder_missing", attempt=attempt_id)
        with hold(folder.root / "start.lock"):
            who = folder.supervisor()
            if not folder.locked() and not (who is not None and who.alive()):
                self._start(folder, salvager=True)

    def adopt(self) -> list[Handle]:
        found: list[Handle] = []
        for path in sorted((self.home / "attempts").glob("*/assignment.json")):
            folder = NodeFolder(path.parent)
            facts = folder.state()
            if facts is None or not facts.finished:
                found.append(_handle(folder, folder.assignment()))
        return found

    def clean(self, *, keep_s: float = 7 * 86400.0) -> list[str]:
        removed: list[str] = []
        for path in sorted((self.home / "attempts").glob("*/assignment.json")):
            folder = NodeFolder(path.parent)
            facts = folder.state()
            if facts is None or not facts.finished or folder.locked():
                continue
            if time.time() - (folder.root / "state.json").stat().st_mtime >= keep_s:
                shutil.rmtree(folder.root, onerror=_open_and_retry)
                removed.append(folder.root.name)
        self._clean_cache(keep_s)
        return removed

    def _clean_cache(self, keep_s: float) -> None:
        """Trees that no attempt links to and none used for as long go too."""
        links = [*self.home.glob("attempts/*/data/*"), *self.home.glob("attempts/*/from")]
        linked = {str(link.readlink()) for link in links if link.is_symlink()}
        for mark in (self.home / "cache").glob("*/*.json"):
            tree = mark.with_suffix("")
            if str(tree) not in linked and time.time() - mark.stat().st_mtime >= keep_s:
                mark.unlink()
                shutil.rmtree(tree, onerror=_open_and_retry)

    def _start(self, folder: NodeFolder, *, salvager: bool) -> None:
        command = [sys.executable, "-m", "trackbed.supervisor", str(folder.root)]
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("TRACKBED_") and name not in _SERVERS_OWN
        }
        with (folder.logs / "supervisor.log").open("ab") as log:
            child = subprocess.Popen(
                [*command, "--salvage"] if salvager else command,
                cwd=folder.root, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        before = folder.supervisor()
        if before is None or not before.alive():  # else the child was quicker and has said so itself
            who = identify(child.pid)
            now_us = time.time_ns() // 1000
            folder.write_supervisor(
                SupervisorId(pid=who.pid, pid_start=who.start, boot_id=boot_id(), started_us=now_us, salvager=salvager)
            )
        with self._lock:
            self._children[child.pid] = child

    def _reap(self) -> None:
        with self._lock:
            for pid, child in list(self._children.items()):
                if child.poll() is not None:
                    del self._children[pid]

    def _observe(self, attempt_id: str) -> Observation:
        folder = self.folder(attempt_id)
        if not (folder.root / "assignment.json").exists():
            alive = bool(marked(folder.control) or started_for(folder.root))
            return Observation(attempt_id, Phase.LOST, {"folder": "missing", "alive": alive})
        who, facts = folder.supervisor(), folder.state() or AttemptFacts()
        alive = folder.locked() or (who is not None and who.alive())
        same_boot = who is None or who.boot_id == boot_id()
        evidence = {
            "supervisor_alive": alive,
            "salvaging": alive and who is not None and who.salvager,
            "phase": facts.phase,
            "ranks_alive": same_boot and any(ProcessId(r.pid, r.start).alive() for r in facts.ranks),
            "reports_left": folder.unsent(),
            "exit_acked": facts.finished,
            "boot_changed": not same_boot,
        }
        if facts.finished:
            phase = Phase.EXITED
        elif alive:
            phase = Phase.STARTING if facts.phase == "starting" else Phase.RUNNING
        else:
            phase = Phase.LOST
        return Observation(attempt_id, phase, evidence)


def _handle(folder: NodeFolder, assignment: Assignment) -> Handle:
    return Handle(assignment.attempt_id, assignment.run_id, assignment.epoch, NODE, str(folder.root))


def _open_and_retry(_remove: object, path: str, _fault: object) -> None:
    """Read-only trees are opened for writing before they are removed."""
    target = Path(path)
    target.parent.chmod(0o700)
    if target.is_dir() and not target.is_symlink():
        target.chmod(0o700)
        shutil.rmtree(target, ignore_errors=True)
    else:
        target.unlink(missing_ok=True)


def open_local(home: Path, cards: int | None = None) -> LocalEngine:
    return LocalEngine(home, accelerator=detect(cards))
