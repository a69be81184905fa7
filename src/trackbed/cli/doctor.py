"""`trackbed doctor`: is this machine right for Trackbed, and what is to know about this installation."""

import importlib.util
import os
import platform
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from trackbed.base.errors import TrackbedError
from trackbed.base.home import home
from trackbed.base.units import format_size
from trackbed.cli import context, output
from trackbed.cli.context import say
from trackbed.client import config

if TYPE_CHECKING:
    from trackbed.wire.doctor import NodeCheck

_LOW_DISK_BYTES = 5 * 2**30
_SKEW_S = 30.0


class Check(NamedTuple):
    """One thing looked at: ok, warn (works, but know it) or bad, with the sentence."""

    name: str
    verdict: str
    text: str


def doctor(
    history: Annotated[bool, typer.Option("--history", help=say("cli.opt.doctor_history"))] = False,
    only: Annotated[
        str, typer.Option("--check", metavar="CHECK", help=say("cli.opt.doctor_check"), show_default=False)
    ] = "",
    now: Annotated[bool, typer.Option("--now", help=say("cli.opt.doctor_now"))] = False,
) -> int:
    if history:
        return _history(only)
    checks = [*_machine(), *_files(), *_server(now=now)]
    if not output.emit_json([check._asdict() for check in checks]):
        marks = {"ok": "✓", "warn": "!", "bad": "✗"}
        for check in checks:
            output.line(
                f"{output.paint(marks[check.verdict], {'ok': '32', 'warn': '33', 'bad': '31'}[check.verdict])} {check.text}"
            )
    return 1 if any(check.verdict == "bad" for check in checks) else 0


def _machine() -> Iterator[Check]:
    good = sys.version_info >= (3, 11)
    yield Check(
        "python",
        "ok" if good else "bad",
        say("cli.doctor.python", version=platform.python_version(), path=sys.executable),
    )
    yield Check("cpus", "ok", say("cli.doctor.cpus", count=os.cpu_count() or 1, system=platform.platform()))
    git = shutil.which("git")
    yield Check("git", "ok" if git else "warn", say("cli.doctor.git" if git else "cli.doctor.no_git", path=git or ""))
    torch = importlib.util.find_spec("torch") is not None
    yield Check("torch", "ok" if torch else "warn", say("cli.doctor.torch" if torch else "cli.doctor.no_torch"))
    server = importlib.util.find_spec("litestar") is not None
    yield Check(
        "server_parts",
        "ok" if server else "warn",
        say("cli.doctor.server_parts" if server else "cli.doctor.no_server_parts"),
    )


def _files() -> Iterator[Check]:
    folder = home()
    if not folder.exists():
        yield Check("home", "ok", say("cli.doctor.no_home", path=folder))
        return
    free = shutil.disk_usage(folder).free
    verdict = "ok" if free > _LOW_DISK_BYTES else "warn"
    yield Check("disk", verdict, say("cli.doctor.disk", path=folder, free=format_size(free)))
    open_to_others = [
        path.name
        for path in (folder, folder / "trackbed.sqlite3", config.credentials_path())
        if path.exists() and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    ]
    if open_to_others:
        yield Check("modes", "bad", say("cli.doctor.modes", names=", ".join(open_to_others), path=folder))
    else:
        yield Check("modes", "ok", say("cli.doctor.modes_good", path=folder))
    if (folder / "keys" / "master.key").exists() and importlib.util.find_spec("cryptography") is not None:
        from trackbed.storage.key_file import KeyFile

        keys = KeyFile(folder / "keys")
        yield Check(
            "recovery_kit",
            "ok" if keys.exported else "warn",
            say("cli.doctor.kit" if keys.exported else "cli.doctor.no_kit", path=keys.path),
        )


def _server(*, now: bool) -> Iterator[Check]:
    from trackbed.client.api import Client

    login = config.find(context.current().server)
    if login is None:
        yield Check("server", "warn", say("login_missing"))
        return
    try:
        with Client(login.url, login.token or "-", patience_s=2.0) as api:
            before = time.time()
            answer = api.connection.send("GET", "/healthz")
            skew = _skew(answer.headers.get("date", ""), (before + time.time()) / 2)
            status, me, nodes = api.status(), api.me(), api.pool.nodes()
            looks = api.doctor.look() if now else api.doctor.newest()
    except TrackbedError as error:
        yield Check("server", "bad", error.text(context.current().lang))
        return
    yield Check("server", "ok", say("cli.doctor.server", url=login.url, version=status.version, name=me.name))
    if status.version != context.version():
        yield Check("version", "warn", say("cli.doctor.version", server=status.version, here=context.version()))
    if skew is not None and abs(skew) > _SKEW_S:
        yield Check("clock", "warn", say("cli.doctor.clock", seconds=round(skew)))
    kinds = sorted({str(card.get("kind", "")) for node in nodes for card in node.cards})
    yield Check(
        "cards",
        "ok" if status.cards_total else "bad",
        say("cli.doctor.cards", count=status.cards_total, kinds=", ".join(kinds) or "-"),
    )
    for look in looks:
        yield Check(f"{look.node}.{look.check}", look.verdict, f"{look.node}: {look_text(look)}")
    for warning in status.warnings:
        yield Check(warning.code, "warn", say(f"reason.{warning.code}", **warning.params))


def _history(check: str) -> int:
    with context.client() as api:
        found = api.doctor.history(check=check)
    if output.emit_json(found):
        return 0
    head = [say(f"cli.word.{name}") for name in ("created", "node", "check", "verdict", "value", "what")]
    rows = [
        [output.when(one.time_us), one.node, one.check, output.state(one.verdict, "verdict"),
         measured(one.value, one.unit), look_text(one)]
        for one in found
    ]  # fmt: skip
    output.table(head, rows, empty=say("cli.doctor.no_history"))
    return 0


def measured(value: float, unit: str) -> str:
    """Return what a look measured, as a person reads it."""
    if unit == "B":
        return format_size(int(value))
    return f"{round(value, 2):g} {unit}".strip() if abs(value) < 1e6 else f"{value:.4g} {unit}"


def look_text(look: "NodeCheck") -> str:
    """Return the sentence of one look of the server at a node."""
    if "fault" in look.params:
        return say("doctor.fault", check=look.check, fault=look.params["fault"])
    if look.check == "packages":
        return say(f"doctor.packages_{look.params['changed']}", **look.params)
    return say(f"doctor.{look.check}", **look.params)


def _skew(date: str, now_s: float) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(date).timestamp() + 0.5 - now_s
    except (TypeError, ValueError):
        return None
