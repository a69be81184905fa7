"""`trackbed down`: ends the server of this machine. Runs go on; the next `up` takes them over."""

import signal
import time

from trackbed.base.errors import NotFound, Unavailable
from trackbed.base.home import home
from trackbed.cli import output
from trackbed.cli.context import say
from trackbed.cli.home import marker

STOP_S = 30.0


def down() -> None:
    found = marker()
    if found is None:
        raise NotFound("cli_not_up", home=str(home()))
    stop(found.pid)
    if not output.emit_json(found):
        output.line(say("cli.down", url=found.url))


def stop(pid: int) -> None:
    """Ask a server to end and wait until its process has.

    Raises:
        Unavailable: `cli_down_slow`.
    """
    import psutil

    try:
        process = psutil.Process(pid)
        process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_S
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > deadline:
                raise Unavailable("cli_down_slow", pid=pid, seconds=STOP_S)
            time.sleep(0.05)
    except psutil.NoSuchProcess:
        return
