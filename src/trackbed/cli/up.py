"""`trackbed up`: the server of this machine, in the foreground or detached."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from trackbed.base.errors import Conflict, TrackbedError, Unavailable
from trackbed.base.home import home
from trackbed.cli import output
from trackbed.cli.context import say
from trackbed.cli.home import Marker, answers, marker

START_S = 60.0


def up(
    host: Annotated[str, typer.Option("--host", metavar="HOST", help=say("cli.opt.host"))] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, metavar="PORT", help=say("cli.opt.port"))] = 8470,
    cards: Annotated[int, typer.Option("--cards", min=0, metavar="N", help=say("cli.opt.cards"))] = 0,
    database: Annotated[
        str, typer.Option("--database", metavar="URL", help=say("cli.opt.database"), show_default=False)
    ] = "",
    store: Annotated[str, typer.Option("--store", metavar="URL", help=say("cli.opt.store"), show_default=False)] = "",
    store_rate: Annotated[
        float, typer.Option("--store-rate", min=0, metavar="MB/S", help=say("cli.opt.up_store_rate"))
    ] = 0.0,
    cluster: Annotated[str, typer.Option("--cluster", metavar="URL", help=say("cli.opt.cluster"))] = "local",
    allowed_host: Annotated[
        list[str] | None,
        typer.Option("--allowed-host", metavar="NAME", help=say("cli.opt.allowed_host"), show_default=False),
    ] = None,
    accept_one_trust_domain: Annotated[
        bool, typer.Option("--accept-one-trust-domain", help=say("cli.opt.accept_trust"))
    ] = False,
    environments: Annotated[
        str, typer.Option("--environments", metavar="any|published", help=say("cli.opt.up_environments"))
    ] = "any",
    environment_drift: Annotated[
        str, typer.Option("--environment-drift", metavar="refuse|flag", help=say("cli.opt.up_drift"))
    ] = "refuse",
    detach: Annotated[bool, typer.Option("--detach", "-d", help=say("cli.opt.detach"))] = False,
    log_level: Annotated[str, typer.Option("--log-level", metavar="LEVEL", help=say("cli.opt.log_level"))] = "INFO",
) -> None:
    running = marker()
    if running is not None and answers(running.url):
        raise Conflict("cli_up_already", url=running.url, pid=running.pid)
    if detach:
        arguments = [
            "--host",
            host,
            "--port",
            str(port),
            "--cards",
            str(cards),
            "--cluster",
            cluster,
            "--store-rate",
            str(store_rate),
            "--log-level",
            log_level,
            "--environments",
            environments,
            "--environment-drift",
            environment_drift,
        ]
        arguments += [
            word for name, value in (("--database", database), ("--store", store)) if value for word in (name, value)
        ]
        arguments += [word for name in allowed_host or [] for word in ("--allowed-host", name)]
        started = start_detached([*arguments, *(["--accept-one-trust-domain"] if accept_one_trust_domain else [])])
        if not output.emit_json(started):
            say_board(started.url)
        return
    from trackbed.server.main import serve
    from trackbed.server.settings import Settings

    serve(
        Settings(
            home=home(), host=host, port=port, database_url=database, store_url=store, store_rate=store_rate * 1e6, cluster=cluster, cards=cards,
            allowed_hosts=tuple(allowed_host or ()), accept_one_trust_domain=accept_one_trust_domain, log_level=log_level.upper(),
            environments=environments, environment_drift=environment_drift,
        )
    )  # fmt: skip


def start_detached(arguments: list[str]) -> Marker:
    """Start the server in a session of its own and return once it answers; its log is `<home>/server.log`.

    Raises:
        Unavailable: `cli_server_not_started`, with the last lines of the log.
    """
    folder = home()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = folder / "server.log"
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    start = os.fstat(fd).st_size
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "trackbed", "up", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=fd,
            stderr=fd,
            start_new_session=True,
        )
    finally:
        os.close(fd)
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        found = marker()
        if found is not None and found.pid == process.pid and answers(found.url):
            return found
        time.sleep(0.05)
    if process.poll() is None:
        process.terminate()
    raise Unavailable("cli_server_not_started", log=str(log), lines=_last_lines(log, start))


def login_url(url: str) -> str:
    """Return a one-time link for the account of this machine, or the plain address where that may not be had."""
    from trackbed.client.api import Client

    try:
        with Client(url) as api:
            return api.people.login_link(api.me().name).login_url or url
    except TrackbedError:
        return url


def say_board(url: str) -> None:
    from trackbed.client.api import Client

    output.line(say("cli.up", url=url))
    output.line(say("cli.sign_in", url=login_url(url)))
    with Client(url) as api:
        status = api.status()
    for warning in status.warnings:
        output.line(say(f"reason.{warning.code}", **warning.params))


def _last_lines(log: Path, start: int) -> str:
    with log.open("rb") as file:
        file.seek(start)
        lines = file.read()[-4000:].decode("utf-8", "replace").strip().splitlines()
    return "\n".join(lines[-8:])
