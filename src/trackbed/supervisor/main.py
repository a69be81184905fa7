"""One process for one attempt: takes the folder, lives or salvages, and leaves when the last word is answered."""

import logging
import os
from pathlib import Path

from trackbed.clusters import NodeFolder
from trackbed.clusters.node_folder import SupervisorId, take
from trackbed.clusters.processes import boot_id, identify
from trackbed.supervisor.attempt import Attempt, now_us
from trackbed.supervisor.ending import send_all
from trackbed.supervisor.living import Living
from trackbed.supervisor.salvage import salvage

BUSY = 3  # exit status: somebody else works on the folder


def main(argv: list[str]) -> int:
    """Run the supervisor (or, with `--salvage`, the salvager) of a folder. Returns 0 when everything is told."""
    root, salvaging = Path(argv[0]), "--salvage" in argv[1:]
    lock = take(root / "supervisor.lock")
    if lock is None:
        logging.getLogger("trackbed.supervisor").error("another supervisor works on %s", root)
        return BUSY
    with lock:
        who, folder = identify(os.getpid()), NodeFolder(root)
        folder.make()
        folder.write_supervisor(
            SupervisorId(
                pid=who.pid, pid_start=who.start, boot_id=boot_id(), started_us=now_us(), salvager=salvaging
            )
        )  # fmt: skip
        return _run(Attempt(root, salvaged=salvaging))


def _run(attempt: Attempt) -> int:
    if attempt.facts.value.finished:
        return 0
    attempt.lease.start()
    attempt.sender.start()
    if attempt.salvaged:
        salvage(attempt)
    else:
        Living(attempt).run()
    return send_all(attempt)
